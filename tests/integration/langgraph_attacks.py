"""What LangGraph's serializer runs when it is handed it: every way it has to make a value."""

import json
import os
import pickle
from collections.abc import Iterator
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

UNLOADED = "a_module_that_nothing_imports"
"""A module on the path; importing it leaves the mark as well."""


def _extension(code: int, *parts: Any) -> ormsgpack.Ext:
    return ormsgpack.Ext(code, ormsgpack.packb(parts))


class _Pickled:
    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Any:
        return os.system, (self.command,)


def attacks(command: str) -> Iterator[tuple[str, str, bytes]]:
    """Each with its name, the tag and the bytes."""
    argv = ["/bin/sh", "-c", command]
    extensions = {
        "one argument": _extension(0, "os", "system", command),
        "arguments": _extension(1, "os", "system", [command]),
        "named arguments": _extension(2, "os", "system", {"command": command}),
        "a class": _extension(1, "subprocess", "Popen", [argv]),
        "a class by names": _extension(2, "subprocess", "Popen", {"args": argv}),
        "a method": _extension(3, "os", "system", command, "__call__"),
        "pydantic 1": _extension(4, "os", "system", {"command": command}),
        "pydantic 2": _extension(5, "os", "system", {"command": command}, "model_validate_json"),
        "pydantic's construct": _extension(5, "subprocess", "Popen", {"args": argv}, "x"),
        "a module to import": _extension(2, UNLOADED, "Data", {"n": 1}),
        "eval": _extension(0, "builtins", "eval", f"__import__('os').system({command!r})"),
    }
    run = extensions["one argument"]
    extensions |= {
        "in a set": _extension(0, "builtins", "set", [run]),
        "in a path": _extension(1, "pathlib", "PosixPath", ["a", run]),
        "in a snapshot": ormsgpack.Ext(7, ormsgpack.packb([run])),
        "in a message": _extension(
            5, "langchain_core.messages.human", "HumanMessage", {"content": [run]}, "x"
        ),
        "in an interrupt": _extension(2, "langgraph.types", "Interrupt", {"value": run}),
    }
    for name, extension in extensions.items():
        yield name, "msgpack", ormsgpack.packb([extension, {"deep": [extension]}])
    constructor = {"lc": 2, "type": "constructor", "id": ["os", "system"], "args": [command]}
    yield "json", "json", json.dumps([constructor]).encode()
    yield "json with names", "json", json.dumps({"a": {**constructor, "kwargs": {}}}).encode()
    old = {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {"command": command}}
    yield "json of langchain", "json", json.dumps([old]).encode()
    secret = {"lc": 1, "type": "secret", "id": ["HOLDFAST_TEST_SECRET"]}
    yield "a secret", "json", json.dumps([secret]).encode()
    yield "pickle", "pickle", pickle.dumps(_Pickled(command))


def runs_with_langgraph(tag: str, data: bytes) -> Any:
    """What LangGraph's own reader makes of it, left as it is."""
    return JsonPlusSerializer().loads_typed((tag, data))
