"""The tasks of benchmarks/fine_tuning.py: their data, and which settings validation looks at."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from whole_sentences import held_back


class Task(NamedTuple):
    """A row of the page: what is learnt, and in which way validation chose."""

    title: str
    recipe: str
    folder: str
    learnt: str
    held: str  # "": a tenth of what is learnt is held back
    tested: str
    sets: tuple[str, ...] = ()
    start: Literal["minilm", "dice", "reader"] = "minilm"  # the reader: MiniLM after SQuAD
    before: str = ""  # the task whose run of the same seed comes first, from that start
    beforehand: tuple[str, ...] = ()  # how that run differs from the task's own
    tries: tuple[tuple[str, ...], ...] = ()  # what ``tune`` looks at
    chosen: tuple[str, ...] = ()  # of them, by validation; for ``run``
    split: Callable[[bytes], tuple[bytes, bytes]] | None = None  # what is learnt into that and held


RATES = tuple((f"train.rate={rate}",) for rate in ("5e-5", "1e-4", "2e-4"))
LONGER = tuple((*own, "train.epochs=12") for own in RATES)
FIRST = 'model.respond.pool="first"'
TASKS = {  # those that take longest first
    "imdb": Task(
        "IMDB, accuracy", "bert-classes", "imdb", "train", "", "test",
        ("data.length=512", "data.overlap=128", "train.epochs=3"), tries=RATES,
    ),
    "sst2": Task(
        "SST-2 dev, accuracy", "bert-classes", "glue/SST-2", "train", "held", "dev",
        ("train.epochs=3", "train.batch=64"), split=held_back,
        tries=(*RATES, ("train.rate=3e-5",), ("train.rate=5e-5", "train.batch=32"), (FIRST,)),
        chosen=RATES[1],
    ),
    "sst2-after-imdb": Task(
        "SST-2 dev, accuracy, after IMDB", "bert-classes", "glue/SST-2", "train", "held", "dev",
        ("train.epochs=3", "train.batch=64"), before="imdb", beforehand=("train.epochs=1",),
        split=held_back, tries=RATES[:2], chosen=RATES[0],
    ),
    "sst2-after-squad": Task(
        "SST-2 dev, accuracy, after SQuAD", "bert-classes", "glue/SST-2", "train", "held", "dev",
        ("train.epochs=3", "train.batch=64"), start="reader", split=held_back, tries=RATES[:2],
        chosen=RATES[0],
    ),
    "chnsenticorp": Task(
        "ChnSentiCorp, accuracy", "bert-classes", "zh/chnsenticorp", "train", "dev", "test",
        ("train.epochs=8",), start="dice",
        tries=((), ("model.width=256",), ("train.rate=0.001",), ("model.encode.stack.depth=1",)),
        chosen=("train.rate=0.001",),
    ),
    "weibo": Task(
        "Weibo NER, entity F1", "bert-tags", "zh/weibo_ner", "weiboNER_2nd_conll.train",
        "weiboNER_2nd_conll.dev", "weiboNER_2nd_conll.test",
        ("data.numbered=true", "train.epochs=40"), start="dice",
        tries=((), ("train.epochs=80",), ("model.width=256",), ("train.rate=0.001",)),
        chosen=("train.epochs=80",),
    ),
    "stsb": Task(
        "STS-B dev, Pearson", "bert-numbers", "glue/STS-B", "train", "", "dev",
        chosen=RATES[1], tries=(*RATES, *LONGER[1:]),
    ),
    "mrpc": Task(
        "MRPC dev, F1", "bert-pairs", "glue/MRPC", "train", "", "dev",
        ("data.metric=f1",), chosen=LONGER[0], tries=(*RATES, *LONGER[:2], (FIRST,)),
    ),
    "mrpc-after-squad": Task(
        "MRPC dev, F1, after SQuAD", "bert-pairs", "glue/MRPC", "train", "", "dev",
        ("data.metric=f1",), start="reader", tries=(*RATES, LONGER[0]), chosen=RATES[2],
    ),
    "rte": Task(
        "RTE dev, accuracy", "bert-pairs", "glue/RTE", "train", "", "dev",
        tries=(*RATES, *LONGER, (FIRST,), ("train.rate=3e-5",), ("train.batch=16",)),
        chosen=LONGER[2],
    ),
    "rte-after-stsb": Task(
        "RTE dev, accuracy, after STS-B", "bert-pairs", "glue/RTE", "train", "", "dev",
        before="stsb", tries=(*RATES, ("train.rate=3e-5",), ("train.epochs=12",)),
        chosen=RATES[2],
    ),
    "rte-after-squad": Task(
        "RTE dev, accuracy, after SQuAD", "bert-pairs", "glue/RTE", "train", "", "dev",
        start="reader", tries=RATES, chosen=RATES[2],
    ),
    "rte-after-both": Task(
        "RTE dev, accuracy, after SQuAD and STS-B", "bert-pairs", "glue/RTE", "train", "", "dev",
        start="reader", before="stsb", tries=RATES,
    ),
    "wnut17": Task(
        "WNUT-17, entity F1", "bert-tags", "wnut17", "wnut17train", "emerging.dev", "emerging.test",
        tries=(*RATES[1:], ("train.rate=4e-4",), ("train.rate=2e-4", "train.epochs=20")),
        chosen=RATES[1],
    ),
}  # fmt: skip
