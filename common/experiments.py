"""Experiments between a few processes, which simulators and MPI libraries run for estimators of parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from collwise.common.errors import UsageError, check_name

ROUNDTRIP = "roundtrip"
SEND = "send"
ISEND = "isend"
RECEIVE = "receive"
UNEXPECTED_RECEIVE = "unexpected_receive"
SATURATION = "saturation"
PRTT = "prtt"
SENDRECV = "sendrecv"
EAGER_LIMIT = "eager_limit"
CLOCK = "clock"
REDUCE = "reduce"
ONE_TO_TWO = "one_to_two"
SCATTER = "scatter"
GATHER = "gather"
CHAIN_BCAST = "chain_bcast"
LINEAR_BARRIER = "linear_barrier"

POINT_TO_POINT = (ROUNDTRIP, SEND, ISEND, RECEIVE, UNEXPECTED_RECEIVE, SATURATION, PRTT, SENDRECV, CLOCK, REDUCE)
ON_MANY = (SCATTER, GATHER, CHAIN_BCAST, LINEAR_BARRIER)
KINDS = (*POINT_TO_POINT, ONE_TO_TWO, *ON_MANY)
"""All kinds whose result is a time (all except 'eager_limit'). A Laboratory runs only these kinds."""
WITH_COUNT = (SATURATION, PRTT, SENDRECV, CLOCK)
WITH_DELAY = (PRTT, RECEIVE, UNEXPECTED_RECEIVE)
WITHOUT_REPLY = (SENDRECV, CLOCK, REDUCE, *ON_MANY)
_MAX_BYTES, _MAX_MESSAGES = 2**30, 100_000


@dataclass(frozen=True, order=True)
class Experiment:
    """One experiment between `processes`, given by rank; the first one, i, measures the time. Sizes are in bytes.

    Every receive is posted before its message can arrive, except as stated. The kinds are:
    - 'roundtrip': i sends `message_bytes` to j, which replies with `reply_bytes`;
    - 'send', 'isend': the time that i spends in MPI_Send or MPI_Isend of `message_bytes` within such a roundtrip;
    - 'receive': i sends `reply_bytes` to j, which replies with `message_bytes`; i is busy for `delay_seconds`, during
      which the reply arrives, and then completes its receive; the time is that of completing the receive alone;
    - 'unexpected_receive': the same, but i posts the receive only after the delay;
    - 'saturation': i sends `count` messages in a row to j, which replies with `reply_bytes` after the last;
    - 'prtt': the same with `delay_seconds` of other work between two sends, PRTT(count, delay, message_bytes);
    - 'sendrecv': i and j call MPI_Sendrecv with each other `count` times without a pause; the time is that of one call;
    - 'eager_limit': the smallest size, up to `message_bytes`, at which MPI_Send waits in all of `count` attempts for a
      receive that j posts `delay_seconds` later; the single sample is this size in bytes, 0 if no send waits, and no
      time is measured;
    - 'clock': i reads its clock `count` times; the time is that of one reading;
    - 'reduce': i alone sums doubles with MPI_Reduce_local, which takes no time in simulation;
    - 'one_to_two': i sends `message_bytes` to j, then to k; both reply with `reply_bytes`; i completes the receive from
      k first, so if k is no faster than j, i processes both replies after the later one has arrived;
    - 'scatter', 'gather': the linear algorithm with blocks of `message_bytes`, root i, until the last process is done;
    - 'chain_bcast', 'linear_barrier': the unsegmented chain broadcast from i, or the linear barrier, until the last
      process is done.
    The last four kinds involve all processes, 0 to P - 1. For a kind between two processes, `processes` may list
    several pairs, which run concurrently with a fixed number of repetitions; the time is that of the first pair.
    """

    kind: str
    processes: tuple[int, ...]
    message_bytes: int
    reply_bytes: int = 0
    count: int = 1
    delay_seconds: float = 0.0

    def check(self, procs: int) -> None:
        """Raises UsageError if the experiment makes no sense or does not fit on `procs` processes."""
        kind, ranks = self.kind, self.processes
        check_name("experiment", kind, KINDS)
        named = f"processes {','.join(map(str, ranks))}" if len(ranks) < 9 else f"{len(ranks)} processes"
        name = f"experiment '{kind}' on {named}"
        wanted = 3 if kind == ONE_TO_TWO else 2
        if any(not 0 <= rank < procs for rank in ranks):
            raise UsageError(f"{name}: ranks must be from 0 to {procs - 1}")
        if len(set(ranks)) < len(ranks):
            raise UsageError(f"{name}: a process is named twice; name each once")
        if kind in ON_MANY and sorted(ranks) != list(range(max(2, len(ranks)))):
            raise UsageError(f"{name}: expected all ranks from 0 to P - 1 (at least two), the root first")
        if kind not in ON_MANY and len(ranks) != wanted:
            raise UsageError(f"{name}: it takes {wanted} processes")
        sizes = (self.message_bytes, self.reply_bytes, self.count * self.message_bytes)
        if not all(0 <= size <= _MAX_BYTES for size in sizes):
            raise UsageError(
                f"{name}: {max(sizes, key=abs)} bytes; valid: 0 B to 1 GiB for all messages of an experiment together"
            )
        if self.reply_bytes and kind in WITHOUT_REPLY:
            raise UsageError(f"{name}: it has no replies; the reply size must be 0 B")
        if self.message_bytes and kind == LINEAR_BARRIER:
            raise UsageError(f"{name}: its messages are empty; the size must be 0 B")
        if not 1 <= self.count <= (_MAX_MESSAGES if kind in WITH_COUNT else 1):
            raise UsageError(
                f"{name}: {self.count} messages; valid: 1, or up to {_MAX_MESSAGES} for {', '.join(WITH_COUNT)}"
            )
        delay = self.delay_seconds
        if not 0 <= delay < math.inf or (delay and kind not in WITH_DELAY):
            raise UsageError(f"{name}: a delay of {delay} s; valid: 0 s, or more for {', '.join(WITH_DELAY)}")


@dataclass(frozen=True)
class Measurement:
    """Mean time of an experiment, half-width of its confidence interval (0 if exact), and repetitions."""

    seconds: float
    half_width_seconds: float = 0.0
    repetitions: int = 1


@dataclass
class Effort:
    """Cost of an estimation: the repetitions of all experiments, and their time on the platform.

    Of experiments that run concurrently on disjoint processes, only the longest counts towards the time.
    """

    measurements: int = 0
    seconds: float = 0.0


class Laboratory(Protocol):
    """A platform on which experiments run: simulated, real, or a model that replaces a platform in a test."""

    procs: int
    min_bytes: int  # the smallest message that has overheads: 1 in simulation, where empty messages have none
    eager_limit_bytes: int  # messages of this size and larger use the rendezvous protocol
    effort: Effort  # of all experiments so far, including those whose times were stored before

    def run(self, experiments: Sequence[Experiment], in_parallel: bool = True) -> list[Measurement]:
        """Returns one measurement per experiment, in the order of the experiments.

        Experiments that share no process run concurrently if `in_parallel`. Raises UsageError for an experiment that
        the platform cannot run, and CollwiseError if an experiment fails.
        """
