"""The wheel in an empty environment, its dependencies, and the cost of importing it.

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
MAX_PAGES_BYTES = 500_000  # of the documentation that the demonstration reads
ALLOWED = 0.35  # seconds of processor time that importing may cost beyond torch
STORY = "Mary moved to the bathroom.\nJohn went to the hallway.\n"


def run(*arguments: str | Path, folder: Path) -> str:
    """Run a command and return its output; a failure shows its errors."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "MNEMIC"))}
    process = subprocess.run(
        [str(argument) for argument in arguments],
        cwd=folder,
        env=environment | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert process.returncode == 0, f"{arguments} ended with {process.returncode}:\n{process.stderr}"
    return process.stdout


def python(program: str, folder: Path) -> str:
    return run(sys.executable, "-c", program, folder=folder)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel"))


def build_wheel(source: Path, built: Path) -> Path:
    """Build the wheel from a copy, without stale files of the working tree."""
    source.mkdir(exist_ok=True)
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, source)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "mnemic", source / "mnemic", ignore=ignore)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q")
    run(*pip, "--no-deps", "--no-index", "--no-build-isolation", "-w", built, ".", folder=source)
    return next(built.glob("mnemic-*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into a new environment; return its ``bin`` folder."""
    environment = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", environment, folder=environment)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", environment)
    run(*pip, "install", "-q", "--no-deps", "--no-index", wheel, folder=environment)
    packages = next(environment.glob("lib/python*/site-packages"))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return environment / "bin"


def test_the_wheel_holds_the_whole_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
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
    tables = {f"mnemic/{path.relative_to(ROOT).as_posix()}" for path in ROOT.glob("docs/results/**/*.json")}
    assert {name for name in names if name.startswith("mnemic/docs/")} == {*pages, *tables}
    site = {path for folder in ("static", "api_docs") for path in (ROOT / "mnemic" / "web" / folder).rglob("*")}
    source |= {path.relative_to(ROOT).as_posix() for path in site if path.is_file()}
    assert source <= names
    folders = {name.split("/")[0] for name in names}
    assert folders == {"mnemic", f"mnemic-{mnemic.__version__}.dist-info"}
    assert {"LICENSE", "NOTICE"} <= {Path(name).name for name in names if ".dist-info/licenses/" in name}


@pytest.mark.slow
def test_a_wheel_is_the_same_when_it_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``make wheel`` builds it, from another folder and at another time."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    first, second = (build_wheel(tmp_path / name, tmp_path / f"{name}-wheel") for name in ("one", "two"))
    assert first.read_bytes() == second.read_bytes()


def test_the_wheel_works_in_an_empty_environment(installed: Path, tmp_path: Path) -> None:
    """From another folder: recipes, a few steps of training, questions, the demo."""
    module_path = run(installed / "python", "-c", "import mnemic; print(mnemic.__file__)", folder=tmp_path)
    assert Path(module_path.strip()).is_relative_to(installed.parent)
    listing = json.loads(run(installed / "mnemic", "recipes", "--json", folder=tmp_path))
    assert {"memn2n", "memn2n-joint"} <= {recipe["name"] for recipe in listing["recipes"]}
    sets = ["data.kind=generated", "data.tasks=[1]", "data.count=100", "train.steps=5"]
    options = [word for text in sets for word in ("--set", text)]
    run(installed / "mnemic", "train", "memn2n", "--out", "run", *options, folder=tmp_path)
    (tmp_path / "story.txt").write_text(STORY, encoding="utf-8")
    question_command = ("story", "ask", "--model", "run", "--story", "story.txt", "--json", "Where is Mary?")
    answer = json.loads(run(installed / "mnemic", *question_command, folder=tmp_path))
    assert [evidence["text"] for evidence in answer["evidence"]] == STORY.splitlines()
    shipped = ("story", "ask", "--model", "entnet-babi", *question_command[4:])
    assert json.loads(run(installed / "mnemic", *shipped, folder=tmp_path))["answer"] == "bathroom"
    pages = Path(module_path.strip()).parent / "docs"
    names = {page.relative_to(pages) for page in pages.rglob("*.md")}
    assert names == {page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")}
    for name in names - {Path("index.md")}:  # a slow test of the demonstration is about all of them
        (pages / name).unlink()
    demo = json.loads(run(installed / "mnemic", "demo", "--json", folder=tmp_path))
    assert demo["remembered"]["files"] == {"new": 2}  # that page, and the README of the wheel's metadata
    assert all(answer["right"] for answer in demo["answers"])


def test_importing_costs_little_beyond_torch(tmp_path: Path) -> None:
    """Measure processor time, up to three times: the machine may be busy."""
    program = """
import time, torch
began = time.process_time()
import mnemic
for name in mnemic.__all__:
    getattr(mnemic, name)
print(time.process_time() - began)
"""
    assert any(float(python(program, tmp_path)) < ALLOWED for _ in range(3))


@pytest.mark.parametrize(
    "program",
    [
        "import mnemic, mnemic.recipe",
        "from mnemic.cli.main import main; main(['--help'])",
        "from mnemic.cli.main import main; main(['train', '--help'])",
    ],
)
def test_help_comes_without_torch(program: str, tmp_path: Path) -> None:
    output = python(f"{program}\nimport sys; print('torch' in sys.modules)", tmp_path)
    assert output.splitlines()[-1] == "False"


def test_the_library_needs_four_packages_only(tmp_path: Path) -> None:
    """Importing every module but those of the front doors imports no other package.

    GPU kernels, which need triton, are imported only if there is a GPU.
    """
    program = """
import pkgutil, sys
import numpy, safetensors.torch, tokenizers, torch, torch.distributed, torch.func
before = set(sys.modules)
import mnemic
for name in mnemic.__all__:
    getattr(mnemic, name)
for module in pkgutil.walk_packages(mnemic.__path__, "mnemic."):
    outside = module.name.startswith(("mnemic.cli", "mnemic.mcp", "mnemic.web", "mnemic.__main__"))
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
    requirements = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        requirements += extra
    names = {re.match(r"[\w.-]+", text)[0].lower() for text in requirements}  # type: ignore[index]
    assert names - {"mnemic"} <= pinned
    assert dict(pins)["torch"] == "2.13.0"
