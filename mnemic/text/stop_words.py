"""Words so common that they say nothing about the topic of a text."""

# Question words are among them, negations are not.
STOP_WORD_TEXT = """
    a about after all also an and any are as at be because been before being between both but by can
    could did do does doing down during each for from further had has have having he her here hers
    him his how i if in into is it its itself just me more most my of off on once only or other our
    out over own same she should so some such than that the their them then there these they this
    those through to too under until up very was we were what when where which while who whom whose
    why will with would you your s t
    的 了 是 在 和 与 或 吗 呢 吧 也 都 就 而 及 着 我 你 他 她 它 我们 你们 他们 这 那 这个 那个
    什么 谁 哪 哪里 哪个 怎么 怎样 为什么 多少 几 有 被 把 对 从 到 为 以 之 其 上 中 下
"""
STOP_WORDS = frozenset(STOP_WORD_TEXT.split())
