"""What a network remembers of what it has read: a value that is kept, edited and gone on with.

It holds tensors, and where in the text each slot came from; no copy of the text. Evidence is
offsets, which quote the text as it was given; a text that has a name can be found again.

Shapes: u units (tokens or sentences) that were read, t looks at the slots, s slots.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from numbers import Integral
from pathlib import Path
from secrets import token_hex
from stat import S_IMODE, S_IWUSR
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from mnemic.memory.blended import Blended
from mnemic.memory.selective import Chosen
from mnemic.predict.results import Slot
from mnemic.predict.slot_evidence import slots_read

MEMORIES: dict[str, Any] = {"bert-mass": Blended, "keeps": Chosen}
LOOKS = 1024  # at the slots that are kept; of longer texts they stand farther apart
TOLD = ("kind", "network", "origin")
TENSORS = ("spans", "worth", "history")
COUNTS = ("characters", "seen", "total", "segments", "stride")


class Text(NamedTuple):
    """One of the texts that were read."""

    name: str  # where it came from, such as a path; "": nobody said
    characters: int
    digest: str  # the same for the same text

    @classmethod
    def of(cls, text: str, name: str) -> "Text":
        whole = sha256(text.encode("utf-8", "surrogatepass"))
        return cls(name, len(text), whole.hexdigest())


class StateError(ValueError):
    """A state cannot be kept, read or used with this network; the message says why."""


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """What is remembered, and how it came about; every change makes a new one."""

    kind: str  # of the memory
    network: str  # whose it is, by its weights: another one could not read it
    memory: Any  # the memory's own tensors
    spans: Tensor  # u 2, where each unit stands in all that was read, one text after another
    worth: Tensor  # u, how much the controller thought each was worth storing, from 0 to 1
    history: Tensor  # t s, the unit each slot held most of, every ``stride`` segments; -1 = none
    stride: int = 1
    segments: int = 0
    characters: int = 0
    seen: int = 0  # tokens that went through the network
    total: int = 0  # tokens there were: as many
    texts: tuple[Text, ...] = ()  # one after another, in the order they were read
    origin: str = field(default="", compare=False)  # where the network was found, if that is known

    def __eq__(self, other: object) -> bool:
        """Whether the same is remembered of the same, bit by bit; wherever the network was."""
        if not isinstance(other, State):
            return NotImplemented
        names = [own.name for own in fields(State) if own.compare]
        return all(same(getattr(self, name), getattr(other, name)) for name in names)

    def __repr__(self) -> str:
        read = f"{self.seen} of {self.total} tokens, {self.filled} of {self.slots} slots filled"
        return f"State({self.kind}: {len(self.texts)} texts, {read})"

    __hash__ = None  # type: ignore[assignment]  # as of all that is compared by its tensors

    @property
    def filled(self) -> int:
        """How many slots hold something."""
        return int(self.memory.mask.sum())

    @property
    def slots(self) -> int:
        """How many slots there are."""
        return self.history.shape[1]

    def contents(self) -> tuple[Slot, ...]:
        """What every filled slot came from, in the order of the texts.

        Its ``weight`` is how much the controller thought its largest source worth storing.
        """
        sources, shares = (part[0] for part in self.memory.origins)  # s r
        if not self.filled:
            return ()
        largest = sources.gather(-1, shares.argmax(-1, keepdim=True)).squeeze(-1)  # s
        worth = self.worth[largest.clamp(min=0)]
        held = slots_read(torch.ones(len(sources)), sources, shares, self.spans.tolist())
        told = (own._replace(weight=float(worth[own.number])) for own in held)
        return tuple(sorted(told, key=lambda own: own.sources[0].start))

    def forget(self, start: int, end: int) -> "State":
        """Clear every slot that a unit within ``text[start:end]`` went into; the controller too.

        Offsets count characters through all texts that were read. A stretch that is empty, or that
        nothing was read from, changes nothing: the same state comes back.
        Exact forgetting is reading again without it: what other tokens knew of it is still there.
        """
        whole = all(isinstance(own, Integral) and not isinstance(own, bool) for own in (start, end))
        if not (whole and 0 <= start <= end):
            raise ValueError(
                f"forget takes a start and an end, 0 ≤ start ≤ end, not {start!r} and {end!r}: "
                "characters, counted through all texts that were read"
            )
        start, end = (min(int(own), self.characters) for own in (start, end))
        if start == end:
            return self
        inside = (self.spans[:, 0] < end) & (self.spans[:, 1] > start)
        numbers = inside.nonzero().flatten()
        if not len(numbers):
            return self
        first, last = int(numbers.min()), int(numbers.max()) + 1
        gone = (self.history >= first) & (self.history < last)
        return replace(
            self,
            memory=self.memory.forget(first, last),
            worth=self.worth.masked_fill(inside, 0.0),
            history=self.history.masked_fill(gone, -1),
        )

    def save(self, path: str | Path) -> None:
        """One file of plain tensors, written beside its place and renamed.

        A file that is there and is no memory stays: that is a ``StateError``. Who may read a memory
        that is there may read the new one; a link goes on to lead to it.
        """
        path = Path(path).resolve()
        check_place(path)
        if path.exists():
            metadata(path)  # nothing but a memory is written over
        parts = {f"memory.{name}": part for name, part in self.memory._asdict().items()}
        parts |= {name: getattr(self, name) for name in TENSORS}
        told = {name: str(getattr(self, name)) for name in TOLD + COUNTS}
        told["texts"] = json.dumps(self.texts)
        told["digest"] = digest(parts, told)
        whole = save({name: part.contiguous() for name, part in parts.items()}, metadata=told)
        beside = path.with_name(f".{path.name}.{token_hex(4)}.new")  # of this writer alone
        try:
            beside.touch()
            if path.exists():  # before there is anything to read in it
                beside.chmod(S_IMODE(path.stat().st_mode) | S_IWUSR)
            beside.write_bytes(whole)
            beside.replace(path)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None
        finally:
            beside.unlink(missing_ok=True)


def check_place(path: Path) -> None:
    """Say at once, before a text is read for nothing, why no memory can be kept at ``path``."""
    if path.is_dir():
        raise StateError(
            f"{path} is a folder; give a file for the memory, say {path / 'notes.mem'}"
        )
    if not path.absolute().parent.is_dir():
        raise StateError(f"there is no folder {str(path.parent)!r} for the memory; make it first")


def metadata(path: Path) -> dict[str, str]:
    """What a memory says of itself; an error if ``path`` is none, or may not be read."""
    expected = "expected a file that mnemic read --state or State.save wrote; give another one"
    if not path.is_file():
        raise StateError(f"{path} is no memory, and no file; {expected}")
    path.open("rb").close()  # whose error says what is wrong; that of safetensors does not
    try:
        with safe_open(path, "pt") as file:
            told = file.metadata() or {}
    except SafetensorError as error:
        raise StateError(f"{path} is no memory ({error}); {expected}") from None
    if not {"kind", "network"} <= told.keys():
        raise StateError(f"{path} is no memory; {expected}")
    return told


def read_state(path: str | Path) -> State:
    """What ``State.save`` wrote."""
    path = Path(path)
    if not path.exists():
        raise StateError(
            f"there is no memory {str(path)!r}; read a text into one: mnemic read --model DIR "
            "--state FILE TEXT"
        )
    told = metadata(path)
    if told["kind"] not in MEMORIES:
        raise StateError(f"{path} holds no memory of a kind known here: {told['kind']!r}")
    with safe_open(path, "pt") as file:
        parts = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    form = MEMORIES[told["kind"]]
    own = {f"memory.{name}": name for name in form._fields}
    if parts.keys() != {*own, *TENSORS} or not {*TOLD, *COUNTS} <= told.keys():
        raise StateError(f"{path} is not whole, or of another version; read the text again")
    words: dict[str, Any] = {name: told[name] for name in TOLD}
    words |= {name: parts[name] for name in TENSORS}
    try:
        words |= {name: int(told[name]) for name in COUNTS}
        words["texts"] = tuple(Text(*own) for own in json.loads(told.get("texts", "[]")))
    except (ValueError, TypeError) as error:
        raise StateError(f"{path} is damaged ({error}); read the text again") from None
    state = State(memory=form(**{name: parts[key] for key, name in own.items()}), **words)
    reason = disagreement(state)
    if not reason and told.pop("digest", "") not in ("", digest(parts, told)):  # old ones have none
        reason = "it holds other bytes than were saved"
    if reason:
        raise StateError(f"{path} is damaged ({reason}); read the text again")
    return state


def disagreement(state: State) -> str:
    """What cannot be true of a state that was written as a whole; nothing if all may be."""
    try:
        sources, shares = state.memory.origins  # b s r
    except RuntimeError:
        return "slots and where they came from are not as many"
    units, edge = len(state.spans), state.characters
    for own in state.texts:
        if not (isinstance(own.name, str) and isinstance(own.characters, int)):
            return f"a text is told as {own}"
    if state.spans.shape != (units, 2) or state.worth.shape != (units,):
        return f"places of {units} units have a worth for {len(state.worth)}"
    first, last = state.spans.unbind(1)
    if not bool(((first >= 0) & (first <= last) & (last <= edge)).all()):
        return f"a unit is no stretch of the {edge} characters that were read"
    if sources.shape != shares.shape or sources.shape[:-1] != state.memory.mask.shape:
        return "slots and where they came from are not as many"
    if sources.numel() and int(sources.max()) >= units:
        return f"a slot came from a unit that is none of the {units}"
    if min(state.characters, state.seen, state.total, state.segments) < 0 or state.stride < 1:
        return "a count is below zero"
    return ""


def digest(parts: Mapping[str, Tensor], told: Mapping[str, str]) -> str:
    """The same for the same tensors and words."""
    whole = sha256(json.dumps(dict(sorted(told.items()))).encode())
    for name, part in sorted(parts.items()):
        whole.update(f"{name} {part.dtype} {list(part.shape)}".encode())
        whole.update(part.contiguous().flatten().view(torch.uint8).numpy().data)
    return whole.hexdigest()


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, tensors and tuples of them by what they hold."""
    if isinstance(one, Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def thinned(looks: Tensor, stride: int) -> tuple[Tensor, int]:
    """At most ``LOOKS`` looks (t s), evenly apart, and how many segments apart they are."""
    while len(looks) > LOOKS:
        looks, stride = looks[1::2], 2 * stride
    return looks, stride


def fingerprint(network: nn.Module) -> str:
    """The same for the same weights: what one network wrote, another cannot read."""
    whole = sha256()
    for name, weight in sorted(network.state_dict().items()):
        whole.update(name.encode())
        whole.update(weight.detach().to("cpu", torch.float32).numpy().tobytes())
    return whole.hexdigest()
