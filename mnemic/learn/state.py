"""What a network remembers of what it has read: a value that is kept, edited and gone on with.

It holds tensors, and where in the text each slot came from; no copy of the text. Evidence is
offsets, which quote the text as it was given; a text that has a name can be found again.

Shapes: u units (tokens or sentences) that were read, t looks at the slots, s slots.
"""

import json
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from mnemic.memory.bert_mass import Blended
from mnemic.memory.keeps import Chosen

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
    """A state cannot be read or does not belong to this network; the message says why."""


@dataclass(frozen=True)
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

    @property
    def filled(self) -> int:
        """How many slots hold something."""
        return int(self.memory.mask.sum())

    def forget(self, start: int, end: int) -> "State":
        """Clear every slot that a unit within ``text[start:end]`` went into; the controller too.

        Exact forgetting is reading again without it: what other tokens knew of it is still there.
        """
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
        """One file of plain tensors, written beside its place and renamed."""
        path = Path(path)
        parts = {f"memory.{name}": part for name, part in self.memory._asdict().items()}
        parts |= {name: getattr(self, name) for name in TENSORS}
        told = {name: str(getattr(self, name)) for name in TOLD + COUNTS}
        told["texts"] = json.dumps(self.texts)
        beside = path.with_name(f".{path.name}.new")
        save_file({name: part.contiguous() for name, part in parts.items()}, beside, metadata=told)
        beside.replace(path)


def read_state(path: str | Path) -> State:
    """What ``State.save`` wrote."""
    if not Path(path).is_file():
        raise StateError(
            f"there is no memory {str(path)!r}; read a text into one: mnemic read --model DIR "
            "--state FILE TEXT"
        )
    try:
        with safe_open(path, "pt") as file:
            told = file.metadata() or {}
            parts = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise StateError(f"{path} is no memory: {error}") from None
    if told.get("kind") not in MEMORIES or not {*TOLD, *COUNTS} <= told.keys():
        raise StateError(f"{path} holds no memory of a kind known here: {told.get('kind')!r}")
    form = MEMORIES[told["kind"]]
    own = {f"memory.{name}": name for name in form._fields}
    if parts.keys() != {*own, *TENSORS}:
        raise StateError(f"{path} is not whole, or of another version; read the text again")
    words: dict[str, Any] = {name: told[name] for name in TOLD}
    words |= {name: int(told[name]) for name in COUNTS}
    words |= {name: parts[name] for name in TENSORS}
    words["texts"] = tuple(Text(*own) for own in json.loads(told.get("texts", "[]")))
    return State(memory=form(**{name: parts[key] for key, name in own.items()}), **words)


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
