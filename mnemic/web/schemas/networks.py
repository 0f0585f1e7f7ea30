"""Networks, long texts, stories, recipes and tables."""

from typing import Annotated

from pydantic import BaseModel, Field

from mnemic.web.limits import MAX_QUESTION_CHARS, MAX_TEXT_CHARS, MAX_TITLE_CHARS
from mnemic.web.schemas.documents import Body

MAX_SENTENCES, MAX_SENTENCE_CHARS = 500, 1_000  # of a story
ModelName = Annotated[str, Field(min_length=1, max_length=100)]


class ModelSource(BaseModel):
    """What a network was made of."""

    name: str
    role: str = ""
    license: str = ""


class ModelInfo(BaseModel):
    """A trained network."""

    name: str
    methods: list[str] = Field(description="ask_story: stories; remember: long texts.")
    description: str
    license: str | None
    sources: list[ModelSource]
    bytes: int
    tasks: list[int] = Field(description="bAbI tasks that it was trained on.")
    command: str | None = Field(description="The command that trained it.")


class ModelList(BaseModel):
    """The networks of the server."""

    models: list[ModelInfo]


class NewLongText(Body):
    """A text to read into one memory."""

    text: str = Field(min_length=1, max_length=MAX_TEXT_CHARS)
    name: str = Field(default="", max_length=MAX_TITLE_CHARS)
    model: ModelName = "bert-mass"


class TextQuestion(Body):
    """A question about a long text."""

    question: str = Field(min_length=1, max_length=MAX_QUESTION_CHARS)


class TextSlot(BaseModel):
    """A slot of a memory, with the span that it holds most of."""

    slot: int
    text: str
    first: int = Field(description="In the text, in characters.")
    last: int
    weight: float = Field(description="Storage weight; of an answer, how much was read.")
    segment: int = Field(description="The segment that the span is in, from 0.")


class TextUnit(BaseModel):
    """A unit that can be stored: a sentence or a token."""

    first: int
    last: int
    weight: float = Field(description="Storage weight: the network's probability of storing it.")


class TextSegment(BaseModel):
    """A part of the text that was read at once."""

    first: int
    last: int
    weights: list[float] = Field(description="Storage weights of its units, as in `units`.")
    units: list[TextUnit]


class TextSnapshot(BaseModel):
    """What was in the slots after some segments."""

    segments: int = Field(description="Number of segments that had been read.")
    units: list[int] = Field(description="Per slot the unit that it held most, from 0; -1: empty.")


class TextSummary(BaseModel):
    """A long text that was read."""

    id: str
    name: str
    model: str
    characters: int
    tokens_seen: int
    tokens_total: int
    num_slots: int
    num_filled: int


class TextInfo(TextSummary):
    """A long text with its memory."""

    slots: list[TextSlot]
    segments: list[TextSegment]
    history: list[TextSnapshot]


class TextList(BaseModel):
    """The long texts that were read."""

    texts: list[TextSummary]


class TextAnswer(BaseModel):
    """An answer from the memory of a long text."""

    answer: str | None = Field(description="Null: no answer in words; the slots say what was read.")
    probability: float
    slots: list[TextSlot] = Field(description="Those that were read, most first.")


class StoryExampleInfo(BaseModel):
    """A generated story with a question."""

    task: int
    sentences: list[str]
    question: str
    answer: str
    facts: list[int] = Field(description="Sentences that prove the answer, from 0.")


class StoryQuestionBody(Body):
    """A story and a question about it."""

    model: ModelName
    sentences: list[Annotated[str, Field(max_length=MAX_SENTENCE_CHARS)]] = Field(
        min_length=1, max_length=MAX_SENTENCES
    )
    question: str = Field(min_length=1, max_length=MAX_QUESTION_CHARS)


class StoryCandidate(BaseModel):
    """A possible answer."""

    text: str
    probability: float


class StoryHop(BaseModel):
    """One read of the memory."""

    label: str
    weights: list[float] = Field(description="Per sentence; 0: it is not in memory.")
    gate: float | None = Field(description="How much of what was read was used; null: no gate.")


class StorySlots(BaseModel):
    """The slots of a memory while the story was told."""

    names: list[str]
    steps: list[list[float]] = Field(description="Per sentence the write gate of each slot.")
    read: list[float] = Field(description="Read weight of each slot.")


class StoryResult(BaseModel):
    """The answer of a network to a question about a story."""

    answer: str
    candidates: list[StoryCandidate]
    hops: list[StoryHop]
    slots: StorySlots | None
    memory: str = Field(description="The kind of memory.")
    notes: list[str]


class RecipeInfo(BaseModel):
    """A recipe of a published system."""

    name: str
    description: str


class RecipeText(RecipeInfo):
    """A recipe as it is written."""

    toml: str


class RecipeList(BaseModel):
    """The recipes that ship."""

    recipes: list[RecipeInfo]


class ResultRow(BaseModel):
    """A system: what its paper printed, and what it reaches here."""

    system: str
    published: float | None
    ours: float
    unit: str
    command: str
    note: str


class ResultTable(BaseModel):
    """A table of systems."""

    name: str
    title: str
    rows: list[ResultRow]


class TableList(BaseModel):
    """All tables that were measured."""

    tables: list[ResultTable]
