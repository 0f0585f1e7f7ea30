"""The package as a stranger gets it: a wheel in an empty environment, and what importing it costs.

The environment sees the dependencies of the one that runs the tests through a ``.pth`` file, since
fetching torch again would take longer than all other tests; mnemic itself comes from the wheel
alone. (Path files inside a folder that is added this way are not followed, so an editable install
stays invisible.)
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

import mnemic

ROOT = Path(__file__).parents[1]
MAX_PAGES_BYTES = 400_000  # of the documentation that the demonstration reads
ALLOWED = 0.35  # seconds of processor time that importing may cost beyond torch
STORY = "Mary moved to the bathroom.\nJohn went to the hallway.\n"


def run(*words: str | Path, folder: Path) -> str:
    """What a command prints; a failure shows all it said."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "MNEMIC"))}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=clean | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, f"{words} ended with {done.returncode}:\n{done.stderr}"
    return done.stdout


def python(program: str, folder: Path) -> str:
    return run(sys.executable, "-c", program, folder=folder)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy so that nothing old in the working tree gets in."""
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    litter = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "mnemic", source / "mnemic", ignore=litter)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q")
    run(*pip, "--no-deps", "--no-index", "--no-build-isolation", "-w", built, ".", folder=source)
    return next(built.glob("mnemic-*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` of an environment with nothing but the wheel and a way to its dependencies."""
    place = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", place, folder=place)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", place)
    run(*pip, "install", "-q", "--no-deps", "--no-index", wheel, folder=place)
    packages = next(place.glob("lib/python*/site-packages"))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return place / "bin"


def test_the_wheel_holds_the_whole_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        inside = set(content.namelist())
    source = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "mnemic").rglob("*")
        if path.suffix in (".py", ".toml", ".typed")
    }
    assert {"mnemic/recipes/memn2n.toml", "mnemic/reproduce/published.toml", "mnemic/py.typed"} < source
    source |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "mnemic" / "weights").rglob("*") if path.is_file()}
    assert "mnemic/weights/entnet-babi/weights.safetensors" in source
    pages = {f"mnemic/{path.relative_to(ROOT).as_posix()}": path.stat().st_size for path in ROOT.glob("docs/**/*.md")}
    assert pages
    assert sum(pages.values()) < MAX_PAGES_BYTES
    assert {name for name in inside if name.startswith("mnemic/docs/")} == set(pages)
    assert source <= inside
    beside = {name.split("/")[0] for name in inside}
    assert beside == {"mnemic", f"mnemic-{mnemic.__version__}.dist-info"}
    assert any(name.endswith("licenses/LICENSE") for name in inside)


def test_the_wheel_works_in_an_empty_environment(installed: Path, tmp_path: Path) -> None:
    """From another folder: recipes, a few steps of training, questions, the demonstration."""
    where = run(installed / "python", "-c", "import mnemic; print(mnemic.__file__)", folder=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parent)
    known = json.loads(run(installed / "mnemic", "recipes", "--json", folder=tmp_path))
    assert {"memn2n", "memn2n-joint"} <= {recipe["name"] for recipe in known["recipes"]}
    sets = ["data.kind=generated", "data.tasks=[1]", "data.count=100", "train.steps=5"]
    options = [word for text in sets for word in ("--set", text)]
    run(installed / "mnemic", "train", "memn2n", "--out", "run", *options, folder=tmp_path)
    (tmp_path / "story.txt").write_text(STORY, encoding="utf-8")
    asked = ("story", "ask", "--model", "run", "--story", "story.txt", "--json", "Where is Mary?")
    answer = json.loads(run(installed / "mnemic", *asked, folder=tmp_path))
    assert [one["text"] for one in answer["evidence"]] == STORY.splitlines()
    shipped = ("story", "ask", "--model", "entnet-babi", *asked[4:])
    assert json.loads(run(installed / "mnemic", *shipped, folder=tmp_path))["answer"] == "bathroom"
    shown = json.loads(run(installed / "mnemic", "demo", "--json", folder=tmp_path))
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert shown["remembered"]["files"] == {"new": len(pages)}  # as in a clone
    assert all(one["right"] for one in shown["answers"])


def test_importing_costs_little_beyond_torch(tmp_path: Path) -> None:
    """Processor time, and the best of three: the machine may have other work."""
    program = """
import time, torch
began = time.process_time()
import mnemic
for name in mnemic.__all__:
    getattr(mnemic, name)
print(time.process_time() - began)
"""
    assert min(float(python(program, tmp_path)) for _ in range(3)) < ALLOWED


@pytest.mark.parametrize(
    "program",
    [
        "import mnemic, mnemic.recipe",
        "from mnemic.cli.main import main; main(['--help'])",
        "from mnemic.cli.main import main; main(['train', '--help'])",
    ],
)
def test_help_comes_without_torch(program: str, tmp_path: Path) -> None:
    said = python(f"{program}\nimport sys; print('torch' in sys.modules)", tmp_path)
    assert said.splitlines()[-1] == "False"


def test_the_library_needs_four_packages_only(tmp_path: Path) -> None:
    """Every module but the command line's is imported; nothing new may come from elsewhere.

    GPU kernels, which need triton, are imported where a GPU has been found.
    """
    program = """
import pkgutil, sys
import numpy, safetensors.torch, tokenizers, torch, torch.distributed, torch.func
before = set(sys.modules)
import mnemic
for name in mnemic.__all__:
    getattr(mnemic, name)
for module in pkgutil.walk_packages(mnemic.__path__, "mnemic."):
    outside = module.name.startswith(("mnemic.cli", "mnemic.__main__"))
    if not outside and not module.name.startswith("mnemic.kernels."):
        __import__(module.name)
new = {name.split(".")[0] for name in set(sys.modules) - before}
print(*sorted(new - set(sys.stdlib_module_names)))
"""
    assert set(python(program, tmp_path).split()) <= {"mnemic", "numpy", "safetensors", "tokenizers", "torch"}


def test_public_names_are_loaded_when_used_and_known_to_type_checkers() -> None:
    tree = ast.parse((ROOT / "mnemic" / "__init__.py").read_text(encoding="utf-8"))
    typed = {
        alias.asname or alias.name
        for branch in tree.body
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == set(mnemic.__all__)
    assert all(getattr(mnemic, name) is not None for name in mnemic.__all__)
    assert set(mnemic.__all__) < set(dir(mnemic))
    with pytest.raises(AttributeError, match="'mnemic' has no attribute 'laod'"):
        _ = mnemic.laod  # type: ignore[attr-defined]


def test_constraints_pin_everything_the_package_asks_for() -> None:
    pins = re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    pinned = {name.lower().replace("_", "-") for name, _ in pins}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        wanted += extra
    names = {re.match(r"[\w.-]+", text)[0].lower() for text in wanted}  # type: ignore[index]
    assert names - {"mnemic"} <= pinned
    assert dict(pins)["torch"] == "2.13.0"
