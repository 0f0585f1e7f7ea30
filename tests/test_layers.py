"""The layers of the package: imports point downwards, and need few packages."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import mnemic

ROOT = Path(mnemic.__file__).parent
# From top to bottom; a package may import those below it, never those above.
ROOMS = (
    "cli", "web", "mcp", "store", "reproduce", "train", "evaluate", "predict", "checkpoint", "objectives",
    "data", "models", "respond", "memory", "encode", "kernels", "text", "recipe", "files",
)  # fmt: skip
FRONT_DOORS = {"cli", "mcp", "web"}  # nothing imports them but a command, when it runs
SCREEN = {"typer", "click", "rich", "matplotlib"}  # only a command may need these
KERNELS = {path for path in (ROOT / "kernels").glob("*.py") if path.stem != "__init__"}  # need triton
ALLOWED = {"torch", "numpy", "tokenizers", "safetensors"}  # all that importing the library needs
MAX_LINES, MAX_FILES = 400, 20  # lines per file, Python files per folder


class Import(NamedTuple):
    """One imported module, and whether the import is inside a function."""

    path: Path
    line: int
    module: str
    inside: bool

    @property
    def description(self) -> str:
        return f"{self.path.relative_to(ROOT.parent)}:{self.line} imports {self.module}"


FILES = sorted(ROOT.rglob("*.py"))
PICKLING = {"pickle", "cPickle", "dill", "joblib", "shelve", "marshal", "cloudpickle", "torch.save", "torch.load"}


def walk(tree: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """Yield all nodes, and whether each is in a function or only for type checkers."""
    stack = [(tree, False)]
    while stack:
        node, inside = stack.pop()
        for child in ast.iter_child_nodes(node):
            typing = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
            later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or typing
            yield child, inside or later
            stack.append((child, inside or later))


def imports_of(path: Path, tree: ast.AST) -> Iterator[Import]:
    for node, inside in walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield Import(path, node.lineno, name.name, inside)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: name the whole module, without dots"
            for name in node.names:  # each may be a module itself: from mnemic.train import fit
                yield Import(path, node.lineno, f"{node.module}.{name.name}", inside)


def pickling_in(path: Path, tree: ast.AST) -> Iterator[str]:
    """Yield what writes or reads pickles: imports of such modules, torch.save and torch.load."""
    for imported in imports_of(path, tree):
        if {imported.module, imported.module.split(".")[0]} & PICKLING:
            yield imported.description
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in {"save", "load"} and ast.unparse(node) in PICKLING:
            yield f"{path.relative_to(ROOT.parent)}:{node.lineno} uses {ast.unparse(node)}"


@cache
def read_package() -> tuple[list[Import], list[str]]:
    """Read every file once: all imports, and all that pickles."""
    imports, pickling = list[Import](), list[str]()
    for path in FILES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imports += imports_of(path, tree)
        pickling += pickling_in(path, tree)
    return imports, pickling


@pytest.fixture(name="imports")
def imports_of_package() -> list[Import]:
    return read_package()[0]


def room_of_file(path: Path) -> str | None:
    """Return the layer of a file; ``__main__`` is a command, ``__init__`` has none."""
    first = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return {"__init__": None, "_lazy": None, "__main__": "cli"}.get(first, first)


def room_of_module(module: str) -> str | None:
    """Return the layer of a module; None for mnemic itself and other packages."""
    parts = module.split(".")
    return parts[1] if parts[0] == "mnemic" and len(parts) > 1 and parts[1] in ROOMS else None


def test_every_file_lies_in_a_room() -> None:
    unknown = {str(path) for path in FILES if room_of_file(path) not in (*ROOMS, None)}
    assert not unknown, "add the layer to ROOMS and to DESIGN"


def test_imports_point_down(imports: list[Import]) -> None:
    """The package's ``__init__`` is below all layers: it imports names on use."""
    upward = []
    for imported in imports:
        room, imported_room = room_of_file(imported.path), room_of_module(imported.module)
        if imported_room is None or room == imported_room:
            continue
        if room is None:
            if not imported.inside:
                upward.append(imported.description)
        elif ROOMS.index(imported_room) < ROOMS.index(room):
            upward.append(imported.description)
    assert upward == []


def test_the_walk_sees_an_arrow_back(imports: list[Import]) -> None:
    """The test above needs all imports to be found."""
    text = "import mnemic.train\ndef f():\n  from mnemic.predict import x\n  from mnemic import cli"
    seen = [(imported.module, imported.inside) for imported in imports_of(ROOT / "data" / "x.py", ast.parse(text))]
    assert seen == [("mnemic.train", False), ("mnemic.predict.x", True), ("mnemic.cli", True)]
    assert [room_of_module(module) for module, _ in seen] == ["train", "predict", "cli"]
    assert room_of_module("mnemic.__version__") is None
    assert room_of_module("torch.nn") is None
    assert len(imports) > 200


def test_only_commands_know_a_screen(imports: list[Import]) -> None:
    assert not [
        imported.description
        for imported in imports
        if imported.module.split(".")[0] in SCREEN and room_of_file(imported.path) != "cli"
    ]


def test_what_is_not_needed_at_import_is_imported_on_use(imports: list[Import]) -> None:
    """Only the front doors import more than the standard library and ALLOWED at the top.

    GPU kernels are separate files, imported only if there is a GPU.
    """
    standard = set(sys.stdlib_module_names) | {"mnemic"} | ALLOWED
    assert not [
        imported.description
        for imported in imports
        if room_of_file(imported.path) not in FRONT_DOORS
        and imported.path not in KERNELS
        and not imported.inside
        and imported.module.split(".")[0] not in standard
    ]


def test_commands_import_the_server_on_use(imports: list[Import]) -> None:
    """The command line works without `mnemic[mcp]` and `mnemic[web]`; the API needs both."""
    servers = {"mcp", "web"}
    of_servers = [imported for imported in imports if room_of_module(imported.module) in servers]
    outside = [imported for imported in of_servers if room_of_file(imported.path) not in servers]
    assert outside
    assert all(imported.inside for imported in outside)


def test_sentencex_is_imported_only_where_it_is_used(imports: list[Import]) -> None:
    of_sentencex = [imported for imported in imports if imported.module.split(".")[0] == "sentencex"]
    assert of_sentencex
    assert not [imported.description for imported in of_sentencex if not imported.inside]


def test_nothing_is_pickled() -> None:
    assert read_package()[1] == []


def test_the_walk_sees_pickles() -> None:
    text = "import pickle\ndef f(x):\n  from torch import load\n  torch.save(x)\n  x.torch.load()\n  np.load(x)"
    seen = [line.partition(" ")[2] for line in pickling_in(ROOT / "data" / "x.py", ast.parse(text))]
    assert seen == ["imports pickle", "imports torch.load", "uses torch.save"]


def test_a_file_holds_one_idea() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    long = [f"{path.relative_to(ROOT)}: {count} lines" for path, count in lines.items() if count > MAX_LINES]
    assert not long, "split the idea, not the text"


def test_a_folder_can_be_overlooked() -> None:
    counts = Counter(path.parent.relative_to(ROOT).as_posix() for path in FILES)
    assert not {folder: count for folder, count in counts.items() if count > MAX_FILES}


def test_no_module_leads_back_to_itself(imports: list[Import]) -> None:
    """Imports inside functions, or only for type checkers, count as well.

    The package's ``__init__`` names everything and is excluded.
    """
    names = {module_name(path): path for path in FILES}
    graph: dict[str, set[str]] = {name: set() for name in names}
    for imported in imports:
        module, parent = module_name(imported.path), imported.module.rpartition(".")[0]
        target = imported.module if imported.module in names else parent
        if target in names and target not in (module, "mnemic") and module != "mnemic":
            graph[module].add(target)
    with pytest.raises(CycleError):
        TopologicalSorter({"a": {"b"}, "b": {"a"}}).prepare()
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"imports go round: {' → '.join(error.args[1])}")


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


# Imports every module of the library in a process with only the four packages.
ALONE = """
import importlib, sys

class Only:
    def find_spec(self, name, path=None, target=None):
        first = name.split(".")[0]
        if first in {missing!r}:
            raise ModuleNotFoundError(f"{{name}} is not on this machine", name=name)

sys.meta_path.insert(0, Only())
import mnemic
assert "torch" not in sys.modules, "import mnemic alone imports torch"
for name in {modules!r}:
    importlib.import_module(name)
for name in mnemic.__all__:
    getattr(mnemic, name)
"""


def find_other_modules() -> set[str]:
    """Find installed modules that the four packages neither are nor need."""
    from importlib.metadata import distribution, packages_distributions

    def add_dependencies(name: str, seen: set[str]) -> set[str]:
        if name in seen:
            return seen
        seen.add(name)
        for text in distribution(name).requires or []:
            if "extra ==" not in text:
                requirement = "".join(
                    character if character.isalnum() or character in "-_." else " " for character in text
                ).split()[0]
                try:
                    add_dependencies(requirement.lower().replace("_", "-"), seen)
                except ModuleNotFoundError:
                    continue  # for another platform
        return seen

    needed_packages: set[str] = set()
    for name in ALLOWED:
        add_dependencies(name, needed_packages)
    distributions_of = packages_distributions()
    return {
        module
        for module, distributions in distributions_of.items()
        if not {name.lower().replace("_", "-") for name in distributions} & {*needed_packages, "mnemic", "setuptools"}
    }


def test_the_library_imports_with_four_packages() -> None:
    """Only torch, numpy, tokenizers, safetensors and their needs can be imported."""
    missing = {module for module in find_other_modules() if not module.startswith("_")}
    assert {"typer", "rich", "sentencex", "pytest", "matplotlib"} <= missing
    assert not missing & ALLOWED
    modules = [
        ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in FILES
        if room_of_file(path) not in FRONT_DOORS and path not in KERNELS
    ]
    code = ALONE.format(missing=missing, modules=modules)
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "")
