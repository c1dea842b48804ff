"""What hooks and helpers say to each other.

A hook says one thing: two lengths, then the fields, then the event as it came. A helper answers in
lines: signs of life while it works, and what became of the event.
"""

from __future__ import annotations

LARGEST_EVENT = 64 * 10**6
"""Bytes of an event: a tool's output may be long, but not endless."""
_LARGEST_HEAD = 10**6
_LARGEST_LENGTHS = 40

ALIVE, DONE, FAILED, AGAIN = b".", b"0", b"1", b"2"
"""It is at work; the event is kept, or cannot be; another helper has to be told."""


class Request:
    """An event, and what its hook knows of it."""

    def __init__(
        self, *, version: str, event_id: str, folder: str, words: list[str], event: bytes
    ) -> None:
        self.version = version
        self.event_id = event_id
        self.folder = folder
        self.words = words
        self.event = event

    def pack(self) -> bytes:
        """Return its bytes."""
        fields = [self.version, self.event_id, self.folder, *self.words]
        head = "\0".join(fields).encode("utf-8", "surrogateescape")
        return b"%d %d\n%b%b" % (len(head), len(self.event), head, self.event)

    @classmethod
    def unpack(cls, data: bytes | bytearray) -> Request | None:
        """Return a request; None if it is not whole yet. ValueError if it never will be."""
        lengths, end, _ = data[:_LARGEST_LENGTHS].partition(b"\n")
        if not end:
            if len(data) >= _LARGEST_LENGTHS:
                raise ValueError("no request begins so")
            return None
        of_head, of_event = map(int, lengths.split())
        if not (0 <= of_head <= _LARGEST_HEAD and 0 <= of_event <= LARGEST_EVENT):
            raise ValueError("a request is not so long")
        begin = len(lengths) + 1
        if len(data) < begin + of_head + of_event:
            return None
        head = data[begin : begin + of_head].decode("utf-8", "surrogateescape")
        version, event_id, folder, *words = head.split("\0")
        event = bytes(data[begin + of_head : begin + of_head + of_event])
        return cls(version=version, event_id=event_id, folder=folder, words=words, event=event)


class Answer:
    """What became of an event: one of DONE, FAILED and AGAIN, and what there is to say."""

    def __init__(self, kind: bytes, text: str = "") -> None:
        self.kind = kind
        self.text = text

    def pack(self) -> bytes:
        """Return its line."""
        text = " ".join(self.text.split("\n")).encode("utf-8", "surrogateescape")
        return b"%b %b\n" % (self.kind, text)

    @classmethod
    def unpack(cls, said: bytes) -> Answer | None:
        """Return the answer among the whole lines of what was said so far, if it is there."""
        for line in said.split(b"\n")[:-1]:
            kind, _, text = line.partition(b" ")
            if kind in (DONE, FAILED, AGAIN):
                return cls(kind, text.decode("utf-8", "surrogateescape"))
        return None
