"""Runs of both faces behind one, tools that count, and power cuts."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import pytest

from holdfast import SyncClient
from holdfast.session import lease
from holdfast.session.async_run import AsyncRun, AsyncTask, AsyncTasks, AsyncUnknownEffect
from holdfast.system import processes
from holdfast.testing import crash_points
from tests.clients import Awaited

AGENT, SESSION = "coder", "fix-42"
_WRAPPED = (AsyncRun, AsyncTask, AsyncTasks, AsyncUnknownEffect)


class PowerCut(BaseException):
    """Ends a program as a kill would: nothing is saved on the way out."""


class Plain:
    """A run, a task or a client of the async face, used from plain code."""

    def __init__(self, inner: Any, client: Awaited) -> None:
        self.__dict__.update(_inner=inner, _client=client)

    def _plain(self, found: Any) -> Any:
        if isinstance(found, list):
            return [self._plain(each) for each in found]
        return Plain(found, self._client) if isinstance(found, _WRAPPED) else found

    def __getattr__(self, name: str) -> Any:
        if name == "effects":  # what async code reads of a run that may have hundreds of them
            return self._await(self._inner.load_effects())
        member = getattr(self._inner, name)
        if inspect.isasyncgenfunction(member):
            return lambda *args, **kwargs: self._client._each(member(*args, **kwargs))
        if not inspect.ismethod(member) and not inspect.isfunction(member):
            return self._plain(member)

        def called(*args: Any, **kwargs: Any) -> Any:
            given = [each._inner if isinstance(each, Plain) else each for each in args]
            found = member(*given, **kwargs)
            if inspect.iscoroutine(found):
                found = self._await(found)
            if inspect.isgenerator(found):
                return (self._plain(each) for each in found)
            if name == "tool":
                return self._tool(found)
            return self._plain(found)

        return called

    def _tool(self, made: Any) -> Any:
        """What ``run.tool`` gives: a decorator, or the tool itself."""
        if not inspect.iscoroutinefunction(made):
            return lambda function: self._tool(made(function))
        return lambda *args, **kwargs: self._await(made(*args, **kwargs))

    def _await(self, found: Any) -> Any:
        async def whole() -> Any:
            return await found

        return self._client._runner.run(whole())

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inner, name, value)

    def __repr__(self) -> str:
        return repr(self._inner)

    def __iter__(self) -> Iterator[Any]:
        return (self._plain(each) for each in self._inner)

    def __len__(self) -> int:
        return len(self._inner)

    def __getitem__(self, name: str) -> Any:
        return self._plain(self._inner[name])

    def __enter__(self) -> Self:
        self._await(self._inner.__aenter__())
        return self

    def __exit__(self, *exc: Any) -> Any:
        return self._await(self._inner.__aexit__(*exc))


def plainly(client: SyncClient) -> Any:
    """A client whose sessions are used from plain code, whichever face it has."""
    return Plain(client._client, client) if isinstance(client, Awaited) else client


class Tools:
    """Tools that count how often they ran, and with what."""

    def __init__(self) -> None:
        self.ran: list[Any] = []

    def read(self, *args: Any) -> Any:
        return self._run("read", *args)

    def write(self, *args: Any) -> Any:
        return self._run("write", *args)

    def send(self, *args: Any) -> Any:
        return self._run("send", *args)

    def book(self, *args: Any) -> Any:
        return self._run("book", *args)

    def cancel(self, output: Any, *args: Any) -> None:
        self.ran.append(("cancel", output, *args))

    def fail(self, *args: Any) -> Any:
        self._run("fail", *args)
        raise ValueError("no such file", 2)

    def cut(self, *args: Any) -> Any:
        self._run("cut", *args)
        raise PowerCut

    def _run(self, *call: Any) -> Any:
        self.ran.append(call)
        return [*call, len(self.ran)]

    def names(self) -> list[str]:
        return [call[0] for call in self.ran]


@contextmanager
def power_cut() -> Iterator[None]:
    """The block is cut off, here or further in."""
    with pytest.raises(PowerCut):
        yield


@contextmanager
def killed() -> Iterator[None]:
    """The block is cut off as by a kill: nobody lets go of its session, and its process is gone."""

    def not_released(*args: Any, **kwargs: Any) -> Any:
        yield from ()

    gone = processes.this_process().rpartition(":")[0] + ":0"
    with pytest.MonkeyPatch.context() as patched, power_cut():
        patched.setattr(lease, "this_process", lambda: gone)
        patched.setattr(lease, "release", not_released)
        yield


@contextmanager
def cut_at(point: str, time: int = 1) -> Iterator[None]:
    """The power is cut when the block comes to a point for the nth time; it must come there."""
    passed = 0

    def reached(name: str) -> None:
        nonlocal passed
        passed += name == point
        if name == point and passed == time:
            crash_points.clear()
            raise PowerCut

    with power_cut(), crash_points.listening(reached):
        yield


Opened = Callable[..., Any]
