"""Uploads: names that lead nowhere else, limits, interruptions, originals, forgetting."""

import os
from pathlib import Path

import pytest
from web_service import DOCUMENTS, TOKEN, Api, open_api

from mnemic.web.limits import WebLimits
from mnemic.web.problems import Problem
from mnemic.web.uploads import MAX_NAME_BYTES, UploadReceiver, make_relative

FERRY = b"The ferry to Oslo leaves at nine on Monday."


def files_of(api: Api) -> dict[str, bytes]:
    """The uploaded files by their names."""
    folder = api.server.memories.get("notes").files.folder
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_is_uploaded_and_found_again(tmp_path: Path) -> None:
    with open_api(tmp_path) as api:
        job = api.upload({"trip/ferry.txt": FERRY, "trip/.hidden/x.txt": b"x", "empty.txt": b"", "a.zip": b"no zip"})
        assert (job["state"], job["counts"]) == ("done", {"new": 1, "skipped": 1, "broken": 2})
        unread = {row["name"]: row["outcome"] for row in job["unread"]}
        assert unread == {"trip/.hidden/x.txt": "skipped", "empty.txt": "broken", "a.zip": "broken"}
        (document,) = api.call("GET", DOCUMENTS)["documents"]
        assert (document["name"], document["source"], document["has_original"]) == ("trip/ferry.txt", "upload", True)
        assert document["bytes"] == len(FERRY)
        original = api.call("GET", f"{DOCUMENTS}/{document['id']}/original")
        assert original.content == FERRY
        assert original.headers["content-disposition"].startswith("attachment")
        assert original.headers["content-type"] == "application/octet-stream"
        assert original.headers["content-security-policy"].startswith("sandbox")
        question = {"question": "When does the ferry leave?"}
        for inside, read in (("trip", 1), ("trip/ferry.txt", 1), ("other", 0), ("../..", 1), ("/etc", 0)):
            answer = api.call("POST", "/v1/memories/notes/ask", json=question | {"inside": inside})
            assert answer["read"] == read, inside
        folder = api.server.memories.get("notes").files.folder
        private = [folder, *folder.rglob("*"), tmp_path / "state", *(tmp_path / "state").rglob("*")]
        modes = {oct(path.stat().st_mode & 0o777) for path in private}
        assert modes == {"0o700", "0o600"}
        assert list((folder / ".incoming").iterdir()) == []


def test_a_file_of_the_same_name_is_a_new_version(tmp_path: Path) -> None:
    with open_api(tmp_path) as api:
        api.upload({"a.txt": b"The code is 1234."})
        assert api.upload({"a.txt": b"The code is 1234."})["counts"] == {"unchanged": 1}
        assert api.upload({"a.txt": b"The code is 9876."})["counts"] == {"changed": 1}
        (document,) = api.call("GET", DOCUMENTS)["documents"]
        assert document["versions"] == 2
        assert api.call("GET", f"{DOCUMENTS}/{document['id']}/original").content == b"The code is 9876."
        assert api.upload({"a.txt/b.txt": b"x"})["state"] == "failed", "a file cannot become a folder"


def test_what_is_forgotten_is_in_no_file(tmp_path: Path) -> None:
    secret = b"The password of the safe is Rumpelstilzchen."
    with open_api(tmp_path) as api:
        api.upload({"safe-instructions.txt": secret, "copy of it.txt": secret, "other.txt": FERRY})
        (document,) = api.call("GET", f"{DOCUMENTS}?query=safe-instructions")["documents"]
        report = api.call("DELETE", f"{DOCUMENTS}/{document['id']}?verify=true")
        assert (report["verified"], report["traces"], report["files_removed"]) == (True, [], 2)
        assert list(files_of(api)) == ["other.txt"]
        for path in tmp_path.rglob("*"):
            content = path.read_bytes() if path.is_file() else b""
            assert b"Rumpelstilzchen" not in content, path
            assert b"safe-instructions" not in content, path


def test_an_old_upload_goes_with_the_text_that_replaced_it(tmp_path: Path) -> None:
    with open_api(tmp_path) as api:
        api.upload({"a.txt": b"The code is 1234."})
        new = api.call("PUT", f"{DOCUMENTS}/1", 201, json={"text": "The code is 9876."})["id"]
        assert list(files_of(api)) == ["a.txt"]
        assert api.call("DELETE", f"{DOCUMENTS}/{new}")["files_removed"] == 1
        assert files_of(api) == {}


def test_files_that_were_to_be_deleted_go_after_a_kill(tmp_path: Path) -> None:
    from mnemic.web.forget import note_pending

    with open_api(tmp_path) as api:
        api.upload({"a.txt": FERRY, "b.txt": b"The train leaves at ten."})
        served = api.server.memories.get("notes")
        path = served.files.folder / "a.txt"
        note_pending(served.files.folder, [path, served.files.folder / "b.txt", Path("/etc/hostname")])
        served.memory.forget(str(path))  # and here the server is killed
        assert path.exists()
        left = served.files.folder / ".incoming" / f"{api.server.options.port}-0123"
        left.mkdir(parents=True)
    with open_api(tmp_path) as api:
        assert list(files_of(api)) == ["b.txt"]
        assert not left.exists()
        assert os.path.exists("/etc/hostname")


@pytest.mark.parametrize(
    ("name", "relative"),
    [
        ("a.txt", "a.txt"),
        ("trip/ferry.txt", "trip/ferry.txt"),
        ("/etc/passwd", "etc/passwd"),
        ("C:\\Users\\ann\\a.txt", "Users/ann/a.txt"),
        ("./a/./b.txt", "a/b.txt"),
        ("a\x00b\r\n.txt", "a_b__.txt"),
        ("x\u202etxt.exe", "x_txt.exe"),
        ("e\u0301.txt", "\u00e9.txt"),
        ("n" * 300 + ".pdf", "n" * (MAX_NAME_BYTES - 4) + ".pdf"),
        ("../a.txt", None),
        ("a/../../b.txt", None),
        ("a\\..\\..\\b.txt", None),
        ("..", None),
        ("", None),
        ("/", None),
        ("a/" * 30 + "b", None),
    ],
)
def test_a_name_stays_below_its_folder(name: str, relative: str | None) -> None:
    if relative is None:
        with pytest.raises(Problem):
            make_relative(name)
    else:
        assert make_relative(name) == relative


def test_a_name_that_leads_out_is_refused_and_nothing_is_written(api: Api) -> None:
    before = files_of(api)
    for name in ("../x.txt", "a/../../x.txt", "..\\x.txt", "/../x.txt"):
        problem = api.upload({"good.txt": b"x", name: b"x"}, 422)
        assert "leads out of its folder" in problem["detail"]
    assert files_of(api) == before


def test_a_link_in_the_folder_is_not_followed(tmp_path: Path) -> None:
    with open_api(tmp_path) as api:
        api.upload({"a.txt": b"The code is 1234."})
        path = api.server.memories.get("notes").files.folder / "a.txt"
        (tmp_path / "target.txt").write_bytes(b"The code is 1234.")
        path.unlink()
        path.symlink_to(tmp_path / "target.txt")
        api.call("GET", f"{DOCUMENTS}/1/original", 404)


def test_a_file_of_the_command_line_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    path = tmp_path / "letters" / "a.txt"
    path.write_bytes(FERRY)
    with open_api(tmp_path) as api:
        api.server.memories.get("notes").memory.remember(path)
        (row,) = api.call("GET", DOCUMENTS)["documents"]
        assert (row["source"], row["has_original"]) == ("file", False)
        api.call("GET", f"{DOCUMENTS}/1/original", 404)
    with open_api(tmp_path, folders=(tmp_path / "letters",)) as api:
        (row,) = api.call("GET", DOCUMENTS)["documents"]
        assert (row["name"], row["source"], row["has_original"]) == ("letters/a.txt", "folder", True)
        assert api.call("GET", f"{DOCUMENTS}/1/original").content == FERRY
        path.write_bytes(b"changed")
        api.call("GET", f"{DOCUMENTS}/1/original", 404)


def test_limits_of_an_upload(tmp_path: Path) -> None:
    limits = WebLimits(max_file_bytes=100, max_upload_bytes=3000, max_files=3)
    with open_api(tmp_path, limits=limits) as api:
        assert "100 bytes" in api.upload({"a.txt": b"x" * 101}, 413)["detail"]
        assert "3 files" in api.upload({f"{name}.txt": b"x" for name in "abcd"}, 413)["detail"]
        assert "3,000 are taken" in api.upload({f"{name}.txt": b"x" * 99 for name in "abcdefghijklmno"}, 413)["detail"]
        api.call("POST", DOCUMENTS, 415, content=b"x", headers={"Content-Type": "text/plain"})
        api.call("POST", DOCUMENTS, 415, content=b"x")
        api.call("POST", DOCUMENTS, 422, files={"wrong": ("a.txt", b"x")})
        api.call("POST", DOCUMENTS, 422, files=[("files", ("a.txt", b"x"))], data={"password": "x" * 2000})
        assert files_of(api) == {}
        assert api.call("GET", "/v1/jobs")["jobs"] == []
        assert api.upload({"a.txt": b"x" * 100})["state"] == "done"


def send_body(api: Api, body: bytes, status: int) -> None:
    """Send a body as multipart, whatever it is."""
    headers = {"Content-Type": "multipart/form-data; boundary=B"}
    api.call("POST", DOCUMENTS, status, content=body, headers=headers)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no multipart at all",
        b'--B\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\nhalf of it',
        b'--B\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\nX: ' + b"y" * 9000 + b"\r\n\r\n",
        b"--B\r\n" + b"".join(b"X%d: y\r\n" % number for number in range(50)) + b"\r\nz\r\n--B--\r\n",
        b"--B\r\n\r\n\r\n--B\r\n",
    ],
)
def test_a_broken_upload_leaves_nothing(api: Api, body: bytes) -> None:
    before = files_of(api)
    send_body(api, body, 400)
    assert files_of(api) == before


def test_a_body_that_comes_byte_by_byte_is_the_same(tmp_path: Path) -> None:
    body = (
        b'--B\r\nContent-Disposition: form-data; name="files"; filename="a/b.txt"\r\n\r\nOne.\r\n--B\r\n'
        b'Content-Disposition: form-data; name="password"\r\n\r\nsecret\r\n--B--\r\n'
    )
    receiver = UploadReceiver("multipart/form-data; boundary=B", tmp_path, WebLimits())
    for byte in body:
        receiver.write(bytes([byte]))
    receiver.finish()
    assert (receiver.names, receiver.fields) == (["a/b.txt"], {"password": b"secret"})
    assert (tmp_path / "a" / "b.txt").read_bytes() == b"One."


def test_a_locked_file_is_read_with_its_password_at_a_retry(tmp_path: Path) -> None:
    from document_files import USER_LOCKED

    with open_api(tmp_path) as api:
        job = api.upload({"account.pdf": USER_LOCKED})
        (row,) = job["unread"]
        assert row["advice"] == "Retry with the password of the file."
        new = api.call("POST", f"/v1/jobs/{job['id']}/retry", 202, json={"password": "sesame"})["job"]
        assert api.finish(new)["counts"] == {"new": 1}
        api.call("POST", f"/v1/jobs/{new['id']}/retry", 409)
        for path in (tmp_path / "state").rglob("*.json"):
            assert b"sesame" not in path.read_bytes()
        api.call("GET", f"{DOCUMENTS}/1/pages", 422)


def test_the_server_says_when_to_come_again(tmp_path: Path) -> None:
    with open_api(tmp_path, limits=WebLimits(max_uploads=0)) as api:
        api.upload({"a.txt": b"x"}, 429)
        response = api.client.post(DOCUMENTS, files={"files": ("a.txt", b"x")})
        assert int(response.headers["retry-after"]) > 0
        assert TOKEN not in response.text
