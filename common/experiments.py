"""Experiments between a few processes, from which the parameters of point-to-point models are estimated.

Every floor knows them: models ask for them, the simulator and real MPI libraries run them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

ROUNDTRIP = "roundtrip"
SEND = "send"
RECEIVE = "receive"
SATURATION = "saturation"
PRTT = "prtt"
ONE_TO_TWO = "one_to_two"
SCATTER = "scatter"
GATHER = "gather"
CHAIN_BCAST = "chain_bcast"
LINEAR_BARRIER = "linear_barrier"

POINT_TO_POINT = (ROUNDTRIP, SEND, RECEIVE, SATURATION, PRTT)
ON_MANY = (SCATTER, GATHER, CHAIN_BCAST, LINEAR_BARRIER)
KINDS = (*POINT_TO_POINT, ONE_TO_TWO, *ON_MANY)


@dataclass(frozen=True, order=True)
class Experiment:
    """One experiment between `processes`, named by rank; the first one, i, keeps the time. Sizes in bytes.

    Receives are posted before anything can arrive. Of kind
    - 'roundtrip': i sends `message_bytes` to j, which replies with `reply_bytes`;
    - 'send': the time that i spends in sending `message_bytes` within such a roundtrip;
    - 'receive': i sends `reply_bytes` to j, which answers with `message_bytes`; i is busy for `delay_seconds`, within
      which the answer arrives, and then completes its receive: the time of that alone;
    - 'saturation': i sends `count` messages in a row to j, which replies with `reply_bytes` after the last;
    - 'prtt': the same with `delay_seconds` of other work between two sends, PRTT(count, delay, message_bytes);
    - 'one_to_two': i sends `message_bytes` to j, then to k; both reply with `reply_bytes`; i completes the receive from
      k first, so that it takes in both replies after the last has come when k is no sooner than j;
    - 'scatter', 'gather': the linear algorithm with blocks of `message_bytes`, root i, until the last process is done;
    - 'chain_bcast', 'linear_barrier': the unsegmented chain broadcast from i, and the barrier, until the last is done.
    The last four take the processes 0 to P - 1, all of them.
    """

    kind: str
    processes: tuple[int, ...]
    message_bytes: int
    reply_bytes: int = 0
    count: int = 1
    delay_seconds: float = 0.0


@dataclass(frozen=True)
class Measurement:
    """The mean time of an experiment, the half-width of its confidence interval, and how often it was repeated.

    `half_width_seconds` is 0 where time is exact.
    """

    seconds: float
    half_width_seconds: float = 0.0
    repetitions: int = 1


@dataclass
class Effort:
    """What measuring took: experiments times repetitions, and the seconds that passed on the platform meanwhile.

    Experiments side by side on disjoint processes share those seconds.
    """

    measurements: int = 0
    seconds: float = 0.0


class Laboratory(Protocol):
    """Where experiments are made: a simulated platform, a real one, or a model that stands for one in a test."""

    procs: int
    """How many processes there are, one a node."""
    least_bytes: int
    """The smallest message that costs what a message costs: 1 in simulation, where empty ones are free of overhead."""
    eager_limit_bytes: int
    """Messages of this size and more use rendezvous."""
    effort: Effort
    """Everything asked for so far, also what was known from before."""

    def run(self, experiments: Sequence[Experiment], in_parallel: bool = True) -> list[Measurement]:
        """The measurements in the order of the experiments; side by side on disjoint processes if `in_parallel`.

        Raises UsageError for an experiment that does not fit and CollwiseError when one fails.
        """
