"""Change the form of questions for training: as people type them in a hurry."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random

from mnemic.data.contract import check_share
from mnemic.data.text_tasks.examples import QuestionExample
from mnemic.recipe import ConfigError
from mnemic.text.questions import drop_question_mark, extract_keywords, misspell


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """The share of questions that each change is made to, at most one per question.

    ``altered`` questions are more of them: copies of which one word is replaced, so that their text
    no longer answers them (see ``mnemic.data.text_tasks.altered_questions``).
    """

    lower: float = 0.0  # in lower case
    unmarked: float = 0.0  # without the mark at the end
    keywords: float = 0.0  # without stop words, as in a search field
    misspelled: float = 0.0  # with one typing error
    altered: float = 0.0

    def __post_init__(self) -> None:
        check_share("augment.altered", self.altered)
        shares = self.forms
        if min(shares.values()) < 0 or sum(shares.values()) > 1:
            raise ConfigError(f"the shares of data.augment are from 0, and add up to at most 1, not {shares}")

    @property
    def forms(self) -> dict[str, float]:
        """Return the share of each change of form."""
        return {name: share for name, share in asdict(self).items() if name != "altered"}


def augment_questions(
    examples: Sequence[QuestionExample], augmentation: Augmentation, seed: int
) -> list[QuestionExample]:
    """Change a share of questions; which and how depends on seed, id and question alone."""
    shares = augmentation.forms
    if not any(shares.values()):
        return list(examples)
    return [example._replace(question=augment_question(example, shares, seed)) for example in examples]


def augment_question(example: QuestionExample, shares: Mapping[str, float], seed: int) -> str:
    """Return a question in the form drawn for it."""
    question = example.question
    generator = Random(f"augment/{seed}/{example.question_id}/{question}")
    changes = {
        "lower": str.lower,
        "unmarked": drop_question_mark,
        "keywords": extract_keywords,
        "misspelled": lambda text: misspell(text, generator),
    }
    position = generator.random()
    for name, share in shares.items():
        if position < share:
            return changes[name](question)
        position -= share
    return question
