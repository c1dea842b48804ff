"""Files and objects that others wrote: they are read to their end, and named."""

from pathlib import Path
from urllib.parse import quote

import pytest

from holdfast import SyncClient
from tests.hostile.documents import DOCUMENTS, OBJECTS
from tests.hostile.kit import Said, crashes, fill, judged

pytestmark = pytest.mark.timeout(900)  # each case has limits of its own


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Said]:
    """What every verb says of each of the documents."""
    root = tmp_path_factory.mktemp("documents")
    victim = Path("/tmp/victim")
    victim.write_text("precious")
    cases = {}
    for number, (name, make) in enumerate(DOCUMENTS.items()):
        directory = root / str(number)
        with SyncClient.open(f"file://{directory}") as client:
            fill(client, steps=1)
        make(directory)
        cases[name] = {"url": f"file://{directory}"}
    said = judged(cases)
    assert victim.read_text() == "precious"
    victim.unlink()
    return said


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_hostile_document_gives_an_answer_or_an_error(
    name: str, documents: dict[str, Said]
) -> None:
    problems = crashes({name: documents[name]})

    assert not problems, problems


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Said]:
    """What every verb says of each of the objects."""
    root = tmp_path_factory.mktemp("objects")
    cases = {}
    for number, (name, make) in enumerate(OBJECTS.items()):
        blobs = root / f"{number}.blobs"
        url = f"sqlite:///{root}/{number}.db?blobs_above=0&blobs={quote(f'file://{blobs}')}"
        with SyncClient.open(url) as client:
            fill(client, steps=1)
        make(blobs)
        cases[name] = {"url": url}
    return judged(cases)


@pytest.mark.parametrize("name", OBJECTS)
def test_a_hostile_object_gives_an_answer_or_an_error(name: str, objects: dict[str, Said]) -> None:
    problems = crashes({name: objects[name]})

    assert not problems, problems
