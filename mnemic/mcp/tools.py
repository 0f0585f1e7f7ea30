"""The MCP tools of a memory: search, ask, list, remember, update, forget."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mnemic.mcp.arguments import check_arguments
from mnemic.mcp.protocol import OnProgress
from mnemic.store.answers import NUM_SHOWN, answer_to_dict

if TYPE_CHECKING:
    from mnemic.store import Memory

MAX_RESULTS = 50  # passages of a search, or documents of a list
INSTRUCTIONS = (
    "A persistent memory of the user's documents and notes, on this machine. Use `ask` for a "
    "question with a short answer and `search` for passages to read; both quote verbatim with a "
    "citation: tell the user the file and line or page. Use `remember` for facts that are needed "
    "later, `update` when they change. `forget` is permanent: ask the user first."
)
READ_HINTS = {"readOnlyHint": True, "openWorldHint": False}
WRITE_HINTS = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False}
ERASE_HINTS = WRITE_HINTS | {"destructiveHint": True}
DOCUMENT_KEYS = ("id", "name", "title", "kind", "passages", "remembered", "notes")  # of a list
STEP_KEYS = ("path", "outcome", "document", "notes")  # of a file that was remembered
Schema = dict[str, Any]
Arguments = Mapping[str, Any]
ToolAction = Callable[["Memory", Arguments, OnProgress], dict[str, Any]]


class MemoryTool(NamedTuple):
    """A tool that acts on one memory; implements ``mnemic.mcp.protocol.Tool``."""

    name: str
    properties: Schema
    required: tuple[str, ...]
    hints: dict[str, bool]
    action: ToolAction  # its docstring is the tool's description
    memory: Any = None

    @property
    def descriptor(self) -> dict[str, Any]:
        """The descriptor that `tools/list` returns."""
        schema: Schema = {"type": "object", "properties": self.properties, "required": list(self.required)}
        schema["additionalProperties"] = False
        names = {"name": self.name, "description": self.action.__doc__}
        return names | {"inputSchema": schema, "annotations": self.hints}

    def __call__(self, arguments: Arguments, on_progress: OnProgress) -> dict[str, Any]:
        """Check the arguments and run the action."""
        check_arguments(self.descriptor["inputSchema"], arguments)
        return self.action(self.memory, arguments, on_progress)


def string_schema(description: str) -> Schema:
    return {"type": "string", "description": description}


def integer_schema(description: str, default: int, maximum: int, minimum: int = 1) -> Schema:
    limits = {"default": default, "minimum": minimum, "maximum": maximum}
    return {"type": "integer", "description": description} | limits


def list_schema(description: str, items: Schema) -> Schema:
    return {"type": "array", "items": items, "minItems": 1, "description": description}


def search_passages(memory: "Memory", arguments: Arguments, on_progress: OnProgress) -> dict[str, Any]:
    """Find passages in the user's memory by their words and their meaning, best first."""
    rows = []
    for hit in memory.search(arguments["query"], arguments.get("most", NUM_SHOWN)):
        location = {"document": hit.document, "name": hit.name, "page": hit.page, "line": hit.sentences[0].line}
        rows.append(location | {"text": hit.text, "weight": round(hit.weight, 4)})
    return {"found": rows}


def ask_question(memory: "Memory", arguments: Arguments, on_progress: OnProgress) -> dict[str, Any]:
    """Answer a question from the user's memory with a verbatim quotation, and show the evidence."""
    ask_kwargs = {name: arguments[name] for name in ("hops", "passages") if name in arguments}
    answer = answer_to_dict(memory.ask(arguments["question"], **ask_kwargs))
    return answer | {"evidence": answer["evidence"][:NUM_SHOWN]}


def list_documents(memory: "Memory", arguments: Arguments, on_progress: OnProgress) -> dict[str, Any]:
    """List the documents in the user's memory with their numbers, oldest first."""
    after, limit = arguments.get("after", 0), arguments.get("most", MAX_RESULTS)
    newer_documents = (document for document in memory.store.list_documents() if document.id > after)
    documents = list(islice(newer_documents, limit))
    rows = [{key: getattr(document, key) for key in DOCUMENT_KEYS} for document in documents]
    next_page = {"next_after": documents[-1].id} if len(documents) == limit else {}
    return {"documents": rows, "total": memory.stats().documents} | next_page


def update_document(memory: "Memory", arguments: Arguments, on_progress: OnProgress) -> dict[str, Any]:
    """Replace a document by a new text; the old version stays in its history."""
    document_id = memory.document(arguments["document"]).id
    return {"before": document_id, "document": memory.update(document_id, arguments["text"])}


def forget_documents(memory: "Memory", arguments: Arguments, on_progress: OnProgress) -> dict[str, Any]:
    """Erase documents with all their versions permanently. Ask the user first."""
    report = memory.forget(*arguments["documents"], verify=arguments.get("verify", False))
    if report.traces:
        raise ValueError(f"forgotten, but {len(report.traces)} traces are left in the files")
    documents = [{"document": document.id, "name": document.name} for document in report.documents]
    return {"forgotten": documents, "scrubbed": report.scrubbed, "verified": report.traces is not None}


@dataclass(frozen=True)
class RememberAction:
    """Remember a text or files permanently; known content is not stored twice."""

    folders: tuple[Path, ...]

    def __call__(self, memory: "Memory", arguments: Arguments, on_progress: OnProgress) -> dict[str, Any]:
        """Remember a text, or files of the allowed folders with progress reports."""
        if ("text" in arguments) == ("paths" in arguments):
            choice = "'text' or 'paths'" if self.folders else "'text'"
            raise ValueError(f"nothing to remember, or two things at once: give {choice}")
        if "text" in arguments:
            return {"document": memory.note(arguments["text"], arguments.get("title", ""))}
        paths = [self.resolve_allowed_path(path) for path in arguments["paths"]]
        files = []
        with closing(memory.remembering(paths)) as steps:  # releases the memory if the request is canceled
            for step in steps:
                on_progress(step.done, max(step.total, 1), step.path)
                files += [step] if step.outcome != "reading" else []
        changed = [step for step in files if step.outcome != "unchanged" or step.notes]
        rows = [{key: getattr(step, key) for key in STEP_KEYS} for step in changed]
        return {"files": rows, "unchanged": len(files) - len(changed)}

    def resolve_allowed_path(self, path: str) -> Path:
        """Resolve a path; raise if it is outside the allowed folders."""
        resolved_path = Path(path).expanduser().resolve()
        if not any(resolved_path.is_relative_to(folder) for folder in self.folders):
            allowed_folders = ", ".join(map(str, self.folders))
            raise ValueError(f"{path} is not in a folder that may be read here: {allowed_folders}")
        return resolved_path


def build_tools(memory: "Memory", folders: Sequence[Path], *, read_only: bool) -> dict[str, MemoryTool]:
    """Build the tools of a memory by name; ``read_only`` omits those that write."""
    properties = REMEMBER_ARGUMENTS | ({"paths": PATHS_SCHEMA} if folders else {})
    remember = MemoryTool("remember", properties, (), WRITE_HINTS, RememberAction(tuple(folders)))
    tools = READ_TOOLS if read_only else (*READ_TOOLS, remember, *WRITE_TOOLS)
    return {tool.name: tool._replace(memory=memory) for tool in tools}


DOCUMENT_SCHEMA = {"type": "integer", "description": "The document's number.", "minimum": 1}
PATHS_SCHEMA = list_schema("Files or folders to read, instead of a text.", string_schema("A path."))
SEARCH_ARGUMENTS = {
    "query": string_schema("Words or a question."),
    "most": integer_schema("Maximum number of passages.", NUM_SHOWN, MAX_RESULTS),
}
ASK_ARGUMENTS = {
    "question": string_schema("A question."),
    "hops": integer_schema("Number of reads; later ones also use the passages found before.", 1, 4),
    "passages": integer_schema("Number of passages to read per hop.", NUM_SHOWN, MAX_RESULTS),
}
LIST_ARGUMENTS = {
    "most": integer_schema("Maximum number of documents.", MAX_RESULTS, 1000),
    "after": integer_schema("Only documents with a higher number.", 0, 1 << 53, 0),
}
REMEMBER_ARGUMENTS = {
    "text": string_schema("The text to remember, in full sentences that can be understood alone."),
    "title": string_schema("A short name for it."),
}
UPDATE_ARGUMENTS = {"document": DOCUMENT_SCHEMA, "text": string_schema("The new text.")}
FORGET_ARGUMENTS = {
    "documents": list_schema("Documents' numbers.", DOCUMENT_SCHEMA),
    "verify": {"type": "boolean", "description": "Also search the raw files for traces."},
}
READ_TOOLS = (
    MemoryTool("search", SEARCH_ARGUMENTS, ("query",), READ_HINTS, search_passages),
    MemoryTool("ask", ASK_ARGUMENTS, ("question",), READ_HINTS, ask_question),
    MemoryTool("list", LIST_ARGUMENTS, (), READ_HINTS, list_documents),
)
WRITE_TOOLS = (
    MemoryTool("update", UPDATE_ARGUMENTS, ("document", "text"), WRITE_HINTS, update_document),
    MemoryTool("forget", FORGET_ARGUMENTS, ("documents",), ERASE_HINTS, forget_documents),
)
