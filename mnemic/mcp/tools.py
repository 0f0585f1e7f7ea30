"""What an assistant may do with a lasting memory: search, ask, list, remember, update, forget."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mnemic.mcp.arguments import check_arguments
from mnemic.mcp.protocol import Call
from mnemic.store.answers import SHOWN, report

if TYPE_CHECKING:
    from mnemic.store import Memory

MOST = 50  # passages of a search, and documents of a list
INSTRUCTIONS = (
    "A lasting memory of the user's documents and notes, on this machine. Use `ask` for a question "
    "with a short answer and `search` for passages to read; both quote verbatim and say where the "
    "words stand: tell the user the file and line or page. Use `remember` for what should be known "
    "later, `update` when it is no longer true. `forget` is for good: ask the user first."
)
Arguments = Mapping[str, Any]
Act = Callable[["Memory", Arguments, Call], dict[str, Any]]


class MemoryTool(NamedTuple):
    """A tool of one memory; see ``mcp_protocol.Tool``."""

    memory: "Memory"
    described: dict[str, Any]
    act: Act

    def __call__(self, arguments: Arguments, call: Call) -> dict[str, Any]:
        check_arguments(self.described["inputSchema"], arguments)
        return self.act(self.memory, arguments, call)


def words(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def whole(description: str, usual: int, high: int, low: int = 1) -> dict[str, Any]:
    told = {"type": "integer", "description": description, "default": usual}
    return told | {"minimum": low, "maximum": high}


NUMBER = {"type": "integer", "description": "The document's number.", "minimum": 1}
NUMBERS = {"type": "array", "items": NUMBER, "minItems": 1, "description": "Documents' numbers."}
PATHS = {
    "type": "array",
    "items": words("A path."),
    "minItems": 1,
    "description": "Files or folders to read, instead of a text.",
}


def search(memory: "Memory", given: Arguments, call: Call) -> dict[str, Any]:
    hits = memory.search(given["query"], given.get("most", SHOWN))
    return {
        "found": [
            {
                "document": hit.document,
                "name": hit.name,
                "page": hit.page,
                "line": hit.sentences[0].line,
                "text": hit.text,
                "weight": round(hit.weight, 4),
            }
            for hit in hits
        ]
    }


def ask(memory: "Memory", given: Arguments, call: Call) -> dict[str, Any]:
    how = {name: given[name] for name in ("hops", "passages") if name in given}
    told = report(memory.ask(given["question"], **how))
    return told | {"evidence": told["evidence"][:SHOWN]}


def listed(memory: "Memory", given: Arguments, call: Call) -> dict[str, Any]:
    after, most = given.get("after", 0), given.get("most", MOST)
    fresh = (one for one in memory.store.documents() if one.id > after)
    found = list(islice(fresh, most))
    keys = ("id", "name", "title", "kind", "passages", "remembered", "notes")
    shown = [{key: getattr(one, key) for key in keys} for one in found]
    more = {"next_after": found[-1].id} if len(found) == most else {}
    return {"documents": shown, "total": memory.stats().documents} | more


def update(memory: "Memory", given: Arguments, call: Call) -> dict[str, Any]:
    before = memory.document(given["document"]).id
    return {"before": before, "document": memory.update(before, given["text"])}


def forget(memory: "Memory", given: Arguments, call: Call) -> dict[str, Any]:
    done = memory.forget(*given["documents"], verify=given.get("verify", False))
    if done.remains:
        raise ValueError(f"forgotten, but {len(done.remains)} traces are left in the files")
    gone = [{"document": one.id, "name": one.name} for one in done.documents]
    return {"forgotten": gone, "scrubbed": done.scrubbed, "verified": done.remains is not None}


@dataclass(frozen=True)
class Remember:
    """Remembers texts, and files of the folders that the person who started the server named."""

    folders: tuple[Path, ...]

    def __call__(self, memory: "Memory", given: Arguments, call: Call) -> dict[str, Any]:
        if ("text" in given) == ("paths" in given):
            choice = "'text' or 'paths'" if self.folders else "'text'"
            raise ValueError(f"nothing to remember, or two things at once: give {choice}")
        if "text" in given:
            return {"document": memory.note(given["text"], given.get("title", ""))}
        paths = [self.allowed(path) for path in given["paths"]]
        files = []
        with closing(memory.remembering(paths)) as steps:  # cancelled, it lets go of the memory
            for step in steps:
                call.progress(step.done, max(step.total, 1), step.path)
                if step.outcome != "reading":
                    files.append(step)
        keys = ("path", "outcome", "document", "notes")
        changed = [step for step in files if step.outcome != "unchanged" or step.notes]
        shown = [{key: getattr(step, key) for key in keys} for step in changed]
        return {"files": shown, "unchanged": len(files) - len(changed)}

    def allowed(self, path: str) -> Path:
        real = Path(path).expanduser().resolve()
        if not any(real.is_relative_to(folder) for folder in self.folders):
            open_ones = ", ".join(map(str, self.folders))
            raise ValueError(f"{path} is not in a folder that may be read here: {open_ones}")
        return real


def tools_of(
    memory: "Memory", folders: Sequence[Path], *, read_only: bool
) -> dict[str, MemoryTool]:
    """The tools of a memory; without those that write, if it is only to be read."""
    texts = TEXTS | ({"paths": PATHS} if folders else {})
    remember = Described("remember", REMEMBER, texts, [], ADDING)
    chosen: list[tuple[Described, Act]] = (
        READERS if read_only else [*READERS, (remember, Remember(tuple(folders))), *WRITERS]
    )
    return {how.name: MemoryTool(memory, how.shown(), act) for how, act in chosen}


class Described(NamedTuple):
    """What a client is told of a tool."""

    name: str
    description: str
    properties: dict[str, Any]
    required: list[str]
    hints: dict[str, bool]

    def shown(self) -> dict[str, Any]:
        schema = {"type": "object", "properties": self.properties, "required": self.required}
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": schema | {"additionalProperties": False},
            "annotations": self.hints,
        }


SEARCH = "Find passages in the user's memory by their words and their meaning, best first."
ASK = "Answer a question from the user's memory with a verbatim quotation, and show the evidence."
LIST = "List the documents in the user's memory with their numbers, oldest first."
REMEMBER = "Remember something for good. What is there already is not stored twice."
UPDATE = "Supersede a document by a new text; the old version stays in its history."
FORGET = "Erase documents with all their versions, for good. Ask the user before."
READING = {"readOnlyHint": True, "openWorldHint": False}
ADDING = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False}
ERASING = ADDING | {"destructiveHint": True}
SOUGHT = {
    "query": words("Words, or a question."),
    "most": whole("How many passages.", SHOWN, MOST),
}
ASKED = {
    "question": words("A question."),
    "hops": whole("How often to read; a second time with what was found.", 1, 4),
    "passages": whole("How many passages to read closely, each hop.", SHOWN, MOST),
}
PAGED = {
    "most": whole("How many documents.", MOST, 1000),
    "after": whole("Only those with a higher number.", 0, 1 << 53, 0),
}
TEXTS = {
    "text": words("What to remember, in whole sentences that can be understood alone."),
    "title": words("A short name for it."),
}
CHANGED = {"document": NUMBER, "text": words("The new text.")}
PROOF = {"type": "boolean", "description": "Also look for traces in the raw files."}
READERS: list[tuple[Described, Act]] = [
    (Described("search", SEARCH, SOUGHT, ["query"], READING), search),
    (Described("ask", ASK, ASKED, ["question"], READING), ask),
    (Described("list", LIST, PAGED, [], READING), listed),
]
WRITERS: list[tuple[Described, Act]] = [
    (Described("update", UPDATE, CHANGED, ["document", "text"], ADDING), update),
    (
        Described(
            "forget", FORGET, {"documents": NUMBERS, "verify": PROOF}, ["documents"], ERASING
        ),
        forget,
    ),
]
