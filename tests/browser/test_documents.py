"""Documents in the page: add, report, retry, watch, change, forget; several memories."""

from pathlib import Path

import papers
from visitor import Visitor

LEASE = "When does the lease end?"
DROP = """([selector, name, text]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([text], name, { type: 'text/plain' }));
  const node = document.querySelector(selector);
  for (const type of ['dragenter', 'dragover', 'drop']) {
    node.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: transfer }));
  }
}"""


def test_files_that_were_not_read_are_reported_and_retried(visitor: Visitor, tmp_path: Path) -> None:
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    visitor.upload(
        papers.write_letter(tmp_path / "letter.txt"),
        tmp_path / "broken.pdf",
        papers.write_locked(tmp_path / "bank.pdf"),
    )
    report = visitor.page.locator(".unread")
    assert set(report.locator(".unread-name").all_inner_texts()) == {"broken.pdf", "bank.pdf"}
    assert "password" in report.inner_text()
    visitor.page.reload()
    visitor.page.wait_for_selector(".unread")  # the report outlives the visit
    report.locator("input[type=password]").first.fill("sesame")
    report.locator("button", has_text="Read them again").first.click()
    visitor.page.wait_for_selector(".job-done .job-counts:has-text('1 could not be read')")
    assert visitor.page.locator(".unread-name").first.inner_text() == "broken.pdf"
    assert "42" in visitor.ask("How many euros has the account?")


def test_a_job_that_begins_while_the_list_of_jobs_is_on_its_way(visitor: Visitor, tmp_path: Path) -> None:
    """An old list arrives after the upload: its lack of the new job means nothing."""
    waiting = []
    visitor.page.route("**/v1/jobs", lambda route: waiting.append((route, route.fetch())))
    visitor.open("documents", selector=".dropzone")
    visitor.page.wait_for_timeout(300)
    with visitor.page.expect_response(lambda answer: answer.request.method == "POST"):
        visitor.page.set_input_files("#pick-files", str(papers.write_letter(tmp_path / "letter.txt")))
    assert waiting
    for route, answer in waiting:
        route.fulfill(response=answer)
    visitor.page.wait_for_selector(".job-done .job-counts:has-text('1 new')")


def test_a_job_is_stopped_and_later_read_to_its_end(visitor: Visitor, tmp_path: Path) -> None:
    """Its progress is there again after a reload of the page; a stop keeps what was read."""
    paths = [tmp_path / f"letter-{number}.txt" for number in range(30)]
    for number, path in enumerate(paths):
        path.write_text(f"Letter {number}.\n" + papers.FILLER * 40, encoding="utf-8")
    visitor.open("documents", selector=".dropzone")
    with visitor.page.expect_response(lambda answer: answer.request.method == "POST"):
        visitor.page.set_input_files("#pick-files", [str(path) for path in paths])
    visitor.page.reload()
    visitor.page.wait_for_selector(".job progress")
    visitor.page.click(".job button:has-text('Stop')")
    visitor.page.wait_for_selector(".job-stopped")
    num_read = visitor.page.locator(".document").count()
    assert num_read < 30
    visitor.page.click("text=Read the rest")
    visitor.page.wait_for_selector(".job-done")
    visitor.page.wait_for_selector("text=30 documents")


def test_a_forgotten_document_is_proven_gone(visitor: Visitor, tmp_path: Path) -> None:
    visitor.upload(papers.write_letter(tmp_path / "letter.txt"))
    assert visitor.ask(LEASE) == "30 June"
    visitor.open("documents", selector=".document")
    visitor.page.click(".document button")
    dialog = visitor.page.locator("dialog")
    assert "letter.txt" in dialog.inner_text()
    assert dialog.locator(":focus").inner_text() == "Cancel"
    dialog.locator(".danger").click()
    visitor.page.wait_for_selector(".proof-good")
    facts = dict(zip(dialog.locator("dt").all_inner_texts(), dialog.locator("dd").all_inner_texts()))
    assert facts["Documents erased"] == "1"
    assert facts["Traces in the raw bytes"] == "0"
    stored = visitor.page.evaluate("Object.values(localStorage).join(' ')")
    assert LEASE in stored, "the questions stay"
    assert "30 June" not in stored, "an answer quotes what is forgotten"
    dialog.locator(".primary").click()
    visitor.page.wait_for_selector(".empty")
    assert visitor.ask(LEASE) == "No answer in these documents"


def test_dropped_and_pasted_texts_are_remembered(visitor: Visitor) -> None:
    visitor.open("documents", selector=".dropzone")
    visitor.page.evaluate(DROP, [".dropzone", "boiler.txt", "The boiler was serviced on 4 June."])
    visitor.page.wait_for_selector(".document-name:has-text('boiler.txt')")
    visitor.page.click("text=Write a note")
    visitor.page.fill("#note-text", "The spare key is under the blue pot.")
    visitor.page.fill("#note-name", "Keys")
    visitor.page.click("dialog .primary")
    visitor.page.wait_for_selector(".document-name:has-text('Keys')")
    assert "blue pot" in visitor.ask("Where is the spare key?")


def test_a_folder_keeps_the_names_of_its_files(visitor: Visitor, tmp_path: Path) -> None:
    (tmp_path / "house" / "letters").mkdir(parents=True)
    papers.write_letter(tmp_path / "house" / "letters" / "lease.txt")
    visitor.open("documents", selector=".dropzone")
    visitor.page.set_input_files("#pick-folder", str(tmp_path / "house"))
    visitor.page.wait_for_selector(".document-name:has-text('lease.txt')")
    assert "house / letters" in visitor.page.inner_text(".document-words")


def test_a_list_is_searched_and_a_note_changed(visitor: Visitor) -> None:
    visitor.add_note("The lease ends on 30 June.", "Lease")
    visitor.add_note("The boiler is from 1998.", "Boiler")
    visitor.open("documents", selector=".document")
    visitor.page.fill("#document-search", "boil")
    visitor.wait_for_texts(".document-name", ["Boiler"])
    visitor.page.click(".document-name")
    visitor.page.click("text=Edit")
    visitor.page.fill("#edit-text", "The boiler is from 2004.")
    visitor.page.click("dialog .primary")
    visitor.page.wait_for_selector(".line:has-text('2004')")
    visitor.page.click("text=Versions and history")
    assert visitor.page.locator(".versions li").count() == 2


def test_a_folder_of_the_server_is_read_and_watched(visitor: Visitor) -> None:
    visitor.open("documents", selector=".folder")
    visitor.page.click(".folder button:has-text('Read now')")
    visitor.page.wait_for_selector(".document-name:has-text('garden.txt')")
    switch = visitor.page.locator(".folder .switch")
    switch.click()
    visitor.page.wait_for_selector(".folder .switch[aria-checked=true]")
    visitor.page.reload()
    visitor.page.wait_for_selector(".folder .switch")
    switch.click()
    visitor.page.wait_for_selector(".folder .switch[aria-checked=false]")


def test_memories_are_made_and_chosen(visitor: Visitor) -> None:
    visitor.add_note("The lease ends on 30 June.")
    visitor.open("documents", selector=".document")
    visitor.page.select_option("#memory", "+new")
    name = f"{visitor.memory[:40]}-2"
    visitor.page.fill("#memory-name", name)
    visitor.page.click("dialog .primary")
    visitor.page.wait_for_selector(".empty:has-text('Nothing is remembered yet')")
    assert visitor.page.locator("#memory option:checked").inner_text() == name
    visitor.page.select_option("#memory", visitor.memory)
    visitor.page.wait_for_selector(".document")
    visitor.page.reload()
    visitor.page.wait_for_selector(".document")
    assert visitor.page.locator("#memory option:checked").inner_text() == visitor.memory
