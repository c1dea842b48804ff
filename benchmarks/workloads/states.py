"""S1, a dict of 2 KB, and S3, a state of 10 MB of which 1 KB changes with each step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.workloads.text import Writer

State = dict[str, Any]
Steps = Iterator[tuple[int, State]]

_DOCUMENTS = 2_400
_PARAGRAPHS = 4
_PARAGRAPH = 1_000


def small(seed: int = 1) -> Steps:
    """S1: the working memory of a small agent, about 2 KB, of which 300 bytes change."""
    write = Writer(seed)
    state: State = {
        "goal": write.text(200),
        "plan": [{"id": n, "title": write.text(60), "status": "pending"} for n in range(8)],
        "notes": {f"note-{n}": write.text(120) for n in range(5)},
        "limits": {"max_steps": 200, "budget": 12.5, "tools": ["bash", "search", "edit"]},
        "last_output": "",
    }
    step = 0
    while True:
        step += 1
        state["step"] = step
        state["last_output"] = write.text(300)
        state["plan"][step % 8]["status"] = "completed" if step % 16 < 8 else "pending"
        yield step, state


def large(seed: int = 3) -> Steps:
    """S3: 2,400 documents of 4 KB an agent has read; a step rewrites one paragraph."""
    write = Writer(seed)
    names = [f"doc-{number:05d}" for number in range(_DOCUMENTS)]
    documents = {name: _document(write, name) for name in names}
    state: State = {"documents": documents, "step": 0}
    step = 0
    while True:
        step += 1
        state["step"] = step
        document = documents[write.random.choice(names)]
        document["paragraphs"][write.random.randrange(_PARAGRAPHS)] = write.text(_PARAGRAPH)
        yield step, state


def _document(write: Writer, name: str) -> State:
    return {
        "id": name,
        "title": write.text(60),
        "source": f"https://example.com/{write.identifier()}/{name}",
        "score": write.random.random(),
        "paragraphs": [write.text(_PARAGRAPH) for _ in range(_PARAGRAPHS)],
    }
