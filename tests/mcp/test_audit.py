"""The audit log: every call, nothing that was remembered, for its owner alone."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mcp_service import serve

from mnemic.mcp import audit
from mnemic.mcp.audit import AuditLog, find_log_path
from mnemic.store.postgres.address import parse_address


@pytest.mark.anyio
async def test_calls_are_logged(tmp_path: Path) -> None:
    async with serve(tmp_path) as assistant:
        await assistant.use("remember", text="The vault code is 99-17.", title="Vault")
        await assistant.use("ask", question="Who? " * 1000)
        await assistant.refused("forget", documents=[2**70] * 1000)
        await assistant.client.read_resource("mnemic://document/1")
    path = tmp_path / "calls.log"
    text = path.read_text(encoding="utf-8")
    assert path.stat().st_mode & 0o777 == 0o600
    assert "vault" not in text.lower()
    assert len(text) < 4000
    records = [json.loads(line) for line in text.splitlines()]
    assert [record["tool"] for record in records] == ["remember", "ask", "forget", "resources/read"]
    assert [record["outcome"] for record in records[:2]] == ["done", "done"]
    assert records[2]["outcome"].startswith("'documents.0': Input should be less")
    assert records[0]["arguments"] == {"text": "24 characters", "title": "5 characters"}
    assert records[3]["arguments"] == {"uri": "mnemic://document/1"}
    assert all(record["seconds"] >= 0 and record["time"].endswith("+00:00") for record in records)


def test_a_full_log_moves_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MAX_BYTES", 2000)
    logs = [AuditLog(tmp_path / "calls.log") for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: logs[number % 4].write("ask", {"number": number}, "done", 0.0), range(40)))
    old, new = (tmp_path / name for name in ("calls.log.1", "calls.log"))
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in (old, new))
    assert 2000 <= old.stat().st_size < 2200
    assert all(json.loads(line)["outcome"] == "done" for path in (old, new) for line in path.read_text().splitlines())


def test_a_log_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    victim, link = tmp_path / "bashrc", tmp_path / "calls.log"
    victim.write_text("alias ls=ls\n", encoding="utf-8")
    link.symlink_to(victim)
    with pytest.raises(ValueError, match="give another --log"):
        AuditLog(link)
    link.unlink()
    link.hardlink_to(victim)
    with pytest.raises(ValueError, match="give another --log"):
        AuditLog(link)
    assert victim.read_text(encoding="utf-8") == "alias ls=ls\n"
    with pytest.raises(ValueError, match="give another --log"):
        AuditLog(tmp_path)
    loose = tmp_path / "loose.log"
    loose.touch(mode=0o644)
    AuditLog(loose)
    assert loose.stat().st_mode & 0o777 == 0o600


def test_the_log_is_beside_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMIC_HOME", str(tmp_path))
    assert find_log_path(tmp_path / "work.db") == tmp_path / "work.db-mcp.log"
    assert find_log_path(parse_address("postgresql://host/db#work")) == tmp_path / "mnemic_work-mcp.log"
