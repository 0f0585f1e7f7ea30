"""The locks of ``make``: complete, as pinned, and refused where a file has another hash."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
GROUPS = ("all", "test", "browser", "check", "docs")
LOCK_ENTRY = re.compile(r"(?m)^([\w-]+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$")


def read_lock(group: str) -> dict[str, str]:
    """Read the version of each package of a lock; each has hashes."""
    text = (ROOT / "locks" / f"{group}.txt").read_text(encoding="utf-8")
    entries = {name: version for name, version, _ in LOCK_ENTRY.findall(text)}
    assert len(entries) == text.count("==") - text.count("# torch=="), f"{group}: an entry has no hashes"
    return entries


def list_names(requirements: list[str]) -> set[str]:
    """List the packages of requirements, also those of our own extras."""
    names = set()
    for need in map(Requirement, requirements):
        if need.name == "mnemic":
            names |= {name for extra in need.extras for name in list_names(EXTRAS[extra])}
        else:
            names.add(canonicalize_name(need.name))
    return names


def test_every_package_is_locked_with_hashes_at_its_pin() -> None:
    """If this fails, packages were added or moved: run ``make lock``."""
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pins = {canonicalize_name(name): pin for name, pin in re.findall(r"(?m)^([\w.-]+)==(\S+)$", constraints)}
    base = read_lock("base")
    assert list_names(PROJECT["dependencies"]) - {"torch"} <= base.keys()
    names = {"torch", *base}
    for group in GROUPS:
        lock = read_lock(group)
        names |= lock.keys()
        assert list_names(EXTRAS[group]) <= base.keys() | lock.keys(), f"{group}: run `make lock`"
        for name, version in {**base, **lock}.items():
            assert version == pins[name], f"{name}: run `make lock`"
    assert names == pins.keys()


def test_a_file_with_another_hash_is_refused(tmp_path: Path) -> None:
    """Install as the Makefile does, from a folder with one wheel."""
    with zipfile.ZipFile(tmp_path / "thing-1.0-py3-none-any.whl", "w") as content:
        content.writestr("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
        content.writestr("thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        content.writestr("thing-1.0.dist-info/RECORD", "")
    options = re.search(r"LOCKED := \$\(PIP\) (.*) -r", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert options is not None
    (tmp_path / "lock.txt").write_text(f"thing==1.0 --hash=sha256:{'0' * 64}\n", encoding="utf-8")
    places = ["--no-index", "--find-links", str(tmp_path), "--target", str(tmp_path / "out"), "-r", "lock.txt"]
    command = [sys.executable, "-m", "pip", "--isolated", *options[1].split(), *places]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_bill_of_materials_is_complete_and_always_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    texts = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        subprocess.run([sys.executable, ROOT / "tools" / "sbom.py", tmp_path / name], check=True)
        texts.append(next((tmp_path / name).iterdir()).read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    document = json.loads(texts[0])
    components = {component["name"]: component for component in document["components"]}
    assert components.keys() >= {"torch", "reader", "entnet-babi"} | read_lock("base").keys() | read_lock("all").keys()
    assert all(component["licenses"] for component in components.values())
    assert "SQuAD 1.1" in components["reader"]["pedigree"]["notes"]
    assert document["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
