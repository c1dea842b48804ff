"""Conversations that programs keep as lines of JSON: each line is read once, and with care."""

import json
import os
from pathlib import Path

import pytest

from holdfast.coding_agents.json_lines import JsonLines, position


def test_a_file_is_read_on_from_where_it_was(tmp_path: Path) -> None:
    file, lines = tmp_path / "chat.jsonl", JsonLines()
    file.write_text('{"n": 1}\n{"n": 2}\n{"n"')
    first = lines.read(str(file))
    with file.open("a") as more:
        more.write(": 3}\n")
    second = lines.read(str(file))

    assert first == [{"n": 1}, {"n": 2}]
    assert second == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert second is not None
    assert first is not None
    assert second[0] is first[0]


@pytest.mark.parametrize("how", ["shorter", "another"])
def test_a_file_that_was_written_anew_is_read_anew(tmp_path: Path, how: str) -> None:
    file, lines = tmp_path / "chat.jsonl", JsonLines()
    file.write_text('{"n": 1}\n{"n": 2}\n')
    lines.read(str(file))
    if how == "shorter":
        file.write_text('{"n": 9}\n')
    else:
        other = tmp_path / "other"
        other.write_text('{"n": 8}\n{"n": 9}\n{"n": 9}\n')
        os.replace(other, file)

    read = lines.read(str(file))

    assert read is not None
    assert read[-1] == {"n": 9}
    assert {"n": 1} not in read


def test_a_line_that_is_no_json_is_kept_as_text(tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    deep = "[" * 100_000
    file.write_bytes(b'not json\n\xff\xfe\n\n{"a": NaN, "b": 1}\n' + deep.encode() + b"\n")

    read = JsonLines().read(str(file))

    assert read is not None
    assert [read[0], read[1], read[2], read[4]] == ["not json", "��", "", deep]


def test_secrets_are_hidden_also_where_they_are_escaped(tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    secret = "ghp_" + "a" * 36
    escaped = json.dumps({"said": secret}).replace("g", "\\u0067", 1)
    file.write_text(json.dumps({"said": f"use {secret}"}) + "\n" + escaped + "\n")

    assert JsonLines().read(str(file)) == [{"said": "use ***"}, {"said": "***"}]


@pytest.mark.parametrize("secret", ["sk-" + "a1B2" * 6, "postgresql://me:hunter2@db/agents"])
def test_a_secret_is_hidden_however_its_letters_are_escaped(tmp_path: Path, secret: str) -> None:
    file = tmp_path / "escaped.jsonl"
    letters = "".join(f"\\u{ord(letter):04x}" for letter in secret)
    strokes = secret.replace("/", "\\/")
    lines = [f'["{letters}"]', f'["{strokes}"]', f'["a line\\n{secret}"]', f'["\\"{secret}\\""]']
    file.write_text("\n".join(lines) + "\n")

    read = JsonLines().read(str(file)) or []

    assert len(read) == len(lines)
    assert all("***" in entry[0] for entry in read)


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    lines = JsonLines()

    for path in (fifo, tmp_path, tmp_path / "none", "/dev/zero", "a\0b", "~nobody-here/x"):
        assert lines.read(str(path)) is None
        assert position(str(path))["bytes"] is None


def test_old_files_are_forgotten(tmp_path: Path) -> None:
    lines = JsonLines()
    for n in range(40):
        file = tmp_path / f"{n}.jsonl"
        file.write_text(f'{{"n": {n}}}\n')
        assert lines.read(str(file)) == [{"n": n}]

    assert len(lines._known) < 20
