"""The layers of the package: imports point downwards, and need few packages."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
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
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}


def walk(node: ast.AST, inside: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Yield all nodes, and whether each is in a function or only for type checkers."""
    for child in ast.iter_child_nodes(node):
        typing = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or typing
        yield child, inside or later
        yield from walk(child, inside or later)


def imports_of(path: Path, tree: ast.AST) -> Iterator[Import]:
    for node, inside in walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield Import(path, node.lineno, name.name, inside)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: name the whole module, without dots"
            for name in node.names:  # each may be a module itself: from mnemic.train import fit
                yield Import(path, node.lineno, f"{node.module}.{name.name}", inside)


IMPORTS = [imported for path, tree in TREES.items() for imported in imports_of(path, tree)]


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


def test_imports_point_down() -> None:
    """The package's ``__init__`` is below all layers: it imports names on use."""
    upward = []
    for imported in IMPORTS:
        room, imported_room = room_of_file(imported.path), room_of_module(imported.module)
        if imported_room is None or room == imported_room:
            continue
        if room is None:
            if not imported.inside:
                upward.append(imported.place)
        elif ROOMS.index(imported_room) < ROOMS.index(room):
            upward.append(imported.place)
    assert upward == []


def test_the_walk_sees_an_arrow_back() -> None:
    """The test above needs all imports to be found."""
    text = "import mnemic.train\ndef f():\n  from mnemic.predict import x\n  from mnemic import cli"
    imports = [(imported.module, imported.inside) for imported in imports_of(ROOT / "data" / "x.py", ast.parse(text))]
    assert imports == [("mnemic.train", False), ("mnemic.predict.x", True), ("mnemic.cli", True)]
    assert [room_of_module(module) for module, _ in imports] == ["train", "predict", "cli"]
    assert room_of_module("mnemic.__version__") is None
    assert room_of_module("torch.nn") is None
    assert len(IMPORTS) > 200


def test_only_commands_know_a_screen() -> None:
    assert not [
        imported.place
        for imported in IMPORTS
        if imported.module.split(".")[0] in SCREEN and room_of_file(imported.path) != "cli"
    ]


def test_what_is_not_needed_at_import_is_imported_on_use() -> None:
    """Only the front doors import more than the standard library and ALLOWED at the top.

    GPU kernels are separate files, imported only if there is a GPU.
    """
    standard = set(sys.stdlib_module_names) | {"mnemic"} | ALLOWED
    assert not [
        imported.place
        for imported in IMPORTS
        if room_of_file(imported.path) not in FRONT_DOORS
        and imported.path not in KERNELS
        and not imported.inside
        and imported.module.split(".")[0] not in standard
    ]


def test_commands_import_the_server_on_use() -> None:
    """The command line works without `mnemic[mcp]` and `mnemic[web]`; the API needs both."""
    servers = {"mcp", "web"}
    imports = [imported for imported in IMPORTS if room_of_module(imported.module) in servers]
    outside = [imported for imported in imports if room_of_file(imported.path) not in servers]
    assert outside
    assert all(imported.inside for imported in outside)


def test_sentencex_is_imported_only_where_it_is_used() -> None:
    imports = [imported for imported in IMPORTS if imported.module.split(".")[0] == "sentencex"]
    assert imports
    assert not [imported.place for imported in imports if not imported.inside]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_pickled(path: Path) -> None:
    pickling = {"pickle", "cPickle", "dill", "joblib", "shelve", "marshal", "cloudpickle"}
    assert not [
        imported.place for imported in imports_of(path, TREES[path]) if imported.module.split(".")[0] in pickling
    ]
    for node, _ in walk(TREES[path]):
        if isinstance(node, ast.Attribute):
            assert ast.unparse(node) not in {"torch.save", "torch.load"}, f"{path}:{node.lineno}"
        if isinstance(node, ast.ImportFrom) and node.module == "torch":
            assert not {name.name for name in node.names} & {"save", "load"}, path


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_holds_one_idea(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_LINES, f"{lines} lines: split the idea, not the text"


def test_a_folder_can_be_overlooked() -> None:
    counts = Counter(path.parent.relative_to(ROOT).as_posix() for path in FILES)
    assert not {folder: count for folder, count in counts.items() if count > MAX_FILES}


def test_no_module_leads_back_to_itself() -> None:
    """Imports inside functions, or only for type checkers, count as well.

    The package's ``__init__`` names everything and is excluded.
    """
    names = {module_name(path): path for path in FILES}
    graph: dict[str, set[str]] = {name: set() for name in names}
    for imported in IMPORTS:
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
