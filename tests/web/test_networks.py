"""Models, stories, long texts, recipes, tables and folders over HTTP; MCP beside them."""

import time
from pathlib import Path

import pytest
from mcp_process import HELLO
from web_service import DOCUMENTS, TOKEN, Api, open_api

MUSEUM = "The museum was founded by Edith Marlowe in 1897. Visitors pay nothing on Sundays."
MCP_HEADERS = {"Accept": "application/json, text/event-stream"}


def test_models_say_what_they_can(api: Api) -> None:
    models = {model["name"]: model for model in api.call("GET", "/v1/models")["models"]}
    assert "ask_story" in models["entnet-babi"]["methods"]
    assert "remember" in models["bert-mass"]["methods"]
    assert all(model["bytes"] > 10_000 and model["license"] and model["sources"] for model in models.values())


def test_a_story_is_asked_and_its_memory_seen(api: Api) -> None:
    example = api.call("GET", "/v1/stories/example?model=entnet-babi&seed=3")
    assert example == api.call("GET", "/v1/stories/example?task=1&seed=3"), "its first task is 1"
    body = {"model": "entnet-babi", "sentences": example["sentences"], "question": example["question"]}
    result = api.call("POST", "/v1/stories/ask", json=body)
    assert result["answer"] == result["candidates"][0]["text"] == example["answer"]
    count = len(example["sentences"])
    assert [len(hop["weights"]) for hop in result["hops"]] == [count]
    assert {len(step) for step in result["slots"]["steps"]} == {len(result["slots"]["names"])}
    assert len(result["slots"]["steps"]) == count
    without_slots = api.call("POST", "/v1/stories/ask", json=body | {"model": "wmn-babi"})
    assert without_slots["slots"] is None
    assert len(without_slots["hops"]) > 1
    api.call("POST", "/v1/stories/ask", 422, json=body | {"model": "bert-mass"})
    api.call("POST", "/v1/stories/ask", 404, json=body | {"model": "../entnet-babi"})
    api.call("POST", "/v1/stories/ask", 422, json=body | {"sentences": [" "]})
    api.call("POST", "/v1/stories/ask", 422, json=body | {"sentences": []})
    api.call("GET", "/v1/stories/example?task=21", 422)
    api.call("GET", "/v1/stories/example?model=nothing", 404)


@pytest.mark.slow
def test_a_long_text_is_read_into_slots(tmp_path: Path) -> None:
    with open_api(tmp_path) as api:
        job = api.finish(api.call("POST", "/v1/texts", 202, json={"text": MUSEUM, "name": "museum"})["job"])
        assert (job["state"], job["kind"], job["done"]) == ("done", "text", 17)
        path = f"/v1/texts/{job['result']['text']}"
    with open_api(tmp_path) as api:  # after a restart
        text = api.call("GET", path)
        units = [unit for segment in text["segments"] for unit in segment["units"]]
        assert [MUSEUM[unit["first"] : unit["last"]] for unit in units] == [slot["text"] for slot in text["slots"]]
        assert [unit["weight"] for unit in units] == text["segments"][0]["weights"]
        assert all(0 < unit["weight"] < 1 for unit in units)
        (snapshot,) = text["history"]
        assert sorted(unit for unit in snapshot["units"] if unit >= 0) == [0, 1]
        answer = api.call("POST", f"{path}/ask", json={"question": "Who founded the museum?"})
        assert answer["answer"] == "Edith Marlowe"
        assert answer["slots"][0]["text"] == MUSEUM[:48]
        assert api.call("GET", "/v1/texts")["texts"][0]["num_filled"] == 2
        api.call("DELETE", path, 204)
        api.call("GET", path, 404)
        api.call("DELETE", path, 404)
        assert list((tmp_path / "state" / "texts").iterdir()) == []
        failed = api.finish(api.call("POST", "/v1/texts", 202, json={"text": "x", "model": "reader"})["job"])
        assert failed["state"] == "failed"
        assert "cannot remember" in failed["message"]


def test_recipes_and_tables(api: Api) -> None:
    names = [recipe["name"] for recipe in api.call("GET", "/v1/recipes")["recipes"]]
    assert "entnet" in names
    assert "[tasks.16]" in api.call("GET", "/v1/recipes/entnet")["toml"]
    api.call("GET", "/v1/recipes/nothing", 404)
    tables = {table["name"]: table["rows"] for table in api.call("GET", "/v1/tables")["tables"]}
    (row,) = [row for row in tables["babi"] if row["system"] == "entnet, 10k per task"]
    assert (row["published"], row["ours"], row["unit"]) == (0.5, 1.075, "% error")
    assert row["command"] == "mnemic table babi --recipe entnet --size 10k --seeds 10 --data DIR"
    assert tables.keys() == {"babi", "words", "fine-tuning"}


def test_a_folder_is_remembered_watched_and_reindexed(tmp_path: Path) -> None:
    folder = tmp_path / "letters"
    folder.mkdir()
    (folder / "a.txt").write_text("The ferry leaves at nine.", encoding="utf-8")
    (folder / "a.xyz").write_text("?", encoding="utf-8")
    with open_api(tmp_path, folders=(folder,)) as api:
        assert api.call("GET", "/v1/folders")["folders"] == [{"id": "letters", "name": "letters"}]
        path = "/v1/memories/notes/folders/letters"
        job = api.finish(api.call("POST", path, 202)["job"])
        assert job["counts"] == {"new": 1, "skipped": 1}
        assert job["unread"][0]["name"] == "letters/a.xyz"
        for name in ("other", "%2e%2e%2fetc", "%2fetc"):
            api.call("POST", f"/v1/memories/notes/folders/{name}", 404)
        assert api.call("PUT", f"{path}/watch", json={"on": True})["watching"] is True
    with open_api(tmp_path, folders=(folder,)) as api:  # it is watched again
        assert api.call("GET", f"{path}/watch")["watching"] is True
        (folder / "b.txt").write_text("The train leaves at ten.", encoding="utf-8")
        end = time.monotonic() + 20
        while api.call("GET", DOCUMENTS)["total"] < 2:
            assert time.monotonic() < end
            time.sleep(0.05)
        assert api.call("PUT", f"{path}/watch", json={"on": False})["watching"] is False
        job = api.finish(api.call("POST", "/v1/memories/notes/reindex", 202)["job"])
        assert (job["kind"], job["state"]) == ("reindex", "done")


@pytest.mark.parametrize(("token", "status"), [(TOKEN, 200), ("wrong", 401)])
def test_assistants_use_the_same_process(api: Api, token: str, status: int) -> None:
    headers = MCP_HEADERS | {"Authorization": f"Bearer {token}"}
    assert api.client.post("/mcp", json=HELLO, headers=headers).status_code == status
