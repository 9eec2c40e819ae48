"""The gap between messages by saturation: more and more messages in a row, until their number does not matter.

O'Flynn 2009, sections 2.2.2 and 2.2.4, takes the whole time over the number of messages, T(s) / s, which still holds
1 / s of a roundtrip: eight hundred messages for 1 %. Here that roundtrip, T(1), is taken off, (T(s) - T(1)) / (s - 1),
as Hoefler et al. 2007 do; the same in the limit, and exact at once where nothing but the gap holds messages up.
"""

from __future__ import annotations

from dataclasses import dataclass

from collwise.common.errors import UsageError
from collwise.common.experiments import SATURATION, Experiment
from collwise.models.fitting.rounds import Pair, Procedure


@dataclass(frozen=True)
class Doubling:
    """How many messages in a row: `first`, doubled until the gap changes by less than `change`.

    Not beyond `most` messages, nor `most_bytes` in all of them.
    """

    first: int = 100
    change: float = 0.01
    most: int = 6400
    most_bytes: int = 1 << 28

    def __post_init__(self) -> None:
        if not 2 <= self.first <= self.most or self.change <= 0:
            raise UsageError(
                f"saturation with {self.first} to {self.most} messages, change {self.change}: "
                "at least 2 messages and a change above 0 are valid"
            )


DOUBLING = Doubling()


def saturated_gap(
    pair: Pair, message_bytes: int, reply_bytes: int, single_seconds: float, doubling: Doubling
) -> Procedure[float]:
    """Seconds from one message of that size to the next.

    `single_seconds` is the roundtrip of one message and the reply. Without a gap that settles, the last one is it.
    """
    count, before = doubling.first, None
    while True:
        (seconds,) = yield [Experiment(SATURATION, pair, message_bytes, reply_bytes, count)]
        gap = (seconds - single_seconds) / (count - 1)
        settled = before is not None and abs(gap - before) <= doubling.change * abs(gap)
        if settled or 2 * count > doubling.most or 2 * count * message_bytes > doubling.most_bytes:
            return gap
        count, before = 2 * count, gap
