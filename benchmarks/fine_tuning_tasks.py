"""The tasks of benchmarks/fine_tuning.py: their files and candidate settings."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from mnemic.data.text_tasks.whole_sentences import split_whole_sentences


class FineTuningTask(NamedTuple):
    """A row of the results page: files, recipe and settings of a task."""

    title: str
    recipe: str
    folder: str
    train_file: str
    validation_file: str  # "": a tenth of the training file is held out
    test_file: str
    settings: tuple[str, ...] = ()
    start: Literal["minilm", "scratch", "reader"] = "minilm"  # reader: MiniLM after SQuAD
    first_task: str = ""  # train this task first, with the same seed and start
    first_settings: tuple[str, ...] = ()  # extra settings of that run
    candidates: tuple[tuple[str, ...], ...] = ()  # settings that ``tune`` tries
    best_settings: tuple[str, ...] = ()  # the best of them by validation; for ``run``
    split_train_file: Callable[[bytes], tuple[bytes, bytes]] | None = None  # train file → train and validation data


RATES = tuple((f"train.rate={rate}",) for rate in ("5e-5", "1e-4", "2e-4"))
LONGER_RATES = tuple((*settings, "train.epochs=12") for settings in RATES)
FIRST_TOKEN_POOLING = 'model.respond.pool="first"'
TASKS = {  # longest first
    "imdb": FineTuningTask(
        "IMDB, accuracy", "bert-classes", "imdb", "train", "", "test",
        ("data.length=512", "data.overlap=128", "train.epochs=3"), candidates=RATES,
    ),
    "sst2": FineTuningTask(
        "SST-2 dev, accuracy", "bert-classes", "glue/SST-2", "train", "held", "dev",
        ("train.epochs=3", "train.batch=64"), split_train_file=split_whole_sentences,
        candidates=(*RATES, ("train.rate=3e-5",), ("train.rate=5e-5", "train.batch=32"), (FIRST_TOKEN_POOLING,)),
        best_settings=RATES[1],
    ),
    "sst2-after-imdb": FineTuningTask(
        "SST-2 dev, accuracy, after IMDB", "bert-classes", "glue/SST-2", "train", "held", "dev",
        ("train.epochs=3", "train.batch=64"), first_task="imdb", first_settings=("train.epochs=1",),
        split_train_file=split_whole_sentences, candidates=RATES[:2], best_settings=RATES[0],
    ),
    "sst2-after-squad": FineTuningTask(
        "SST-2 dev, accuracy, after SQuAD", "bert-classes", "glue/SST-2", "train", "held", "dev",
        ("train.epochs=3", "train.batch=64"), start="reader", split_train_file=split_whole_sentences,
        candidates=RATES[:2], best_settings=RATES[0],
    ),
    "chnsenticorp": FineTuningTask(
        "ChnSentiCorp, accuracy", "bert-classes", "zh/chnsenticorp", "train", "dev", "test",
        ("train.epochs=8",), start="scratch",
        candidates=((), ("model.width=256",), ("train.rate=0.001",), ("model.encode.stack.depth=1",)),
        best_settings=("train.rate=0.001",),
    ),
    "weibo": FineTuningTask(
        "Weibo NER, entity F1", "bert-tags", "zh/weibo_ner", "weiboNER_2nd_conll.train",
        "weiboNER_2nd_conll.dev", "weiboNER_2nd_conll.test",
        ("data.numbered=true", "train.epochs=40"), start="scratch",
        candidates=((), ("train.epochs=80",), ("model.width=256",), ("train.rate=0.001",)),
        best_settings=("train.epochs=80",),
    ),
    "stsb": FineTuningTask(
        "STS-B dev, Pearson", "bert-numbers", "glue/STS-B", "train", "", "dev",
        best_settings=RATES[1], candidates=(*RATES, *LONGER_RATES[1:]),
    ),
    "mrpc": FineTuningTask(
        "MRPC dev, F1", "bert-pairs", "glue/MRPC", "train", "", "dev",
        ("data.metric=f1",), best_settings=LONGER_RATES[0],
        candidates=(*RATES, *LONGER_RATES[:2], (FIRST_TOKEN_POOLING,)),
    ),
    "mrpc-after-squad": FineTuningTask(
        "MRPC dev, F1, after SQuAD", "bert-pairs", "glue/MRPC", "train", "", "dev",
        ("data.metric=f1",), start="reader", candidates=(*RATES, LONGER_RATES[0]), best_settings=RATES[2],
    ),
    "rte": FineTuningTask(
        "RTE dev, accuracy", "bert-pairs", "glue/RTE", "train", "", "dev",
        candidates=(*RATES, *LONGER_RATES, (FIRST_TOKEN_POOLING,), ("train.rate=3e-5",), ("train.batch=16",)),
        best_settings=LONGER_RATES[2],
    ),
    "rte-after-stsb": FineTuningTask(
        "RTE dev, accuracy, after STS-B", "bert-pairs", "glue/RTE", "train", "", "dev",
        first_task="stsb", candidates=(*RATES, ("train.rate=3e-5",), ("train.epochs=12",)),
        best_settings=RATES[2],
    ),
    "rte-after-squad": FineTuningTask(
        "RTE dev, accuracy, after SQuAD", "bert-pairs", "glue/RTE", "train", "", "dev",
        start="reader", candidates=RATES, best_settings=RATES[2],
    ),
    "rte-after-both": FineTuningTask(
        "RTE dev, accuracy, after SQuAD and STS-B", "bert-pairs", "glue/RTE", "train", "", "dev",
        start="reader", first_task="stsb", candidates=RATES,
    ),
    "wnut17": FineTuningTask(
        "WNUT-17, entity F1", "bert-tags", "wnut17", "wnut17train", "emerging.dev", "emerging.test",
        candidates=(*RATES[1:], ("train.rate=4e-4",), ("train.rate=2e-4", "train.epochs=20")),
        best_settings=RATES[1],
    ),
}  # fmt: skip
