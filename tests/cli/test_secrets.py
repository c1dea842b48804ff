"""What is secret in a URL appears nowhere: not in what is printed, raised, logged or kept."""

import logging
import traceback

import pytest

from holdfast import HoldfastError, SyncClient
from holdfast.cli.output import escaping
from holdfast.stores.shared.secrets import masked, secrets_in
from tests.cli.everything import run

SECRET = "hunter2-s3cr3t"
ENCODED = "p%40ss%2Fhunter2-s3cr3t"

PLACES = [
    f"redis://me:{SECRET}@127.0.0.1:1/0",
    f"redis://:{SECRET}@127.0.0.1:1/0",
    f"redis://:{ENCODED}@127.0.0.1:1/0",
    f"redis://127.0.0.1:1/0?password={SECRET}",
    f"redis://127.0.0.1:1/0?username=me&password={SECRET}&socket_timeout={SECRET}",
    f"redis+cluster://:{SECRET}@127.0.0.1:1",
    f"redis+sentinel://:{SECRET}@127.0.0.1:1/service",
    f"postgresql://me:{SECRET}@127.0.0.1:1/agents",
    f"postgresql://me:{ENCODED}@127.0.0.1:1/agents",
    f"postgresql://127.0.0.1:1/agents?user=me&password={SECRET}",
    f"postgresql://127.0.0.1:1/agents?pass%77ord={SECRET}",
    f"postgresql://127.0.0.1:1/agents?nonsense={SECRET}",
    f"postgresql://me:{SECRET}@[::1/agents",
    f"postgresql://me:{SECRET}\u2100@127.0.0.1/agents",
    f"host=127.0.0.1 port=1 user=me password={SECRET} dbname=agents",
    f"host=127.0.0.1 password = 'a b {SECRET}'",
    f"sqlite:///no/such.db?blobs=s3://key:{SECRET}@bucket/prefix",
    f"sqlite:///no/such.db?blobs=s3%3A%2F%2Fkey%3A{SECRET}%40bucket",
    f"sqlite:///no/such.db?blobs=s3://bucket&blobs_endpoint=http://key:{SECRET}@127.0.0.1:1",
    f"sqlite:///no/such.db?key={SECRET}",
    f"sqlite://me:{SECRET}@here/no.db",
    f"file://me:{SECRET}@/?x={SECRET}",
    f"nonsense://me:{SECRET}@here",
]
COMMANDS = [["doctor"], ["log"], ["init"]]


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one command was told to hide is no help to the next."""
    monkeypatch.setattr(escaping, "_hidden", set())
    monkeypatch.delenv("HOLDFAST_URL", raising=False)


@pytest.mark.parametrize("url", PLACES, ids=range(len(PLACES)))
def test_no_command_shows_what_is_secret(
    url: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(str(tmp_path))
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("HOLDFAST_URL", url)
    # The client of Sentinel asks for 4 s whether one is there.
    for command in COMMANDS[:1] if "sentinel" in url else COMMANDS:
        for how in ([], ["--json"]):
            for where in ([], ["--store", url]):
                done = run([*command, *where, *how])
                assert "hunter2" not in done.out + done.err + caplog.text, (command, how)
                assert "Traceback" not in done.err


def use(url: str) -> None:
    with SyncClient.open(url) as client:
        assert "hunter2" not in repr(client) + repr(client.store) + client.store.name
        client.stats()
    raise HoldfastError("it could be opened")


@pytest.mark.parametrize("url", PLACES, ids=range(len(PLACES)))
def test_no_error_of_the_library_shows_what_is_secret(
    url: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    with pytest.raises(HoldfastError) as raised:
        use(url)

    shown = "".join(traceback.format_exception(raised.value))
    frames_cut = "\n".join(line for line in shown.splitlines() if not line.startswith("    "))
    assert "hunter2" not in frames_cut
    error: BaseException | None = raised.value
    while error is not None:
        assert "hunter2" not in str(error) + repr(error)
        error = error.__cause__


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///a/b.db?durability=normal", "sqlite:///a/b.db?durability=normal"),
        ("redis://me:p@ss@host:1/0", "redis://me:***@host:1/0"),
        ("redis://host", "redis://host"),
        (
            "postgresql:///db?sslmode=require&sslpassword=x",
            "postgresql:///db?sslmode=require&sslpassword=***",
        ),
        ("host=h password='a\\'b' user=me", "host=h password=*** user=me"),
        ("sqlite:///a.db?blobs=s3%3A%2F%2Fk%3As%40b", "sqlite:///a.db?blobs=s3://k:***@b"),
        ("/a/plain path", "/a/plain path"),
    ],
)
def test_what_is_harmless_is_shown(url: str, shown: str) -> None:
    assert masked(url) == shown


def test_the_secrets_of_a_url_are_known_as_written_and_as_meant() -> None:
    assert secrets_in("redis://:a%40b@h?password=c+d&db=1") == {"a%40b", "a@b", "c+d", "c d"}
