"""The state of a memory that has read texts: save, load and edit it.

It holds the memory's tensors and the origin of each slot's content in the text, but no copy of the
text. Evidence is offsets into the original text; a text that has a name can be found again.

Shapes: u units (tokens or sentences) that were read, t snapshots of the slots, s slots, r units per
slot.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from numbers import Integral
from pathlib import Path
from stat import S_IMODE, S_IWUSR
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from mnemic.files import replace_file
from mnemic.memory import MEMORIES
from mnemic.predict.results import SlotEvidence
from mnemic.predict.slot_evidence import rank_slots
from mnemic.recipe import select_kinds
from mnemic.recipe.migrate import KINDS

MAX_SNAPSHOTS = 1024  # of the slots; of longer texts they are farther apart
TEXT_FIELDS = ("kind", "network", "origin")
TENSOR_FIELDS = ("spans", "worth", "history")
COUNT_FIELDS = ("characters", "seen", "total", "segments", "stride")


class TextRecord(NamedTuple):
    """Name, length and digest of a text that was read."""

    name: str  # its origin, such as a path; "" if unknown
    characters: int
    digest: str  # SHA-256 of the text

    @classmethod
    def from_text(cls, text: str, name: str) -> "TextRecord":
        """Create the record of a text."""
        hasher = sha256(text.encode("utf-8", "surrogatepass"))
        return cls(name, len(text), hasher.hexdigest())


class StateError(ValueError):
    """A state cannot be saved, loaded or used with this network."""


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """An immutable memory of the texts that a network has read.

    >>> text = "The museum was founded by Edith Marlowe in 1897. Visitors pay nothing on Sundays."
    >>> model = mnemic.load("bert-mass")
    >>> state = model.remember(text, name="museum.txt")
    >>> state
    State(selective: 1 texts, 17 of 17 tokens, 2 of 256 slots filled)
    >>> [text[slot.sources[0].start : slot.sources[0].end] for slot in state.contents()]
    ['The museum was founded by Edith Marlowe in 1897.', 'Visitors pay nothing on Sundays.']
    >>> state.forget(0, 48).filled  # a new state without the first sentence
    1
    >>> state.save("museum.mem")
    >>> model.load_state("museum.mem") == state
    True
    """

    kind: str  # of the memory
    network: str  # digest of the weights that wrote it: another network could not read it
    memory: Any  # the memory's tensors
    spans: Tensor  # u 2, character offsets of each unit in all texts, joined
    worth: Tensor  # u, salience: the controller's probability of storing each unit
    history: Tensor  # t s, largest unit of each slot, every ``stride`` segments; -1 = none
    stride: int = 1  # segments between two snapshots of ``history``
    segments: int = 0  # number of segments that were read
    characters: int = 0  # length of all texts
    seen: int = 0  # tokens that the network has read
    total: int = 0  # tokens of all texts: as many
    texts: tuple[TextRecord, ...] = ()  # in reading order
    origin: str = field(default="", compare=False)  # path or name of the network, if known

    def __eq__(self, state: object) -> bool:
        """Compare two states bit by bit, but for the ``origin`` of their networks."""
        if not isinstance(state, State):
            return NotImplemented
        names = [attribute.name for attribute in fields(State) if attribute.compare]
        return all(is_equal(getattr(self, name), getattr(state, name)) for name in names)

    def __repr__(self) -> str:
        read = f"{self.seen} of {self.total} tokens, {self.filled} of {self.slots} slots filled"
        return f"State({self.kind}: {len(self.texts)} texts, {read})"

    __hash__ = None  # type: ignore[assignment]  # tensors have no hash of their values

    @property
    def filled(self) -> int:
        """Number of slots that are filled."""
        return int(self.memory.mask.sum())

    @property
    def slots(self) -> int:
        """Number of slots."""
        return self.history.shape[1]

    def contents(self) -> tuple[SlotEvidence, ...]:
        """List the filled slots with the spans written into them, in text order.

        A slot's ``weight`` is the salience of its largest source.
        """
        sources, shares = (tensor[0] for tensor in self.memory.origins)  # s r
        if not self.filled:
            return ()
        largest = sources.gather(-1, shares.argmax(-1, keepdim=True)).squeeze(-1)  # s
        salience = self.worth[largest.clamp(min=0)]
        slots = rank_slots(torch.ones(len(sources)), sources, shares, self.spans.tolist())
        ranked = (slot._replace(weight=float(salience[slot.number])) for slot in slots)
        return tuple(sorted(ranked, key=lambda slot: slot.sources[0].start))

    def forget(self, start: int, end: int) -> "State":
        """Clear every slot that holds a unit of ``text[start:end]``, and the salience of the units.

        Offsets count characters of all texts that were read, joined. An empty span, or one without
        units, changes nothing: the same state is returned. For exact forgetting read the text again
        without the span: other tokens were encoded with it in their context.
        """
        are_integers = all(isinstance(offset, Integral) and not isinstance(offset, bool) for offset in (start, end))
        if not (are_integers and 0 <= start <= end):
            raise ValueError(
                f"forget takes a start and an end, 0 ≤ start ≤ end, not {start!r} and {end!r}: "
                "characters, counted through all texts that were read"
            )
        start, end = (min(int(offset), self.characters) for offset in (start, end))
        if start == end:
            return self
        is_inside = (self.spans[:, 0] < end) & (self.spans[:, 1] > start)
        unit_ids = is_inside.nonzero().flatten()
        if not len(unit_ids):
            return self
        first, last = int(unit_ids.min()), int(unit_ids.max()) + 1
        is_forgotten = (self.history >= first) & (self.history < last)
        return replace(
            self,
            memory=self.memory.forget(first, last),
            worth=self.worth.masked_fill(is_inside, 0.0),
            history=self.history.masked_fill(is_forgotten, -1),
        )

    def save(self, path: str | Path) -> None:
        """Save the state as one safetensors file, atomically: write a temporary file, rename it.

        An existing file that is no memory is not overwritten: that raises a ``StateError``. The new
        file has the permissions of the one it replaces; a link is followed, not replaced.
        """
        path = Path(path).resolve()
        check_save_path(path)
        if path.exists():
            read_metadata(path)  # only a memory is overwritten
        tensors = {f"memory.{name}": tensor for name, tensor in self.memory._asdict().items()}
        tensors |= {name: getattr(self, name) for name in TENSOR_FIELDS}
        header = {name: str(getattr(self, name)) for name in TEXT_FIELDS + COUNT_FIELDS}
        header["texts"] = json.dumps(self.texts)
        header["digest"] = compute_digest(tensors, header)
        payload = save({name: tensor.contiguous() for name, tensor in tensors.items()}, metadata=header)
        try:
            with replace_file(path) as file:
                if path.exists() and os.name != "nt":  # before it has content
                    os.fchmod(file.fileno(), S_IMODE(path.stat().st_mode) | S_IWUSR)
                file.write(payload)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None


def check_save_path(path: Path) -> None:
    """Raise a StateError if no state can be saved at ``path``."""
    if path.is_dir():
        raise StateError(f"{path} is a folder; give a file for the memory, say {path / 'notes.mem'}")
    if not path.absolute().parent.is_dir():
        raise StateError(f"there is no folder {str(path.parent)!r} for the memory; make it first")


def read_metadata(path: Path) -> dict[str, str]:
    """Read the metadata of a state file; raise a StateError if ``path`` is none."""
    expected = "expected a file that mnemic text read or State.save wrote; give another one"
    if not path.is_file():
        raise StateError(f"{path} is no memory, and no file; {expected}")
    path.open("rb").close()  # its error names the cause; that of safetensors does not
    try:
        with safe_open(path, "pt") as file:
            header = file.metadata() or {}
    except SafetensorError as error:
        raise StateError(f"{path} is no memory ({error}); {expected}") from None
    if not {"kind", "network"} <= header.keys():
        raise StateError(f"{path} is no memory; {expected}")
    return header


def load_state_file(path: str | Path) -> State:
    """Load a state that ``State.save`` wrote, of any network."""
    path = Path(path)
    if not path.exists():
        raise StateError(f"there is no memory {str(path)!r}; read a text into one: mnemic text read FILE TEXT")
    header = read_metadata(path)
    kind = KINDS["memory"].get(header["kind"], header["kind"])
    memories: dict[str, Any] = select_kinds(MEMORIES, carries_segments=True)
    if kind not in memories:
        raise StateError(f"{path} holds no memory of a kind known here: {header['kind']!r}")
    with safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    memory_class = memories[kind].State
    memory_fields = {f"memory.{name}": name for name in memory_class._fields}
    if tensors.keys() != {*memory_fields, *TENSOR_FIELDS} or not {*TEXT_FIELDS, *COUNT_FIELDS} <= header.keys():
        raise StateError(f"{path} is not whole, or of another version; read the text again")
    state_kwargs: dict[str, Any] = {name: header[name] for name in TEXT_FIELDS} | {"kind": kind}
    state_kwargs |= {name: tensors[name] for name in TENSOR_FIELDS}
    try:
        state_kwargs |= {name: int(header[name]) for name in COUNT_FIELDS}
        state_kwargs["texts"] = tuple(TextRecord(*entry) for entry in json.loads(header.get("texts", "[]")))
    except (ValueError, TypeError) as error:
        raise StateError(f"{path} is damaged ({error}); read the text again") from None
    state = State(memory=memory_class(**{name: tensors[key] for key, name in memory_fields.items()}), **state_kwargs)
    reason = find_inconsistency(state)
    # files of old versions have no digest
    if not reason and header.pop("digest", "") not in ("", compute_digest(tensors, header)):
        reason = "it holds other bytes than were saved"
    if reason:
        raise StateError(f"{path} is damaged ({reason}); read the text again")
    return state


def find_inconsistency(state: State) -> str:
    """Describe a contradiction between the fields of a state; empty if there is none."""
    try:
        sources, shares = state.memory.origins  # b s r
    except RuntimeError:
        return "slots and where they came from are not as many"
    num_units, num_characters = len(state.spans), state.characters
    for record in state.texts:
        if not (isinstance(record.name, str) and isinstance(record.characters, int)):
            return f"a text record is {record}"
    if state.spans.shape != (num_units, 2) or state.worth.shape != (num_units,):
        return f"{num_units} units have {len(state.worth)} salience values"
    first, last = state.spans.unbind(1)
    if not bool(((first >= 0) & (first <= last) & (last <= num_characters)).all()):
        return f"a unit is no span of the {num_characters} characters that were read"
    if sources.shape != shares.shape or sources.shape[:-1] != state.memory.mask.shape:
        return "slots and where they came from are not as many"
    if sources.numel() and int(sources.max()) >= num_units:
        return f"a slot came from a unit that is none of the {num_units}"
    if min(state.characters, state.seen, state.total, state.segments) < 0 or state.stride < 1:
        return "a count is below zero"
    return ""


def compute_digest(tensors: Mapping[str, Tensor], header: Mapping[str, str]) -> str:
    """Compute the SHA-256 of a state file's tensors and metadata."""
    hasher = sha256(json.dumps(dict(sorted(header.items()))).encode())
    for name, tensor in sorted(tensors.items()):
        hasher.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        hasher.update(tensor.contiguous().flatten().view(torch.uint8).numpy().data)
    return hasher.hexdigest()


def is_equal(first: Any, second: Any) -> bool:
    """Return whether two values are equal; tensors, also in tuples, by dtype and content."""
    if isinstance(first, Tensor):
        return first.dtype == second.dtype and torch.equal(first, second)
    if isinstance(first, tuple):
        return len(first) == len(second) and all(map(is_equal, first, second))
    return bool(first == second)


def thin_snapshots(snapshots: Tensor, stride: int) -> tuple[Tensor, int]:
    """Thin snapshots (t s) to at most ``MAX_SNAPSHOTS``; return them and their new stride."""
    while len(snapshots) > MAX_SNAPSHOTS:
        snapshots, stride = snapshots[1::2], 2 * stride
    return snapshots, stride


def hash_weights(network: nn.Module) -> str:
    """Compute the SHA-256 of a network's weights: only equal weights can read a state."""
    hasher = sha256()
    for name, weight in sorted(network.state_dict().items()):
        hasher.update(name.encode())
        hasher.update(weight.detach().to("cpu", torch.float32).numpy().tobytes())
    return hasher.hexdigest()
