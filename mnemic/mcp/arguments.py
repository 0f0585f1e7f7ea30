"""The arguments of the tools: schemas for the assistant, and checks of what it sends."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError
from pydantic.json_schema import GenerateJsonSchema

MAX_RESULTS = 50  # passages of a search, or sentences of evidence
MAX_NUMBER = (1 << 53) - 1  # the largest whole number that every JSON reader keeps exactly
MAX_VALUE_CHARS = 80  # of a wrong value in a message

DocumentNumber = Annotated[int, Field(ge=1, le=MAX_NUMBER, description="A document's number.")]


def limit_field(default: int, maximum: int, description: str) -> Any:
    """Declare a bound on the number of results; ``most`` is its older name."""
    aliases = AliasChoices("limit", "most")
    return Field(default=default, ge=1, le=maximum, validation_alias=aliases, description=description)


class CompactSchema(GenerateJsonSchema):
    """JSON schemas without titles: every tool's schema costs the assistant tokens."""

    def field_title_should_be_set(self, schema: object) -> bool:
        """Leave the names of fields as they are."""
        return False


class Arguments(BaseModel):
    """Arguments of a tool; unknown names and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


class FilterArguments(Arguments):
    """Arguments that leave documents out."""

    inside: str | None = Field(default=None, description="Only this folder or file: an absolute path.")
    kind: str | None = Field(default=None, description="Only this kind, such as pdf, markdown or note.")
    since: str | None = Field(default=None, description="Only files changed since: 2024-03-31, 2024-03 or 2024.")
    until: str | None = Field(default=None, description="Only files changed until: 2024-03-31, 2024-03 or 2024.")

    @property
    def filters(self) -> dict[str, Any]:
        """The filters as keywords of ``Memory.ask`` and ``Memory.search``."""
        return {name: getattr(self, name) for name in FilterArguments.model_fields}


class SearchArguments(FilterArguments):
    """Arguments of ``search``."""

    query: str = Field(description="Words or a question.")
    limit: int = limit_field(5, MAX_RESULTS, "Maximum number of passages.")


class AskArguments(FilterArguments):
    """Arguments of ``ask``."""

    question: str = Field(description="A question.")
    limit: int = limit_field(3, MAX_RESULTS, "Maximum number of sentences of evidence.")
    detail: Literal["brief", "full"] = Field(
        default="brief", description="full: with offsets, weights and other candidates."
    )
    hops: int = Field(
        default=1, ge=1, le=4, description="Number of reads; later ones also use the passages of the first."
    )
    passages: int = Field(default=5, ge=1, le=MAX_RESULTS, description="Number of passages to read per hop.")


class ListArguments(Arguments):
    """Arguments of ``list``."""

    limit: int = limit_field(50, 1000, "Maximum number of documents.")
    after: int = Field(default=0, ge=0, le=MAX_NUMBER, description="Only documents with a higher number.")


class NoteArguments(Arguments):
    """Arguments of ``remember`` where no folder may be read."""

    text: str | None = Field(
        default=None, description="The text to remember, in full sentences that can be understood alone."
    )
    title: str = Field(default="", description="A short name for it.")


class RememberArguments(NoteArguments):
    """Arguments of ``remember`` where folders may be read."""

    paths: list[str] | None = Field(
        default=None, min_length=1, description="Files or folders to read, instead of a text."
    )


class UpdateArguments(Arguments):
    """Arguments of ``update``."""

    document: DocumentNumber
    text: str = Field(description="The new text.")


class ForgetArguments(Arguments):
    """Arguments of ``forget``."""

    documents: list[DocumentNumber] = Field(min_length=1, description="Documents' numbers.")
    verify: bool = Field(default=False, description="Also search the raw files for traces.")


def describe_mistakes(error: ValidationError, model: type[Arguments]) -> str:
    """Describe wrong arguments in one line: what came, what was expected."""
    mistakes = []
    for fault in error.errors(include_url=False):
        name = ".".join(map(str, fault["loc"]))
        if fault["type"] == "missing":
            mistakes.append(f"{name!r} is missing: {model.model_fields[name].description}")
        elif fault["type"] == "extra_forbidden":
            mistakes.append(f"there is no argument {name!r}; there are: {', '.join(model.model_fields)}")
        else:
            mistakes.append(f"{name!r}: {fault['msg']}, not {str(fault['input'])[:MAX_VALUE_CHARS]!r}")
    return "; ".join(mistakes)
