"""Text that compresses about as well as an agent's prose and tool output does."""

from __future__ import annotations

import random
from itertools import accumulate

_COMMON = """
the of and to a in that is was for it with as be on by at this not are but from or have an they
which one you all were there would their we what so if out up said can more will some could time
into then do my now made like any only other new these two may first should file function test
error result value return check call run build change because after before request response
server client table index query user message token model agent plan step search output input
version update delete create path line code review answer question customer order invoice report
data schema field column record cache queue worker process thread signal deploy rollback branch
"""
_SYLLABLES = """
con ter re pro in de ment tion al er ly an per for mat sta log net sys ver der ing com pre tra
sub ject lec tor mo du le ca che pa ra me ta ri os ex ten sion qui ve lo gi ty
"""
_RARE_WORDS = 1_500


def _vocabulary() -> list[str]:
    common, syllables = _COMMON.split(), _SYLLABLES.split()
    choose = random.Random(1)
    rare = {"".join(choose.choices(syllables, k=choose.randint(2, 4))) for _ in range(_RARE_WORDS)}
    return common + sorted(rare - set(common), key=lambda word: (len(word), word))


WORDS = _vocabulary()
# Zipf's law, as in prose: the n-th word is n times rarer than the first.
_WEIGHTS = list(accumulate(1 / (rank + 1) for rank in range(len(WORDS))))
_SENTENCE = 12


class Writer:
    """Writes text of a wanted length, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self, size: int) -> str:
        """About `size` characters of sentences with a few numbers and identifiers in them."""
        words = self.random.choices(WORDS, cum_weights=_WEIGHTS, k=size // 4 + 4)
        for position in range(0, len(words), _SENTENCE):
            words[position] = words[position].capitalize()
            if position:
                words[position - 1] += "."
        for position in range(_SENTENCE // 2, len(words), 2 * _SENTENCE):
            words[position] = self.identifier()
        return " ".join(words)[:size]

    def identifier(self) -> str:
        return f"{self.random.getrandbits(32):08x}"

    def near(self, size: int) -> int:
        """A length within 30 % of `size`."""
        return self.random.randint(size * 7 // 10, size * 13 // 10)
