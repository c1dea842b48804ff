"""Circles of links: each is found once, and whoever looks for them ends."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.verbs.chains import circles, shown

ids = st.sampled_from("abcdefgh")


@given(st.dictionaries(ids, st.one_of(st.none(), ids)))
def test_what_is_in_a_circle_leads_back_to_itself_and_all_such_is_found(
    links: dict[str, str | None],
) -> None:
    found = [each for circle in circles(links) for each in circle]

    def comes_back(start: str) -> bool:
        at = links.get(start)
        for _ in range(len(links)):
            if at == start:
                return True
            at = links.get(at) if at is not None else None
        return False

    assert len(found) == len({*found})
    assert {*found} == {each for each in links if comes_back(each)}


def test_a_circle_is_said_with_the_ids_it_leads_along() -> None:
    assert shown(["a", "b"], "they lead") == "they lead in a circle: a → b → a"
    assert shown([*"abcdef"], "they lead") == "they lead in a circle: a → b → c → d → … → a"
