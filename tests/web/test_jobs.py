"""Jobs: progress that survives a reload, stopping, retrying, restarts; many askers beside them."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread

import pytest
from web_service import DOCUMENTS, Api, open_api, parse_events

from mnemic.store import RememberStep
from mnemic.web.jobs.pools import WorkerPool, WriteTurns
from mnemic.web.jobs.remember import RememberJob
from mnemic.web.jobs.table import RESTARTED, JobTable, RunningJob, make_record
from mnemic.web.limits import WebLimits
from mnemic.web.problems import Problem

NOTES = "/v1/memories/notes/notes"


def write_notes(count: int) -> dict[str, bytes]:
    return {f"{number}.txt": b"Boat %d is in harbor %d. " % (number, number) * 5 for number in range(count)}


def test_progress_is_streamed_and_resumes(api: Api) -> None:
    job = api.upload({"a.txt": b"One. Two.", "b.zip": b"x"})
    path = f"/v1/jobs/{job['id']}/events"
    ((name, number, end),) = parse_events(api.client.get(path).text)
    assert (name, end) == ("end", job)
    assert number is not None
    again = parse_events(api.client.get(path, headers={"Last-Event-ID": str(number)}).text)
    assert again == [("end", number, job)]
    parse_events(api.client.get(path, headers={"Last-Event-ID": "nonsense"}).text)
    api.call("GET", "/v1/jobs/0123456789abcdef/events", 404)
    assert api.call("GET", "/v1/jobs")["jobs"][0] == job
    assert job["done"] == job["total"]


def test_a_stream_has_only_what_is_new(tmp_path: Path) -> None:
    import asyncio

    from mnemic.web.routes.jobs import follow_job

    async def follow() -> list[tuple[str, int | None, object]]:
        job, events = RunningJob(make_record("text")), []
        job.update(state="running", done=1, total=3)
        async for block in follow_job(job, 0):
            events += parse_events(block.decode())
            if job.record.done < 3:
                job.update(done=job.record.done + 1)
            else:
                job.update(state="done")
        return events

    events = asyncio.run(follow())
    assert [name for name, _, _ in events] == ["progress", "progress", "progress", "end"]
    numbers = [number for _, number, _ in events]
    assert numbers == sorted(set(numbers), key=lambda number: number or 0)
    assert "unread" not in events[0][2]  # type: ignore[operator]


def test_a_job_stops_and_its_retry_reads_the_rest(tmp_path: Path) -> None:
    with open_api(tmp_path) as api:
        files = write_notes(70)
        parts = [("files", (name, content)) for name, content in files.items()]
        with api.server.memories.get("notes").turns.take():  # it cannot begin to write
            job = api.call("POST", DOCUMENTS, 202, files=parts)["job"]
            api.call("POST", f"/v1/jobs/{job['id']}/retry", 409)
            api.call("DELETE", f"/v1/jobs/{job['id']}", 202)
            job = api.finish(job)
        assert job["state"] == "stopped"
        retried = api.finish(api.call("POST", f"/v1/jobs/{job['id']}/retry", 202)["job"])
        assert (retried["state"], retried["counts"]) == ("done", {"new": 70})
        assert api.call("GET", DOCUMENTS)["total"] == 70


def test_jobs_survive_a_restart(tmp_path: Path) -> None:
    with open_api(tmp_path) as api:
        done = api.upload({"a.txt": b"One."})
        staging = api.server.memories.get("notes").files.folder / ".incoming" / f"{api.server.options.port}-killed"
        staging.mkdir(parents=True)
        (staging / "b.txt").write_bytes(b"The ferry leaves at nine.")
        record = make_record("remember", "notes", names=["b.txt"], staging=str(staging), state="running")
        api.server.jobs.save(RunningJob(record))  # and here the server is killed
    with open_api(tmp_path) as api:
        jobs = {job["id"]: job for job in api.call("GET", "/v1/jobs")["jobs"]}
        assert jobs[done["id"]] == done
        assert (jobs[record.id]["state"], jobs[record.id]["message"]) == ("stopped", RESTARTED)
        retried = api.finish(api.call("POST", f"/v1/jobs/{record.id}/retry", 202)["job"])
        assert retried["counts"] == {"new": 1}
        assert api.call("GET", f"{DOCUMENTS}?query=b.txt")["total"] == 1
        assert not staging.exists()


def test_old_jobs_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemic.web.jobs.table.MAX_JOBS", 3)
    table = JobTable(tmp_path, WorkerPool("test", 1, 10, None))
    for _ in range(6):
        job = table.start(make_record("text"), lambda job: None)
        while not job.is_over:
            time.sleep(0.001)
    assert len(table.list_all()) <= 4
    assert len(list(tmp_path.glob("*.json"))) <= 4
    (tmp_path / "damaged.json").write_text("{", encoding="utf-8")
    assert len(JobTable(tmp_path, WorkerPool("test", 1, 10, None)).list_all()) <= 4


def test_a_job_that_fails_says_why(tmp_path: Path) -> None:
    def fail(job: RunningJob) -> None:
        raise ValueError("the disk is full")

    table = JobTable(tmp_path, WorkerPool("test", 1, 10, None))
    job = table.start(make_record("text"), fail)
    while not job.is_over:
        time.sleep(0.001)
    assert (job.record.state, job.record.message) == ("failed", "The disk is full.")


def test_people_write_before_the_next_turn_of_a_job() -> None:
    turns, order, begun = WriteTurns(), list[str](), Event()

    def write(name: str, *, is_urgent: bool) -> None:
        with turns.take(is_urgent=is_urgent):
            order.append(name)

    with turns.take():
        job = Thread(target=write, args=("job",), kwargs={"is_urgent": False})
        job.start()
        time.sleep(0.05)
        person = Thread(target=write, args=("person",), kwargs={"is_urgent": True})
        person.start()
        time.sleep(0.05)
        with pytest.raises(Problem), turns.take(0.0):
            begun.set()
    job.join()
    person.join()
    assert order == ["person", "job"]
    assert not begun.is_set()
    with turns.take(0.0):
        stop = Event()
        stop.set()
        with turns.take(is_urgent=False, stop=stop):
            pass
        with pytest.raises(Problem), turns.take(0.0):
            pass


def test_a_note_does_not_wait_for_a_long_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemic.web.jobs.remember.MIN_TURN_S", 0.0)
    with open_api(tmp_path) as api:
        parts = [("files", item) for item in write_notes(140).items()]
        job = api.call("POST", DOCUMENTS, 202, files=parts)["job"]
        note = api.call("POST", NOTES, 201, json={"text": "It is written meanwhile."})
        job = api.finish(job)
        assert job["counts"] == {"new": 140}
        listed = api.call("GET", f"{DOCUMENTS}?limit=200")
        assert listed["total"] == 141
        assert note["id"] <= 141


def test_a_turn_ends_after_all_that_was_written_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note_step, people = RememberJob.note_step, list[Thread]()

    def write(turns: WriteTurns) -> None:
        with turns.take():
            pass

    def note_step_and_interrupt(job: RememberJob, step: RememberStep) -> None:
        note_step(job, step)
        if step.outcome == "new" and not people:  # the first of many files that were committed together
            people.append(Thread(target=write, args=(job.served.turns,)))
            people[0].start()
            while not job.served.turns.num_urgent:
                time.sleep(0.001)

    monkeypatch.setattr("mnemic.web.jobs.remember.MIN_TURN_S", 0.0)
    monkeypatch.setattr(RememberJob, "note_step", note_step_and_interrupt)
    with open_api(tmp_path) as api:
        job = api.finish(
            api.call("POST", DOCUMENTS, 202, files=[("files", item) for item in write_notes(80).items()])["job"]
        )
    people[0].join()
    assert job["counts"] == {"new": 80}


def test_many_ask_while_documents_are_remembered(tmp_path: Path) -> None:
    with open_api(tmp_path) as api:
        api.call("POST", NOTES, 201, json={"text": "The lighthouse was built in 1897."})
        question = {"question": "When was the lighthouse built?"}

        def ask(_: int) -> str:
            return str(api.call("POST", "/v1/memories/notes/ask", json=question)["answer"])

        parts = [("files", item) for item in write_notes(100).items()]
        job = api.call("POST", DOCUMENTS, 202, files=parts)["job"]
        with ThreadPoolExecutor(16) as pool:
            answers = set(pool.map(ask, range(64)))
        assert answers == {"The lighthouse was built in 1897."}
        assert api.finish(job)["counts"] == {"new": 100}
        assert api.call("GET", DOCUMENTS)["total"] == 101


def test_too_many_questions_are_refused_and_slow_ones_end(tmp_path: Path) -> None:
    limits = WebLimits(num_readers=1, max_waiting=0, answer_timeout_s=0.2)
    with open_api(tmp_path, limits=limits) as api:
        release = Event()
        api.server.readers.submit(lambda: release.wait(10))
        problem = api.call("GET", "/v1/memories", 429)
        assert "later" in problem["detail"]
        release.set()
    with open_api(tmp_path, limits=limits._replace(max_waiting=5)) as api:
        release = Event()
        api.server.readers.submit(lambda: release.wait(10))
        api.call("GET", "/v1/memories", 504)
        release.set()
        time.sleep(0.1)
        api.call("GET", "/v1/memories")


def test_memory_that_is_busy_is_reported_and_unchanged(tmp_path: Path) -> None:
    with open_api(tmp_path, limits=WebLimits(write_timeout_s=0.05)) as api:
        with api.server.memories.get("notes").turns.take():
            response = api.client.post(NOTES, json={"text": "It comes too early."})
        assert response.status_code == 503
        assert response.headers["retry-after"]
        assert api.call("GET", DOCUMENTS)["total"] == 0


def test_what_is_forgotten_during_a_job_is_in_no_file_and_the_job_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnemic.web.jobs.remember.MIN_TURN_S", 0.0)
    with open_api(tmp_path) as api:
        files = {f"boat-{number}.txt": b"Boat %d is red. " % number * 1000 for number in range(20)}
        job = api.call("POST", DOCUMENTS, 202, files=[("files", row) for row in files.items()])["job"]
        while not (rows := api.call("GET", DOCUMENTS)["documents"]):
            time.sleep(0.002)
        assert api.call("GET", f"/v1/jobs/{job['id']}")["state"] == "running"
        name = rows[-1]["name"]
        assert api.call("DELETE", f"{DOCUMENTS}/{rows[-1]['id']}?verify=true")["verified"]
        job = api.finish(job)
        assert (job["state"], job["unread"], sum(job["counts"].values())) == ("done", [], 20)
        assert api.call("GET", DOCUMENTS)["total"] == 19
        for path in tmp_path.rglob("*"):
            assert not path.is_file() or name.encode() not in path.read_bytes(), path


def test_a_stopped_upload_goes_with_its_job(tmp_path: Path) -> None:
    folder, staging = tmp_path / "jobs", tmp_path / "staging"
    table = JobTable(folder, WorkerPool("t", 1, 10, None))
    staging.mkdir()
    job = table.start(make_record("remember", staging=str(staging)), lambda job: None)
    text = table.start(make_record("text"), lambda job: job.update(message="My diary", result={"text": "0123"}))
    while not (job.is_over and text.is_over):
        time.sleep(0.002)
    table.pool.close(5)
    table.remove(job)
    table.remove_text("0123")
    assert list(folder.iterdir()) == []
    assert not staging.exists()
