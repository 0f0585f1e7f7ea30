"""The user's settings: options beat the environment, which beats the file."""

import stat
from pathlib import Path

import pytest
from app_runs import run


@pytest.fixture(autouse=True)
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("MNEMIC_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MNEMIC_MEMORY", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "config" / "mnemic" / "config.toml"


def test_settings_are_written_and_shown(config_file: Path) -> None:
    assert run("config", "path").out == f"{config_file}\n"
    assert run("config", "--json").json == {"path": str(config_file), "settings": {}, "environment": {}}
    for words in (["limit", "3"], ["exclude", "old/*", "*.bak"], ["confidence", "1"], ["reader", "none"]):
        assert run("config", "set", *words).code == 0
    expected = {"limit": 3, "exclude": ["old/*", "*.bak"], "confidence": 1.0, "reader": "none"}
    assert run("config", "--json").json["settings"] == expected
    assert stat.S_IMODE(config_file.stat().st_mode) == 0o600
    config_file.write_text(f"# mine\n{config_file.read_text(encoding='utf-8')}", encoding="utf-8")
    assert run("config", "unset", "limit").code == run("config", "set", "reader", "reader").code == 0
    lines = config_file.read_text(encoding="utf-8").splitlines()
    assert lines == ["# mine", 'exclude = ["old/*", "*.bak"]', "confidence = 1.0", 'reader = "reader"']


def test_defaults_are_shown_until_they_are_replaced(config_file: Path) -> None:
    lines = {line.split()[1]: line for line in run("config").out.splitlines() if "│" in line}
    assert "(1)" in lines["hops"]
    assert "(0.3)" in lines["confidence"]
    assert "(reader)" in lines["reader"]
    run("config", "set", "hops", "2")
    lines = {line.split()[1]: line for line in run("config").out.splitlines() if "│" in line}
    assert "(" not in lines["hops"]
    assert " 2 " in lines["hops"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["set", "lmit", "3"], "no setting 'lmit' (did you mean 'limit'?)"),
        (["set", "limit", "many"], "limit is a whole number, not 'many'"),
        (["set", "confidence", "2"], "confidence is from 0 to 1, not 2"),
        (["set", "limit", "1", "2"], "limit has one value, not 2"),
        (["set", "limit"], "give a setting and its value"),
        (["unset"], "give one setting"),
        (["show", "limit"], "takes no more words"),
    ],
)
def test_wrong_settings_are_one_line(words: list[str], message: str, config_file: Path) -> None:
    done = run("config", *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert not config_file.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('reder = "none"', "no setting 'reder' (did you mean 'reader'?)"),
        ("limit = true", "limit is a whole number, not True"),
        ("exclude = [1]", "exclude is a list of texts"),
        ("limit = = 3", "Invalid"),
        ("limit = " + "[" * 5000, "config.toml"),
    ],
)
def test_a_wrong_file_is_named(text: str, message: str, config_file: Path) -> None:
    config_file.parent.mkdir(parents=True)
    config_file.write_text(text, encoding="utf-8")
    done = run("ask", "Who?")
    assert done.code == 2
    assert str(config_file) in done.err
    assert message in done.err
    assert run("recipes").code == 0  # commands without settings go on


def test_a_value_of_several_lines_is_left_alone(config_file: Path) -> None:
    config_file.parent.mkdir(parents=True)
    text = 'exclude = [\n  "a",\n]\n'
    config_file.write_text(text, encoding="utf-8")
    assert "by hand" in run("config", "set", "exclude", "b").err
    assert config_file.read_text(encoding="utf-8") == text


def test_options_beat_the_environment_and_the_environment_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        run("remember", "--note", f"The key {number} is here.", "--memory", f"{number}.db", "--embedder", "none")
        run("remember", "--note", f"The key is also {number}.", "--memory", f"{number}.db")
    run("config", "set", "memory", "0.db")
    run("config", "set", "limit", "1")
    assert [hit["text"][8] for hit in run("search", "key", "--json").json["found"]] == ["0"]
    assert len(run("search", "key", "--json", "-n", "2").json["found"]) == 2
    monkeypatch.setenv("MNEMIC_MEMORY", str(tmp_path / "1.db"))
    assert "The key 1 is here." in run("search", "key here").out
    assert "The key 2 is here." in run("search", "key here", "--memory", "2.db").out
    monkeypatch.delenv("MNEMIC_MEMORY")
    run("remember", "--note", "The key of the project.", "--here", "--embedder", "none")
    assert "The key of the project." in run("search", "key").out  # a project's own memory comes first
