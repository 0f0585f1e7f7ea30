"""Files of questions as a recipe lists them: read, grouped into articles, and split.

Texts with one title, and equal texts of several files, are one group, and a group is in one split.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from mnemic.data.contract import SPLITS, Split, check_count, check_minimum, check_share
from mnemic.data.documents.examples import generate_questions
from mnemic.data.groups import number_groups
from mnemic.data.text_tasks.altered_questions import alter_questions, learn_replacements
from mnemic.data.text_tasks.augment_questions import Augmentation, augment_questions
from mnemic.data.text_tasks.examples import QuestionExample, TextError
from mnemic.data.text_tasks.question_lines import AnswerKind, read_question_lines
from mnemic.data.text_tasks.squad import read_squad
from mnemic.recipe import ConfigError, construct
from mnemic.text.questions import normalize_question


@dataclass(frozen=True, kw_only=True)
class QuestionSource:
    """One entry of ``data.sources``: files of a folder, and how they are used.

    ``path`` may be a pattern such as ``qa/*_train.jsonl.xz``; it names JSON lines, or files in
    SQuAD's form (.json). An epoch has each question ``weight`` times; of a fraction, another
    selection in each epoch. ``validation`` is the share of held-out groups, instead of the data's.
    ``split`` "validation" or "test" holds out all of the file. ``max_questions`` selects so many at
    random. Questions that are not ``standalone`` make sense only with their text, as those of
    dialogues often do: they do not search for it, and are not read with another one. ``domain``
    replaces that of the lines, which by default is the file's name. Instead of a path,
    ``documents`` is a number of generated ones (see ``mnemic.data.documents``).
    """

    path: str = ""
    documents: int = 0
    weight: float = 1.0
    validation: float | None = None
    split: Split = "train"
    max_questions: int = 0
    domain: str = ""
    standalone: bool = True
    answer_kind: AnswerKind = "any"
    history: int = 0

    def __post_init__(self) -> None:
        if bool(self.path) == bool(self.documents):
            raise ConfigError("an entry of data.sources has a path, or a number of generated documents")
        if not self.weight > 0:
            name = self.path or "generated documents"
            raise ConfigError(f"the weight of {name} is above 0, not {self.weight}; leave the entry out instead")
        check_share("sources.validation", self.validation or 0.0)
        check_count("sources.documents", self.documents)
        check_minimum("sources.max_questions", self.max_questions, 0)
        check_minimum("sources.history", self.history, 0)

    def find_paths(self, folder: Path) -> list[Path]:
        """Find the files that match ``path``; there must be one."""
        paths = [path for path in sorted(folder.glob(self.path)) if path.is_file()]
        if not paths:
            listing = ", ".join(sorted(path.name for path in folder.glob("*"))) if folder.is_dir() else "no such folder"
            raise TextError(f"no file {self.path!r} of data.sources in {folder} (there: {listing})")
        return paths


class SourceQuestion(NamedTuple):
    """A question, with the numbers of its source and of its group."""

    example: QuestionExample
    source: int
    group: int


class QuestionArticle(NamedTuple):
    """Questions about texts that belong together, all of one source."""

    examples: list[QuestionExample]
    source: QuestionSource


def parse_sources(specs: Sequence[Mapping[str, Any]]) -> list[QuestionSource]:
    """Parse the entries of ``data.sources``."""
    if not specs:
        raise ConfigError('data.sources lists files, such as sources = [{ path = "train.jsonl" }]')
    return [construct(QuestionSource, spec, name=f"sources.{number}") for number, spec in enumerate(specs)]


def read_source(source: QuestionSource, folder: Path, *, normalize: bool) -> list[QuestionExample]:
    """Read the questions of all files of a source, or generate them."""
    examples = generate_questions(source.split, source.documents) if source.documents else []
    for path in source.find_paths(folder) if source.path else ():
        is_squad = ".json" in path.suffixes
        rows = read_squad(path) if is_squad else read_question_lines(path, source.answer_kind, source.history)
        name = path.name.partition(".")[0]
        examples += [row._replace(domain=source.domain or row.domain or name) for row in rows]
    if source.max_questions and len(examples) > source.max_questions:
        selected = Random(0).sample(range(len(examples)), source.max_questions)
        examples = [examples[index] for index in sorted(selected)]
    if normalize:
        examples = [example._replace(question=normalize_question(example.question)) for example in examples]
    return examples


def read_sources(sources: Sequence[QuestionSource], folder: Path, *, normalize: bool) -> list[SourceQuestion]:
    """Read all sources, and number the groups of their questions."""
    labeled = [
        (example, number)
        for number, source in enumerate(sources)
        for example in read_source(source, folder, normalize=normalize)
    ]
    groups = number_groups([list_group_keys(example) for example, _ in labeled])
    return [SourceQuestion(example, number, group) for (example, number), group in zip(labeled, groups)]


def list_group_keys(example: QuestionExample) -> list[Hashable]:
    """List what makes questions belong together: their title and their text.

    Answers of frequently asked questions are alike ("Yes, for free."): there the title decides.
    """
    if example.title and not example.is_extractive:
        return [("title", example.title)]
    keys: list[Hashable] = [("text", " ".join(example.text.split()))]
    return keys + ([("title", example.title)] if example.title else [])


def assign_splits(
    questions: Sequence[SourceQuestion], sources: Sequence[QuestionSource], share: float
) -> dict[int, Split]:
    """Assign each group to a split; ``share`` is that of sources without one.

    Of the groups that a source is the first to have, those with the smallest hashes are held out:
    the same ones on every machine. A group with a question of a source for validation or test is
    there as a whole.
    """
    names: dict[int, list[str]] = {}
    home_sources: dict[int, int] = {}
    splits: dict[int, Split] = {}
    for question in questions:
        example, group = question.example, question.group
        names.setdefault(group, []).append(example.title or example.text)
        home_sources.setdefault(group, question.source)
        fixed = sources[question.source].split
        splits[group] = max(splits.get(group, "train"), fixed, key=SPLITS.index)
    for number, source in enumerate(sources):
        groups = [group for group, home in home_sources.items() if home == number and splits[group] == "train"]
        groups.sort(key=lambda group: sha256(min(names[group]).encode()).digest())
        # Generated documents of a split share nothing with those of another.
        usual_share = 0.0 if source.documents else share
        source_share = usual_share if source.validation is None else source.validation
        count = max(round(source_share * len(groups)), int(source_share > 0 and len(groups) > 1))
        splits |= dict.fromkeys(groups[:count], "validation")
    return splits


def make_articles(
    questions: Sequence[SourceQuestion], sources: Sequence[QuestionSource], min_texts: int
) -> list[QuestionArticle]:
    """Group the questions of each source into articles of at least ``min_texts`` texts.

    An article has the texts of a group; small groups are joined with the next ones of their source.
    """
    by_group: dict[tuple[int, int], list[QuestionExample]] = {}
    for question in questions:
        by_group.setdefault((question.source, question.group), []).append(question.example)
    articles: list[QuestionArticle] = []
    pending: dict[int, list[QuestionExample]] = {}
    for (number, _), examples in by_group.items():
        article = [*pending.pop(number, []), *examples]
        if len({example.text for example in article}) < min_texts:
            pending[number] = article
        else:
            articles.append(QuestionArticle(article, sources[number]))
    return articles + [QuestionArticle(article, sources[number]) for number, article in pending.items()]


def augment_articles(
    articles: Sequence[QuestionArticle], augmentation: Augmentation, seed: int
) -> list[QuestionArticle]:
    """Add altered questions to standalone articles; change the form of a share of all."""
    if augmentation.altered:
        standalone = [example for article in articles if article.source.standalone for example in article.examples]
        replacements = learn_replacements(standalone)
        articles = [
            article._replace(
                examples=article.examples + alter_questions(article.examples, replacements, augmentation.altered, seed)
            )
            if article.source.standalone
            else article
            for article in articles
        ]
    return [article._replace(examples=augment_questions(article.examples, augmentation, seed)) for article in articles]


def select_hard_pairs(examples: Sequence[QuestionExample], seed: int = 0) -> list[QuestionExample]:
    """Select as many questions with as without an answer about each text.

    Of the kind that a text has more of, the selected ones are drawn with the seed.
    """
    by_text: dict[str, tuple[list[QuestionExample], list[QuestionExample]]] = {}
    for example in examples:
        by_text.setdefault(" ".join(example.text.split()), ([], []))[not example.answers].append(example)
    generator, pairs = Random(seed), list[QuestionExample]()
    for answerable, unanswerable in by_text.values():
        count = min(len(answerable), len(unanswerable))
        pairs += generator.sample(answerable, count) + generator.sample(unanswerable, count)
    return pairs
