"""Notes, lists, questions, history and forgetting over HTTP."""

from pathlib import Path

import pytest
from web_service import DOCUMENTS, Api, open_api, parse_events

LEASE = "The lease ends on 30 June. The rent is 700 euros a month."
NOTES = "/v1/memories/notes/notes"
ASK = "/v1/memories/notes/ask"


@pytest.fixture(scope="module")
def lease(api: Api) -> int:
    return api.call("POST", NOTES, 201, json={"text": LEASE, "title": "lease"})["id"]


def test_a_note_is_listed_read_and_found(api: Api, lease: int) -> None:
    listed = api.call("GET", DOCUMENTS)
    (row,) = [document for document in listed["documents"] if document["id"] == lease]
    assert row["source"] == "note"
    assert (row["name"], row["kind"], row["versions"], row["has_original"]) == ("lease", "note", 1, False)
    passages = api.call("GET", f"{DOCUMENTS}/{lease}/passages")["passages"]
    assert "".join(passage["text"] for passage in passages) == LEASE
    sentences = passages[0]["sentences"]
    assert [LEASE[row["first"] : row["last"]] for row in sentences] == LEASE.replace(". ", ".|").split("|")
    hits = api.call("POST", "/v1/memories/notes/search", json={"query": "rent"})["hits"]
    assert hits[0]["document"] == lease
    assert hits[0]["passage"] == passages[0]["id"]
    assert hits[0]["place"] == "lease, line 1"


def test_an_answer_names_the_passage_of_each_sentence(api: Api, lease: int) -> None:
    answer = api.call("POST", ASK, json={"question": "How much is the rent?"})
    assert answer["answer"] == "The rent is 700 euros a month."
    best = answer["evidence"][0]
    around = api.call("GET", f"{DOCUMENTS}/{lease}/passages?around={best['passage']}")["passages"]
    (passage,) = [row for row in around if row["id"] == best["passage"]]
    assert passage["text"][best["start"] : best["end"]] == best["sentence"]
    assert answer["place"] == "lease, line 1"


def test_what_was_found_is_streamed_before_the_answer(api: Api, lease: int) -> None:
    headers = {"Accept": "text/event-stream"}
    stream = api.client.post(ASK, json={"question": "When does the lease end?"}, headers=headers)
    (found, _, evidence), (name, _, answer) = parse_events(stream.text)
    assert (found, name) == ("found", "answer")
    key = lambda row: (row["passage"], row["start"])  # noqa: E731
    assert sorted(map(key, evidence["evidence"])) == sorted(map(key, answer["evidence"]))
    plain = api.call("POST", ASK, json={"question": "When does the lease end?"})
    assert answer | {"seconds": 0} == plain | {"seconds": 0}
    stream = api.client.post(ASK, json={"question": "When?", "kind": "no kind"}, headers=headers)
    ((name, _, problem),) = parse_events(stream.text)
    assert (name, problem["status"]) == ("problem", 422)


def test_an_update_keeps_the_old_version(api: Api) -> None:
    old = api.call("POST", NOTES, 201, json={"text": "The code of the bicycle lock is 1234."})["id"]
    new = api.call("PUT", f"{DOCUMENTS}/{old}", 201, json={"text": "The code of the bicycle lock is 9876."})
    assert new["versions"] == 2
    details = api.call("GET", f"{DOCUMENTS}/{old}")
    assert [version["id"] for version in details["versions"]] == [old, new["id"]]
    assert [event["kind"] for event in details["events"]] == ["remembered", "remembered", "superseded"]
    listed = api.call("GET", f"{DOCUMENTS}?query=bicycle")
    assert [row["id"] for row in listed["documents"]] == [new["id"]]
    assert api.call("GET", f"{DOCUMENTS}?query=bicycle&retired=true")["total"] == 2
    report = api.call("DELETE", f"{DOCUMENTS}/{new['id']}?verify=true")
    assert report["documents"] == [old, new["id"]]
    assert (report["verified"], report["traces"]) == (True, [])
    api.call("GET", f"{DOCUMENTS}/{old}", 404)
    api.call("DELETE", f"{DOCUMENTS}/{new['id']}", 404)


def test_lists_have_pages(tmp_path: Path) -> None:
    with open_api(tmp_path) as api:
        numbers = [api.call("POST", NOTES, 201, json={"text": f"Note {name}."})["id"] for name in "abcde"]
        rows, after = [], ""
        while after is not None:
            page = api.call("GET", f"{DOCUMENTS}?limit=2{after and f'&after={after}'}")
            assert page["total"] == 5
            rows += page["documents"]
            after = page["next"]
        assert [row["id"] for row in rows] == numbers[::-1]
        first = api.call("GET", "/v1/memories/notes/history?limit=3")
        rest = api.call("GET", f"/v1/memories/notes/history?limit=3&after={first['next']}")
        assert [event["document"] for event in (*first["events"], *rest["events"])] == numbers[::-1]
        text = "\n\n".join(f"Paragraph {number} is about boat {number}. " * 9 for number in range(20))
        long = api.call("POST", NOTES, 201, json={"text": text})
        pages, after = [], ""
        while after is not None:
            page = api.call("GET", f"{DOCUMENTS}/{long['id']}/passages?limit=3{after and f'&after={after}'}")
            pages += page["passages"]
            after = page["next"]
        assert len(pages) == long["passages"] > 6
        assert len({row["id"] for row in pages}) == len(pages)
        near = api.call("GET", f"{DOCUMENTS}/{long['id']}/passages?limit=3&around={pages[5]['id']}")
        assert [row["id"] for row in near["passages"]] == [row["id"] for row in pages[4:7]]


def test_a_memory_that_is_not_there_yet_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMIC_HOME", str(tmp_path / "home"))
    with open_api(tmp_path, memories=()) as api:
        (default,) = api.call("GET", "/v1/memories")["memories"]
        assert (default["documents"], default["is_default"]) == (0, True)
        path = f"/v1/memories/{default['id']}"
        assert api.call("GET", f"{path}/documents") == {"documents": [], "next": None, "total": 0}
        api.call("POST", f"{path}/ask", 404, json={"question": "Who?"})
        created = api.call("POST", "/v1/memories", 201, json={"name": "work"})
        assert created["id"] == "work"
        api.call("POST", "/v1/memories", 409, json={"name": "work"})
        for name in ("../x", "a/b", ".x", "a b", "x" * 61, ""):
            api.call("POST", "/v1/memories", 422, json={"name": name})
        api.call("POST", "/v1/memories/work/notes", 201, json={"text": "The boiler is in the cellar."})
        assert api.call("GET", "/v1/memories/work")["documents"] == 1
        assert sorted(path.name for path in (tmp_path / "home").glob("*.db")) == ["work.db"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "body.question"),
        ({"question": "x" * 2001}, "body.question"),
        ({"question": 3}, "body.question"),
        ({"question": "Who?", "hops": 9}, "body.hops"),
        ({"question": "Who?", "passages": 10**30}, "body.passages"),
        ({"question": "Who?", "nonsense": 1}, "body.nonsense"),
        ({"question": "\ud800"}, "body.question"),
    ],
)
def test_a_wrong_question_names_its_field(api: Api, lease: int, body: dict[str, object], field: str) -> None:
    import json

    problem = api.call("POST", ASK, 422, content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert [row["field"] for row in problem["errors"]] == [field]


def test_other_mistakes_are_sentences(api: Api, lease: int) -> None:
    api.call("POST", ASK, 422, json={"question": " "})
    api.call("POST", ASK, 422, json={"question": "Who?", "since": "yesterday"})
    api.call("POST", ASK, 400, content=b"\xff{", headers={"Content-Type": "application/json"})
    api.call("GET", "/v1/memories/other", 404)
    api.call("GET", f"{DOCUMENTS}/99999", 404)
    api.call("GET", f"{DOCUMENTS}/{10**40}", 422)
    api.call("GET", f"{DOCUMENTS}/{lease}/passages?around=99999", 404)
    assert "GET" in api.client.patch(DOCUMENTS).headers["allow"]
    api.call("PATCH", DOCUMENTS, 405)
    api.call("GET", "/v1/nothing", 404)


def test_dates_and_items_of_answers(tmp_path: Path) -> None:
    """The shipped reader answers; the date of "yesterday" is counted from that of its message."""
    chat = "[8 May 2023, 10:15] Anna: I painted the kitchen yesterday.\n[8 May 2023, 10:17] Ben: Nice."
    with open_api(tmp_path, reader="reader") as api:
        api.call("POST", NOTES, 201, json={"text": chat, "title": "chat"})
        api.call("POST", NOTES, 201, json={"text": "The partners of the firm are Anna Berg, Ben Cole and Eva Lang."})
        answer = api.call("POST", ASK, json={"question": "When did Anna paint the kitchen?"})
        assert (answer["answer"], answer["date"]["iso"]) == ("yesterday", "2023-05-07")
        assert (answer["date"]["anchor"], answer["date"]["source"]) == ("8 May 2023", "text")
        assert answer["date"]["anchor_evidence"]["document"] == 1
        assert answer["items"] == []
        several = api.call("POST", ASK, json={"question": "Who are the three partners of the firm?"})
        assert [item["answer"] for item in several["items"]] == ["Anna Berg", "Ben Cole", "Eva Lang"]
        assert several["date"] is None
