"""Generate lists with a heading, with or without amounts, and questions about their items."""

from collections.abc import Sequence
from typing import NamedTuple

from mnemic.data.documents import pools
from mnemic.data.documents.pools import SplitSampler, split_phrases
from mnemic.data.documents.writer import DocumentWriter, GeneratedQuestion, Spans, ask_question

BULLETS = split_phrases(
    """- {item} | * {item} | • {item} | {number}. {item} | {number}) {item} | [ ] {item} | {item}"""
)
AMOUNT_TEMPLATES = split_phrases("{item}: {amount} | {amount} {item} | {item} - {amount} | {item} ({amount})")
UNITS = ("g", "ml", "pieces", "cups", "spoons", "packets")
TASKS = ("repair", "sell", "clean", "return")
MIN_ITEMS, MAX_ITEMS = 2, 5


class ListKind(NamedTuple):
    """The words of one kind of list; ``{topic}`` is what tells it from others."""

    items: Sequence[str]
    topics: Sequence[str]
    headings: Sequence[str]
    questions: Sequence[str]  # for all items
    amounts: Sequence[str] = ()  # questions for the amount of one item


LIST_KINDS = (
    ListKind(
        pools.GEAR,
        pools.CITIES,
        split_phrases(
            """Packing list for {topic} | To pack for {topic}: | {topic} - what to bring | For the trip to
            {topic} take | Luggage for {topic} | Take along to {topic}: | {topic} trip: packing | Gear for
            {topic}:"""
        ),
        split_phrases(
            """What is on the packing list for {topic}? | What should be packed for {topic}? | What do we take to
            {topic}? | Which things are needed in {topic}? | What has to be in the luggage for {topic}? | What
            goes into the bag for {topic}? | Which items are to be brought to {topic}? | What gear is planned
            for {topic}?"""
        ),
    ),
    ListKind(
        pools.GROCERIES,
        pools.FOODS,
        split_phrases(
            """Ingredients of {topic} | {topic}: ingredients | For {topic} you need | {topic} (recipe) | What
            goes into {topic}: | Recipe: {topic} | Shopping for {topic}: | {topic}, for four people"""
        ),
        split_phrases(
            """What are the ingredients of {topic}? | What do I need for {topic}? | What goes into {topic}? |
            Which ingredients does {topic} have? | What is {topic} made of? | Which foods are used for
            {topic}? | What must I buy for {topic}? | Which things are in {topic}?"""
        ),
        split_phrases(
            """How much {item} is in {topic}? | How much {item} do I need for {topic}? | What amount of {item}
            goes into {topic}? | How much {item} does {topic} take? | What quantity of {item} is needed for
            {topic}? | How much {item} should be used in {topic}? | What is the amount of {item} for {topic}?
            | How much {item} is called for?"""
        ),
    ),
    ListKind(
        [f"{first} {last}" for first, last in zip(pools.FIRST_NAMES, pools.LAST_NAMES)],
        [f"{hobby} group" for hobby in pools.HOBBIES],
        split_phrases(
            """Members of the {topic} | {topic}: participants | In the {topic} are | {topic} - who is in | People
            of the {topic}: | Signed up for the {topic}: | {topic} (members) | Names, {topic}"""
        ),
        split_phrases(
            """Who is in the {topic}? | Who are the members of the {topic}? | Which people belong to the {topic}?
            | Who takes part in the {topic}? | Who signed up for the {topic}? | Who joined the {topic}? |
            Which persons are in the {topic}? | Who is a member of the {topic}?"""
        ),
    ),
    ListKind(
        [f"{TASKS[number // 4 % len(TASKS)]} the {name}" for number, name in enumerate(pools.THINGS)],
        pools.FIRST_NAMES,
        split_phrases(
            """To do, {topic} | {topic}'s tasks | Tasks for {topic}: | {topic} still has to | Jobs of {topic}
            this week | What {topic} does next: | {topic} - open tasks | Chores: {topic}"""
        ),
        split_phrases(
            """What does {topic} have to do? | What are {topic}'s tasks? | Which jobs are left for {topic}? |
            What is on {topic}'s list? | What should {topic} do? | Which chores does {topic} have? | What
            tasks were given to {topic}? | What must {topic} take care of?"""
        ),
    ),
)


def write_lists(sampler: SplitSampler, writer: DocumentWriter) -> list[GeneratedQuestion]:
    """Write one to three lists of one kind, and ask for their items."""
    kind = sampler.generator.choice(LIST_KINDS)
    num_lists = sampler.generator.randint(1, 3)
    *topics, missing = sampler.sample(kind.topics, num_lists + 1)
    questions: list[GeneratedQuestion] = []
    for topic in topics:
        with_amounts = bool(kind.amounts) and sampler.flip(0.5)
        questions += write_list(sampler, writer, kind, topic, with_amounts=with_amounts)
    questions.append(ask_question(sampler.choose(kind.questions), topic=missing))
    return questions


def write_list(
    sampler: SplitSampler, writer: DocumentWriter, kind: ListKind, topic: str, *, with_amounts: bool
) -> list[GeneratedQuestion]:
    """Write one list; ask for all its items, and for an amount."""
    writer.add_line(sampler.choose(kind.headings), topic=topic)
    *items, missing = sampler.sample(kind.items, sampler.generator.randint(MIN_ITEMS, MAX_ITEMS) + 1)
    bullet, template = sampler.generator.choice(BULLETS), sampler.generator.choice(AMOUNT_TEMPLATES)
    spans: list[Spans] = []
    amounts: dict[str, Spans] = {}
    for number, item in enumerate(items, start=1):
        line = bullet.replace("{item}", template) if with_amounts else bullet
        amount = f"{sampler.generator.randint(1, 90) * 5} {sampler.generator.choice(UNITS)}"
        values = writer.add_line(line, item=item, amount=amount, number=str(number))
        spans.append(values["item"])
        amounts |= {item: values["amount"]} if with_amounts else {}
    all_spans = tuple(span for ranges in spans for span in ranges)
    questions = [ask_question(sampler.choose(kind.questions), all_spans, topic=topic)]
    if with_amounts:
        item = sampler.generator.choice(items)
        questions.append(ask_question(sampler.choose(kind.amounts), amounts[item], item=item, topic=topic))
        questions.append(ask_question(sampler.choose(kind.amounts), item=missing, topic=topic))
    return questions
