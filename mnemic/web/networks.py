"""The trained networks of a server: those that ship, and others from folders."""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from mnemic.checkpoint import shipped
from mnemic.store.retrieve.models import THREAD_LIMIT, import_torch
from mnemic.web.problems import Problem
from mnemic.web.schemas.networks import ModelInfo, ModelSource

if TYPE_CHECKING:
    from mnemic.predict.model import Model

MAX_LOADED = 4  # networks that stay in memory
DEFAULT_TEXT_MODEL = "bert-mass"


class NetworkTable:
    """Networks by their names; those that were used last stay loaded."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders: dict[str, Path] = {name: Path(name) for name in shipped.list_networks()}
        for folder in folders:
            name, number = folder.name, 2
            while name in self.folders:
                name, number = f"{folder.name}-{number}", number + 1
            self.folders[name] = folder
        self.lock = Lock()
        self.loaded: OrderedDict[str, Model] = OrderedDict()
        self.methods: dict[str, tuple[str, ...]] = {}

    def load(self, name: str, method: str) -> "Model":
        """Return a network that has a method; raise a problem if there is none."""
        if name not in self.folders:
            raise Problem(404, f"There is no network {name[:80]!r}; there are: {', '.join(self.folders)}.")
        with self.lock:
            if name not in self.loaded:
                import_torch()
                import mnemic

                with THREAD_LIMIT.apply():
                    self.loaded[name] = mnemic.load(self.folders[name])
                self.methods[name] = tuple(self.loaded[name].methods)
                while len(self.loaded) > MAX_LOADED:
                    self.loaded.popitem(last=False)
            self.loaded.move_to_end(name)
            model = self.loaded[name]
        if method not in model.methods:
            able = [title for title in self.folders if method in self.methods.get(title, ())]
            hint = f"; others can: {', '.join(able)}" if able else ""
            raise Problem(422, f"The network {name!r} cannot {method}, but {', '.join(model.methods)}{hint}.")
        return model

    def list_infos(self) -> list[ModelInfo]:
        """Describe all networks; the first time, each is loaded once."""
        return [self.describe(name) for name in self.folders]

    def describe(self, name: str) -> ModelInfo:
        """Describe a network by its card, or without one by its recipe."""
        folder = self.folders[name]
        if name not in self.methods:
            import_torch()
            import mnemic

            with THREAD_LIMIT.apply():
                self.methods[name] = tuple(mnemic.load(folder).methods)
        is_shipped = folder == Path(name)
        card: dict[str, Any] = shipped.read_card(name) if is_shipped else {}
        return ModelInfo(
            name=name,
            methods=list(self.methods[name]),
            description=shipped.summarize_card(card) if card else f"the network of the folder {folder.name}",
            license=card.get("license"),
            sources=[ModelSource(**source) for source in card.get("sources", [])],
            bytes=shipped.size_in_bytes(shipped.WEIGHTS / name if is_shipped else folder),
            tasks=card.get("data", {}).get("tasks", []),
            command=card.get("command"),
        )
