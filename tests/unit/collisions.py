"""Integers chosen to collide in CPython's tables, for tests of what refuses them."""

import random

from holdfast.core.collisions import _dict_tables

PRIME = 2**61 - 1
"""Integers hash by their remainder when divided by this."""
COUNT = 3000


def on_one_trail() -> list[int]:
    """Of distinct hashes: half fill a trail through the table, the others walk along it."""
    mask, held = _dict_tables(COUNT)[-2]
    trail, at = list[int](), 1
    while len(trail) < held // 2:
        trail.append(at)
        at = (at * 5 + 1) & mask
    walkers = _led_to(trail, mask, held - len(trail))
    return [*trail, *walkers, *range(10**9, 10**9 + 9)]


def _led_to(trail: list[int], mask: int, count: int) -> list[int]:
    """Hashes whose every jump ends on the trail, the last ones near its beginning."""
    places, start, bits = set(trail), set(trail[: len(trail) // 8]), mask.bit_length()
    rnd, found = random.Random(3), set[int]()

    def grown(low: int, known: int) -> int | None:
        """A hash with these low bits, if there is one that stays on the trail."""
        at, perturb = low & mask, low
        for _ in range((known - bits) // 5):
            perturb >>= 5
            at = (at * 5 + 1 + perturb) & mask
            if at not in places:
                return None
        if known >= 60:
            for _ in range(20):
                perturb >>= 5
                at = (at * 5 + 1 + perturb) & mask
                if at not in places:
                    return None
                if not perturb:
                    return low if at in start else None
        options = list(range(32))
        rnd.shuffle(options)
        for more in options:
            answer = grown(low | more << known, known + 5)
            if answer is not None:
                return answer
        return None

    while len(found) < count:
        made = grown(rnd.choice(trail), bits)
        if made is not None and made < PRIME:
            found.add(made)
    return sorted(found - places)
