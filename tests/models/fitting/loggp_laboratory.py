"""A laboratory that computes experiments from the events of a LogGP machine, independently of the fitting procedures.

Sending busies the sender for o_s(m). Then the message enters the network, no sooner than the sender's last one has been
in it for `gap(m)`, and arrives `wire(m)` later. The receiver takes in one message at a time, each for o_r(m).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from collwise.common import experiments as kinds
from collwise.common.experiments import Effort, Experiment, Measurement


@dataclass(frozen=True)
class Machine:
    """Seconds by processor (overheads) or pair (network) and message size."""

    send: Callable[[int, int], float]
    receive: Callable[[int, int], float]
    wire: Callable[[int, int, int], float]
    gap: Callable[[int, int, int], float] = lambda i, j, m: 0.0


def loggp_machine(latency: float, send: float, receive: float, gap: float, per_byte: float) -> Machine:
    """All pairs alike; its LogGP parameters are these as long as the gap covers the overheads."""
    return Machine(
        lambda p, m: send,
        lambda p, m: receive,
        lambda i, j, m: latency + (m - 1) * per_byte,
        lambda i, j, m: gap + (m - 1) * per_byte,
    )


def eager_machine(
    send: float = 5e-6, receive: float = 8e-6, receive_per_byte: float = 1e-8, link_latency: float = 2e-5
) -> Machine:
    """Infinite bandwidth, two links on the way, receivers that work on every byte: the gap is max(o_s, o_r(m)).

    Empty messages are free of overhead, as SMPI has it.
    """
    return Machine(
        lambda p, m: send if m else 0.0,
        lambda p, m: receive + receive_per_byte * m if m else 0.0,
        lambda i, j, m: 2 * link_latency,
    )


@dataclass
class LogGPLaboratory:
    """A Laboratory. `noise` is the standard deviation of relative errors."""

    machine: Machine
    procs: int = 2
    noise: float = 0.0
    min_bytes: int = 1
    eager_limit_bytes: int = 1 << 30
    effort: Effort = field(default_factory=Effort)
    asked: list[Experiment] = field(default_factory=list)
    rounds: int = 0

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(1)

    def run(self, experiments: Sequence[Experiment], in_parallel: bool = True) -> list[Measurement]:
        self.rounds += 1
        self.asked += experiments
        times = [Run(self.machine, experiment, self.min_bytes).seconds() for experiment in experiments]
        self.effort.measurements += len(times)
        self.effort.seconds += sum(times)
        return [Measurement(seconds * (1 + self.noise * self._random.standard_normal())) for seconds in times]


class Run:
    """One experiment: until when each processor is busy, and since when its last message is in the network.

    A barrier's messages have `token_bytes`, as in simulation.
    """

    def __init__(self, machine: Machine, experiment: Experiment, token_bytes: int = 0) -> None:
        self.token_bytes = token_bytes
        self.machine, self.experiment = machine, experiment
        self.busy = dict.fromkeys(experiment.processes, 0.0)
        self.free = dict.fromkeys(experiment.processes, 0.0)

    def seconds(self) -> float:
        one = self.experiment
        if one.kind in kinds.POINT_TO_POINT:
            return self.between_two(one)
        root, *others = one.processes
        assert one.processes == tuple(range(len(one.processes)))
        if one.kind == kinds.CHAIN_BCAST:
            assert one.message_bytes > 0, "an empty broadcast sends nothing"
            for i, j in zip(one.processes, others, strict=False):
                self.take(j, self.put(i, j, one.message_bytes), one.message_bytes)
        elif one.kind == kinds.LINEAR_BARRIER:
            assert one.message_bytes == 0
            for arrival in sorted(self.put(j, root, self.token_bytes) for j in others):
                self.take(root, arrival, self.token_bytes)
            for j in others:
                self.take(j, self.put(root, j, self.token_bytes), self.token_bytes)
        else:
            raise AssertionError(one.kind)
        return max(self.busy.values())

    def between_two(self, one: Experiment) -> float:
        i, j = one.processes
        if one.kind == kinds.RECEIVE:
            self.take(j, self.put(i, j, one.reply_bytes), one.reply_bytes)
            arrival = self.put(j, i, one.message_bytes)
            self.busy[i] += one.delay_seconds
            assert arrival <= self.busy[i], "the delay is too short"
            start = self.busy[i]
            self.take(i, arrival, one.message_bytes)
            return self.busy[i] - start
        for number in range(one.count):
            if number > 0 and one.kind == kinds.PRTT:
                self.busy[i] += one.delay_seconds
            self.take(j, self.put(i, j, one.message_bytes), one.message_bytes)
        if one.kind == kinds.SEND:
            return self.busy[i]
        self.take(i, self.put(j, i, one.reply_bytes), one.reply_bytes)
        return self.busy[i]

    def put(self, i: int, j: int, message_bytes: int) -> float:
        """Sends; when the message arrives."""
        self.busy[i] += self.machine.send(i, message_bytes)
        enters = max(self.busy[i], self.free[i])
        self.free[i] = enters + self.machine.gap(i, j, message_bytes)
        return enters + self.machine.wire(i, j, message_bytes)

    def take(self, j: int, arrival: float, message_bytes: int) -> None:
        """Receives."""
        self.busy[j] = max(self.busy[j], arrival) + self.machine.receive(j, message_bytes)
