"""What a LangGraph thread is called in Holdfast; LangGraph need not be installed to know it.

A thread is a session; a subgraph's namespace within it is a session of its own, named
``thread|namespace``.
"""

from __future__ import annotations

_SEPARATOR = "|"
_ESCAPES = {"%": "%25", _SEPARATOR: "%7C"}


def session_of(thread_id: str, namespace: str) -> str:
    """Return the session that holds the checkpoints of a thread's namespace."""
    name = _escaped(thread_id)
    return f"{name}{_SEPARATOR}{namespace}" if namespace else name


def sessions_below(thread_id: str) -> str:
    """Return what the names of the sessions of a thread's subgraphs begin with."""
    return _escaped(thread_id) + _SEPARATOR


def thread_of(session_id: str) -> tuple[str, str]:
    """Return the thread and the namespace that a session holds the checkpoints of."""
    name, _, namespace = session_id.partition(_SEPARATOR)
    for plain, escape in reversed(_ESCAPES.items()):
        name = name.replace(escape, plain)
    return name, namespace


def _escaped(thread_id: str) -> str:
    for plain, escape in _ESCAPES.items():
        thread_id = thread_id.replace(plain, escape)
    return thread_id
