"""Locked files: a wrong password is one clear line, the right one opens them."""

from pathlib import Path

import pytest
from document_files import USER_LOCKED

from mnemic.cli.main import main


def test_a_locked_file_is_remembered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.pdf").write_bytes(USER_LOCKED)
    command = ["remember", str(tmp_path / "a.pdf"), "--memory", str(tmp_path / "m.db"), "--embedder", "none"]
    main(command)
    assert "locked with a password; remember it with --password" in capsys.readouterr().err
    for text, message in (("wrong", "the password is wrong for this PDF"), ("sesame", "files: 1 new")):
        (tmp_path / "password").write_text(text + "\n", encoding="utf-8")
        main([*command, "--password-file", str(tmp_path / "password")])
        captured = capsys.readouterr()
        assert message in captured.out + captured.err
