"""A memory of bounded size: the oldest is forgotten first, and what is taken is given once."""

from holdfast.system.recent import Recent


def test_what_was_put_in_longest_ago_is_forgotten() -> None:
    recent: Recent[str, int] = Recent(2)
    for name, value in (("a", 1), ("b", 2), ("a", 3), ("c", 4)):
        recent.put(name, value)

    assert (recent.get("a"), recent.get("b"), recent.get("c")) == (3, None, 4)


def test_what_is_taken_is_given_once() -> None:
    recent: Recent[str, int] = Recent(2)
    recent.put("a", 1)

    assert (recent.take("a"), recent.take("a")) == (1, None)


def test_what_is_dropped_is_not_found() -> None:
    recent: Recent[str, int] = Recent(3)
    for value in (1, 2, 3):
        recent.put(str(value), value)

    recent.drop(lambda name, value: value == 1)

    assert recent.find(lambda value: value < 3) == 2
    assert recent.find(lambda value: value == 1) is None
