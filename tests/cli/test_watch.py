"""``mnemic watch``: what changes in a folder is asked about a moment later."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from zipfile import ZipFile

import pytest
from app_runs import run

from mnemic import Memory
from mnemic.cli.documents.watch import make_watcher
from mnemic.cli.render.console import AS_JSON


def wait_for(process: subprocess.Popen[str], text: str) -> str:
    """Return the next line of the log, which has a text in it."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert text in line
    return line


@pytest.mark.parametrize("end", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_change_is_found_within_five_seconds(tmp_path: Path, end: signal.Signals) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "key.txt").write_text("The key is in the drawer.\n", encoding="utf-8")
    memory = str(folder / "memory.db")  # in the watched folder: its own changes must not count
    command = [sys.executable, "-m", "mnemic", "watch", str(folder), "--memory", memory, "--embedder", "none"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        try:
            wait_for(process, "new      ")
            wait_for(process, "watching ")
            start = time.monotonic()
            (folder / "key.txt").write_text("The key is in the cellar now.\n", encoding="utf-8")
            wait_for(process, "changed  ")
            with Memory(memory, reader=None) as reader:
                assert reader.ask("Where is the key?").text == "The key is in the cellar now."
            assert time.monotonic() - start < 5
            (folder / ".hidden.txt").write_text("nothing", encoding="utf-8")
            (folder / "key.txt").unlink()
            wait_for(process, "gone     ")
            process.send_signal(end)
            assert process.communicate()[0] == "stopped; the memory has all that was reported\n"
        finally:
            process.kill()  # if it has not ended: a failure must not wait for it
        assert process.returncode == 0


def test_what_another_process_keeps_from_being_written_is_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "key.txt").write_text("The key is in the drawer.\n", encoding="utf-8")
    monkeypatch.setattr("mnemic.store.sqlite.locks.LOCK_TIMEOUT_S", 0.0)
    AS_JSON.set(False)  # whatever the command before was
    with Memory(tmp_path / "a.db", embedder="none") as writer, Memory(tmp_path / "a.db", reader=None) as memory:
        writer.note("first")
        watcher = make_watcher(memory, [folder], [], [])
        with writer.store.write_session():
            watcher.remember_pending()
            watcher.remember_pending()
        assert capsys.readouterr().out.count("waiting") == 1
        assert watcher.pending == {folder}
        watcher.remember_pending()
        assert watcher.pending == set()
        assert "new " in capsys.readouterr().out
        assert not watcher.accepts(None, str(tmp_path / "a.db-wal"))
        assert not watcher.accepts(None, str(folder / ".git" / "index"))
        assert watcher.accepts(None, str(folder / "sub" / "x.md"))


def test_a_broken_file_has_one_line_until_it_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.docx").write_bytes(b"no zip file")
    AS_JSON.set(False)
    with Memory(tmp_path / "a.db", embedder="none", reader=None) as memory:
        watcher = make_watcher(memory, [folder], [], [])
        for _ in range(3):
            watcher.pending = {folder}
            watcher.remember_pending()
        assert capsys.readouterr().out.count("  broken  ") == 1
        ZipFile(folder / "a.docx", "w").close()
        watcher.pending = {folder}
        watcher.remember_pending()
        assert capsys.readouterr().out.count("  broken  ") == 1


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    done = run("watch", tmp_path / "nowhere", "--memory", tmp_path / "a.db")
    assert (done.code, done.out) == (2, "")
    assert "there is no" in done.err
    assert not (tmp_path / "a.db").exists()
