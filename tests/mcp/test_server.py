"""Calls at the same time: none waits for another, and each can be canceled."""

import json
import time
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_service import Assistant, GatedEmbedder, serve

from mnemic.mcp import server as served
from mnemic.mcp.results import to_payload
from mnemic.mcp.tools import summarize_files
from mnemic.store import RememberStep

# A newer protocol has no ping.
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings(f"ignore::{MCPDeprecationWarning.__module__}.MCPDeprecationWarning"),
]


def write_notes(folder: Path, num_files: int, num_sentences: int) -> Path:
    folder.mkdir()
    for number in range(num_files):
        sentences = (f"Sentence {line} of {number} says {line * 7} and more." for line in range(num_sentences))
        (folder / f"{number}.txt").write_text("\n\n".join(sentences), encoding="utf-8")
    return folder


def read_log(folder: Path) -> list[tuple[str, str]]:
    lines = (folder / "calls.log").read_text(encoding="utf-8").splitlines()
    return [(record["tool"], record["outcome"]) for record in map(json.loads, lines)]


async def wait_for_gate(embedder: GatedEmbedder) -> None:
    assert await to_thread.run_sync(embedder.waiting.wait, 30)
    embedder.waiting.clear()


async def cancel_call(assistant: Assistant, embedder: GatedEmbedder, **arguments: object) -> None:
    """Have something remembered, and cancel that once a batch of it is being embedded."""
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: assistant.call("remember", **arguments))
        await wait_for_gate(embedder)
        group.cancel_scope.cancel()
    await anyio.sleep(0.05)  # the server hears of it
    embedder.gate.set()


async def test_nothing_waits_for_a_remember(tmp_path: Path) -> None:
    notes, embedder = write_notes(tmp_path / "notes", 3, 4), GatedEmbedder()
    async with serve(tmp_path, notes, embedder=embedder) as assistant:
        await assistant.use("remember", text="The key is under the mat.")
        embedder.gate.clear()
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: assistant.call("remember", paths=[str(notes)]))
            for number in range(served.NUM_READERS + 2):  # they take turns, and no reader's thread
                group.start_soon(lambda number=number: assistant.call("remember", text=f"Note {number}."))
            await wait_for_gate(embedder)
            start = time.monotonic()
            await assistant.client.send_ping()
            assert time.monotonic() - start < 1.0  # benchmarks/mcp_latency.py measures it
            assert (await assistant.use("ask", question="Where is the key?"))["answer"] == "The key is under the mat."
            assert (await assistant.use("list"))["total"] == 1
            embedder.gate.set()
        assert (await assistant.use("list"))["total"] == 1 + 3 + served.NUM_READERS + 2


async def test_a_remember_is_canceled_between_files(tmp_path: Path) -> None:
    notes, embedder = write_notes(tmp_path / "notes", 6, 800), GatedEmbedder()
    async with serve(tmp_path, notes, embedder=embedder) as assistant:
        await assistant.use("remember", paths=[str(notes / "0.txt")])
        embedder.gate.clear()
        calls = embedder.calls
        await cancel_call(assistant, embedder, paths=[str(notes)])
        await assistant.use("remember", text="The memory is free again.")
        assert embedder.calls - calls <= 3  # a batch or two of the next file, and the note
        total = (await assistant.use("list"))["total"]
        assert 2 <= total < 5
        report = await assistant.use("remember", paths=[str(notes)])  # goes on
        assert report["counts"]["new"] == 6 + 1 - total
    assert ("remember", "canceled") in read_log(tmp_path)


async def test_a_remember_is_canceled_within_a_large_file(tmp_path: Path) -> None:
    notes, embedder = write_notes(tmp_path / "notes", 1, 12_000), GatedEmbedder()
    async with serve(tmp_path, notes, embedder=embedder) as assistant:
        embedder.gate.clear()
        await cancel_call(assistant, embedder, paths=[str(notes / "0.txt")])
        await assistant.use("remember", text="The memory is free again.")
        assert embedder.calls <= 3
    assert ("remember", "canceled") in read_log(tmp_path)


async def test_a_call_is_canceled_while_it_waits(tmp_path: Path) -> None:
    embedder = GatedEmbedder()
    async with serve(tmp_path, embedder=embedder) as assistant:
        embedder.gate.clear()
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: assistant.call("remember", text="The first note."))
            await wait_for_gate(embedder)
            with anyio.move_on_after(0.2):
                await assistant.call("remember", text="The second note.")
            await assistant.client.send_ping()
            embedder.gate.set()
        documents = (await assistant.use("list"))["documents"]
        assert [document["name"] for document in documents] == ["The first note."]


async def test_progress_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "PROGRESS_INTERVAL_S", 0.0)
    notes, reports = write_notes(tmp_path / "notes", 4, 800), []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        reports.append((done, total, Path(message or "").name))

    async with serve(tmp_path, notes) as assistant:
        result = await assistant.client.call_tool("remember", {"paths": [str(notes)]}, progress_callback=on_progress)
        assert not result.is_error
    assert len(reports) >= 3
    assert [done for done, _, _ in reports] == sorted({done for done, _, _ in reports})
    assert {total for _, total, _ in reports} == {sum(path.stat().st_size for path in notes.iterdir())}
    assert {name for _, _, name in reports} <= {"0.txt", "1.txt", "2.txt", "3.txt"}


async def test_a_fault_of_ours_ends_the_call_and_not_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*arguments: object, **kwargs: object) -> None:
        raise KeyError("a fault of ours")

    async with serve(tmp_path) as assistant:
        await assistant.use("remember", text="The key is under the mat.")
        monkeypatch.setattr("mnemic.Memory.ask", fail)
        monkeypatch.setattr("mnemic.Memory.text", fail)
        message = await assistant.refused("ask", question="Where?")
        assert message == "error: a fault of mnemic: KeyError('a fault of ours')"
        with pytest.raises(MCPError, match="a fault of mnemic"):
            await assistant.client.read_resource("mnemic://document/1")
        assert (await assistant.use("list"))["total"] == 1
    assert "Traceback" in caplog.text  # for who runs it, not for the assistant


async def test_names_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    """Half a character, which only a file's name can hold, ends no connection."""
    notes = write_notes(tmp_path / "notes", 1, 1)
    broken = notes / b"caf\xe9.txt".decode("utf-8", "surrogateescape")
    broken.write_text("The bill was nine euros.", encoding="utf-8")
    async with serve(tmp_path, notes) as assistant:
        report = await assistant.use("remember", paths=[str(notes)])
        assert sorted(file["outcome"] for file in report["files"]) == ["broken", "new"]
        assert (await assistant.use("list"))["total"] == 1


def test_notes_that_are_no_text_are_replaced() -> None:
    step = RememberStep("/a\udce9", "broken", None, 0, ("no file /a\udce9",), 0, 0)
    assert to_payload(summarize_files([step]))["files"] == [
        {"path": "/a?", "outcome": "broken", "document": None, "notes": ["no file /a?"]}
    ]
