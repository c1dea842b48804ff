"""A contract may be a schema that came with an offer: what it refers to is never fetched."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.core.contracts import check_contract
from holdfast.errors import ContractError, InvalidArgumentError


@pytest.mark.parametrize("where", ["$ref", "$dynamicRef"])
def test_a_schema_that_refers_to_a_file_reads_none(tmp_path: Path, where: str) -> None:
    (tmp_path / "private.json").write_text('{"type": "string"}')
    reference = (tmp_path / "private.json").as_uri()
    with pytest.raises(InvalidArgumentError, match="nothing is fetched"):
        check_contract({where: reference}, 3)


def test_a_schema_that_refers_to_a_server_asks_none(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("urllib.request.urlopen", lambda *given: asked.append(given))
    schema = {"properties": {"a": {"$ref": "http://169.254.169.254/latest"}}}
    with pytest.raises(InvalidArgumentError, match=r"'http://169.254.169.254/latest'"):
        check_contract(schema, {"a": 1})
    assert asked == []


def test_a_schema_may_refer_to_its_own_parts() -> None:
    schema = {"$defs": {"name": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/name"}}}
    check_contract(schema, {"a": "ann"})
    with pytest.raises(ContractError):
        check_contract(schema, {"a": 1})
