"""The files of a checkpoint: whatever they are called, however many, and what changed in them."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from holdfast import SyncClient
from holdfast.workspace import Workspace
from tests.clients import url_of
from tests.ui.kit import BASE, Api

ODD = b"caf\xe9 100%.txt"
"""A name that is no UTF-8, and has in it what addresses are written with."""


@pytest.fixture(params=["memory", "sqlite"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SyncClient]:
    with SyncClient.open(url_of(request.param, tmp_path)) as opened:
        yield opened


class Folder:
    """A directory whose files are saved with checkpoints of one session."""

    def __init__(self, client: SyncClient, path: Path) -> None:
        path.mkdir()
        self.path = path
        self._client = client

    def write(self, name: str | bytes, data: bytes = b"text\n") -> None:
        place = os.path.join(os.fsencode(self.path), os.fsencode(name))
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "wb") as file:
            file.write(data)

    def saved(self) -> str:
        with Workspace(self.path, store=self._client) as workspace:
            return self._client.save("agent", session_id="s", workspace=workspace)


@pytest.fixture
def folder(client: SyncClient, tmp_path: Path) -> Folder:
    return Folder(client, tmp_path / "work")


def named(answer: dict[str, Any], field: str = "changed") -> dict[str, Any]:
    return {entry["path"]: entry[field] for entry in answer["entries"]}


def test_a_directory_lists_directories_first_and_then_files(
    client: SyncClient, folder: Folder
) -> None:
    folder.write("b.txt")
    folder.write("src/main.py", b"12345")
    (folder.path / "a-link").symlink_to("b.txt")
    api, checkpoint_id = Api(client), folder.saved()

    found = api.get("files", id=checkpoint_id)
    inner = api.get("files", id=checkpoint_id, path="src")

    assert named(found, "kind") == {"src": "directory", "a-link": "link", "b.txt": "file"}
    assert [(each["name"], each["path"], each["size"]) for each in inner["entries"]] == [
        ("main.py", "src/main.py", 5)
    ]
    assert found["changed"] is None


def test_many_files_are_listed_page_by_page(client: SyncClient, folder: Folder) -> None:
    for number in range(25):
        folder.write(f"{number:02}.txt")
    api, checkpoint_id = Api(client), folder.saved()
    pages = [api.get("files", id=checkpoint_id, limit=10)]

    while cursor := pages[-1]["next"]:
        pages.append(api.get("files", id=checkpoint_id, limit=10, cursor=cursor))

    found = [name for page in pages for name in named(page)]
    assert found == [f"{number:02}.txt" for number in range(25)]
    assert [page["total"] for page in pages] == [25, 25, 25]


def test_what_changed_since_the_parent_is_marked(client: SyncClient, folder: Folder) -> None:
    for name in ("same", "changed", "gone", "old-name", "old/deep/file", "in/changed"):
        folder.write(name, name.encode())
    folder.saved()
    folder.write("new")
    folder.write("changed", b"other")
    folder.write("in/changed", b"other")
    (folder.path / "gone").unlink()
    (folder.path / "old/deep/file").unlink()
    (folder.path / "old/deep").rmdir()
    (folder.path / "old").rmdir()
    (folder.path / "old-name").rename(folder.path / "new-name")
    api, checkpoint_id = Api(client), folder.saved()

    found = api.get("files", id=checkpoint_id)

    assert named(found) == {
        "in": "modified",
        "old": "removed",
        "changed": "modified",
        "gone": "removed",
        "new": "added",
        "new-name": "renamed",
        "same": None,
    }
    assert found["changed"] == {"added": 1, "removed": 2, "modified": 2, "renamed": 1, "mode": 0}
    renamed = next(each for each in found["entries"] if each["name"] == "new-name")
    assert renamed["old_ref"] == "old-name"
    assert named(api.get("files", id=checkpoint_id, path="old/deep")) == {
        "old/deep/file": "removed"
    }


def test_all_files_are_new_where_the_parent_had_none(client: SyncClient, folder: Folder) -> None:
    client.save("agent", session_id="s")
    folder.write("a")
    folder.write("b/c")

    found = Api(client).get("files", id=folder.saved())

    assert named(found) == {"b": "added", "a": "added"}
    assert found["changed"]["added"] == 2


def test_a_name_that_is_no_text_comes_back_through_an_address(
    client: SyncClient, folder: Folder
) -> None:
    folder.write(b"d\xff/" + ODD, b"bonjour\n")
    folder.write(b"d\xff/" + ODD.replace(b"\xe9", b"\xe8"), b"another\n")
    api, checkpoint_id = Api(client), folder.saved()

    directory = api.get("files", id=checkpoint_id)["entries"][0]
    listed = api.get("files", id=checkpoint_id, ref=directory["ref"])["entries"]
    texts = [api.get("file", id=checkpoint_id, ref=each["ref"])["text"] for each in listed]
    asked = urlencode({"id": checkpoint_id, "ref": listed[1]["ref"]}).encode("ascii")
    raw = api.http.get(f"{BASE}raw?{asked.decode()}")

    assert [each["name"] for each in listed] == ["caf\ufffd 100%.txt"] * 2
    assert texts == ["another\n", "bonjour\n"]
    assert raw.content == b"bonjour\n"


def test_the_ref_of_a_common_name_is_its_path(client: SyncClient, folder: Folder) -> None:
    folder.write("übung/a b&c=d+e#f?.txt")
    api, checkpoint_id = Api(client), folder.saved()

    entry = api.get("files", id=checkpoint_id, path="übung")["entries"][0]

    assert entry["ref"] == entry["path"] == "übung/a b&c=d+e#f?.txt"
    assert api.get("file", id=checkpoint_id, path=entry["path"])["text"] == "text\n"


def test_a_text_is_given_with_its_changed_lines(client: SyncClient, folder: Folder) -> None:
    folder.write("poem.TXT", b"one\ntwo\nthree\n")
    folder.saved()
    folder.write("poem.TXT", b"one\n2\nthree\n")

    found = Api(client).get("file", id=folder.saved(), path="poem.TXT")

    assert (found["kind"], found["text"], found["cut"]) == ("text", "one\n2\nthree\n", None)
    assert (found["encoding"], found["language"]) == ("utf-8", "txt")
    assert found["diff"].splitlines()[2:] == ["@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "image"),
        (b"GIF89a\0", "image"),
        (b"a\0b", "binary"),
        (b"<svg onload=alert(1)>", "text"),
        (b"", "text"),
        (b"\xff\xfe latin", "text"),
    ],
)
def test_what_a_file_is_follows_from_its_bytes(
    client: SyncClient, folder: Folder, data: bytes, kind: str
) -> None:
    folder.write("file.html", data)

    assert Api(client).get("file", id=folder.saved(), path="file.html")["kind"] == kind


def test_a_long_text_is_cut_between_two_characters(client: SyncClient, folder: Folder) -> None:
    folder.write("long", b"a" + "€".encode() * 400_000)

    found = Api(client).get("file", id=folder.saved(), path="long")

    assert found["cut"] == 1_200_001
    assert found["encoding"] == "utf-8"
    assert set(found["text"][1:]) == {"€"}


def test_text_that_is_no_utf8_is_shown_all_the_same(client: SyncClient, folder: Folder) -> None:
    folder.write("old.txt", "café".encode("latin-1"))

    found = Api(client).get("file", id=folder.saved(), path="old.txt")

    assert (found["text"], found["encoding"]) == ("café", "latin-1")


def test_a_link_says_where_it_leads_and_is_not_followed(client: SyncClient, folder: Folder) -> None:
    (folder.path / "link").symlink_to("/etc/passwd")

    found = Api(client).get("file", id=folder.saved(), path="link")

    assert (found["kind"], found["text"]) == ("link", "/etc/passwd")


def test_bytes_are_given_so_that_they_do_no_harm(client: SyncClient, folder: Folder) -> None:
    folder.write("page.html", b"<script>alert(1)</script>")
    folder.write("program", b"\x7fELF\0")
    api, checkpoint_id = Api(client), folder.saved()

    page = api.raw("raw", id=checkpoint_id, path="page.html")
    program = api.raw("raw", id=checkpoint_id, path="program")

    assert page.headers["content-type"] == "text/plain; charset=utf-8"
    assert "sandbox" in page.headers["content-security-policy"]
    assert program.headers["content-disposition"].startswith("attachment")


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../b", "a//b", "a\0b", ".", "x" * 9000])
@pytest.mark.parametrize("address", ["files", "file", "raw"])
def test_a_path_that_leads_out_of_the_tree_is_refused(
    client: SyncClient, folder: Folder, address: str, path: str
) -> None:
    folder.write("a")
    api, checkpoint_id = Api(client), folder.saved()

    assert "is no path" in api.refused(address, 400, id=checkpoint_id, path=path)["message"]
    assert "is no path" in api.refused(address, 400, id=checkpoint_id, ref=path)["message"]


def test_what_is_not_there_is_not_found(client: SyncClient, folder: Folder) -> None:
    folder.write("a")
    api, checkpoint_id = Api(client), folder.saved()
    without = client.save("agent", session_id="none")

    api.refused("file", 404, id=checkpoint_id, path="b")
    api.refused("files", 404, id=checkpoint_id, path="b")
    api.refused("files", 400, id=checkpoint_id, path="a")
    api.refused("file", 400, id=checkpoint_id)
    api.refused("files", 404, id="nothing")
    assert "without files" in api.refused("files", 404, id=without)["message"]


def test_a_directory_is_no_file(client: SyncClient, folder: Folder) -> None:
    folder.write("a/b")

    assert "directory" in Api(client).refused("file", 400, id=folder.saved(), path="a")["message"]


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    with SyncClient.open(url_of("sqlite", tmp_path)) as client:
        folder = Folder(client, tmp_path / "work")
        folder.write("a", os.urandom(5000))
        checkpoint_id = folder.saved()
        with closing(sqlite3.connect(tmp_path / "holdfast.db")) as database, database:
            database.execute("UPDATE chunks SET data = x'0001' WHERE length(data) > 4000")

        error = Api(client).refused("file", 422, id=checkpoint_id, path="a")

    assert error["kind"] == "damaged"
