"""The files of the page: complete, shipped, in two languages, and safe under a strict policy."""

import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path

from mnemic.store.answer.ask import CLAUSE_NOTE, WORDS_NOTE

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "mnemic"
STATIC = PACKAGE / "web" / "static"
SCRIPTS = {path.name: path.read_text(encoding="utf-8") for path in sorted((STATIC / "js").glob("*.js"))}
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
PAIR = re.compile(rf"(?:{STRING.pattern}|([a-z]+)): {STRING.pattern}")
UNSAFE = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "eval(",
    "new Function",
    '"style"',
    'setTimeout("',
)
NAMESPACES = ("http://www.w3.org/2000/svg",)


class TagParser(HTMLParser):
    """Collect the tags of a page with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def read_strings(language: str) -> dict[str, str]:
    """Read the texts of a language from the file of strings."""
    body = SCRIPTS["strings.js"].split(f"const {language} = {{", 1)[1].split("\n};", 1)[0]
    return {quoted or bare: text for quoted, bare, text in PAIR.findall(body)}


def list_keys_in_use() -> tuple[set[str], set[str]]:
    """List the keys that scripts and page ask for, and the beginnings of composed ones."""
    keys, beginnings = set(), set()
    for text in [*SCRIPTS.values(), (STATIC / "index.html").read_text(encoding="utf-8")]:
        for arguments in re.findall(r'\bt\(([^`"\n)]*"[^)\n]*)\)', text):
            keys |= {key for key in STRING.findall(arguments) if re.fullmatch(r"[a-z-]+(\.[a-z-]+)*", key)}
        beginnings |= set(re.findall(r"`([a-z]+\.)\$\{", text))
        keys |= set(re.findall(r'data-t(?:-label)?="([^"]+)"', text))
    return keys, beginnings


def test_both_languages_have_every_text() -> None:
    english, chinese = read_strings("en"), read_strings("zh")
    assert len(english) > 250
    assert english.keys() - chinese.keys() <= {key for key in english if key.endswith(".one")}
    assert chinese.keys() <= english.keys()
    for key, text in chinese.items():
        assert set(re.findall(r"{\w+}", text)) == set(re.findall(r"{\w+}", english[key])), key
    same = {
        key
        for key, text in chinese.items()
        if text == english[key] and re.search("[a-z]{4}", re.sub("{.*?}", "", text))
    }
    assert same <= {
        "networks.example.story",
        "networks.example.question",
        "kind.markdown",
        "kind.odf",
        "kind.tex",
        "kind.docx",
    }


def test_chinese_has_its_own_punctuation() -> None:
    for key, text in read_strings("zh").items():
        assert not re.search(r"[\u4e00-\u9fff][,;:?!]", text), key


def test_notes_that_are_translated_are_those_of_the_library() -> None:
    strings = read_strings("en")
    assert (strings["notes.words"], strings["notes.clause"]) == (WORDS_NOTE, CLAUSE_NOTE)


def test_every_text_is_used_and_every_key_exists() -> None:
    strings = read_strings("en").keys()
    keys, beginnings = list_keys_in_use()
    literals = {text for name, script in SCRIPTS.items() if name != "strings.js" for text in STRING.findall(script)}
    assert {key for key in keys if "." in key} <= strings
    unused = {
        key for key in strings - keys - literals if not key.startswith(tuple(beginnings)) and not key.endswith(".one")
    }
    assert unused == {"notes.words", "notes.clause"}


def test_every_file_is_referenced_and_shipped() -> None:
    """Follow the page's links and the scripts' imports; each file is in the package's data."""
    page = TagParser((STATIC / "index.html").read_text(encoding="utf-8"))
    links = [
        attributes.get("src") or attributes.get("href") for tag, attributes in page.tags if tag in ("script", "link")
    ]
    queue = [str(link).removeprefix("/static/") for link in links]
    reached = {"index.html"}
    while queue:
        name = queue.pop()
        if name in reached:
            continue
        reached.add(name)
        text = (STATIC / name).read_text(encoding="utf-8")
        queue += [f"js/{script}" for script in re.findall(r'(?:from|import\() ?"\./([\w.]+)"', text)]
    files = {path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.is_file()}
    assert reached == files
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = settings["tool"]["setuptools"]["package-data"]["mnemic"]
    shipped = {path for pattern in patterns if pattern.startswith("web/") for path in PACKAGE.glob(pattern)}
    assert {STATIC / name for name in files} <= shipped


def test_nothing_needs_another_policy_than_the_strict_one() -> None:
    """No script, style or handler in the page's markup, and nothing that turns text into markup."""
    page = TagParser((STATIC / "index.html").read_text(encoding="utf-8"))
    assert all(attributes.get("src") for tag, attributes in page.tags if tag == "script")
    assert "style" not in {tag for tag, _ in page.tags}
    assert not [name for _, attributes in page.tags for name in attributes if name == "style" or name.startswith("on")]
    for name, text in SCRIPTS.items():
        assert not [word for word in UNSAFE if word in text], name


def test_no_file_names_another_place() -> None:
    for path in STATIC.rglob("*.*"):
        text = path.read_text(encoding="utf-8")
        for namespace in NAMESPACES:
            text = text.replace(namespace, "")
        assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", re.sub(r"(?m)^\s*(//|/\*).*$", "", text)), path


def test_every_picture_and_field_has_a_name() -> None:
    """Icons are hidden from screen readers; each id that a label or description names exists."""
    page = TagParser((STATIC / "index.html").read_text(encoding="utf-8"))
    assert all(attributes.get("aria-hidden") == "true" for tag, attributes in page.tags if tag == "svg")
    scripts = "\n".join(SCRIPTS.values())
    labels = set(re.findall(r'for: "([\w-]+)"', scripts))
    ids = set(re.findall(r'\bid: "([\w-]+)"', scripts))
    assert labels <= ids


def test_files_stay_small() -> None:
    """A file has at most 400 lines, and what the first paint needs is less than 60 kB."""
    assert all(text.count("\n") <= 400 for text in SCRIPTS.values())
    first = [STATIC / "index.html", STATIC / "js" / "first.js", *(STATIC / "css").glob("*.css")]
    assert sum(path.stat().st_size for path in first) < 60_000
