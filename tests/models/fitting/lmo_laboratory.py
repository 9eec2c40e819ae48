"""A laboratory whose times follow from an LMO machine from when each processor is busy, not from the formulas."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from collwise.common.errors import UsageError
from collwise.common.experiments import (
    GATHER,
    ONE_TO_TWO,
    ROUNDTRIP,
    SCATTER,
    Effort,
    Experiment,
    Measurement,
)
from collwise.models.single_messages import LMO


def random_machine(procs: int, seed: int, spread: float = 0.5) -> LMO:
    """Parameters of the order of a 1 Gbit/s cluster, each anywhere within 1 +- spread of its middle."""
    generator = np.random.default_rng(seed)

    def around(middle: float, *shape: int) -> np.ndarray:
        return middle * generator.uniform(1 - spread, 1 + spread, shape)

    def symmetric(middle: float) -> np.ndarray:
        upper = np.triu(around(middle, procs, procs), 1)
        return upper + upper.T

    return LMO(around(40e-6, procs), around(5e-9, procs), symmetric(40e-6), symmetric(10e-9))


class LMOLaboratory:
    """Senders are busy for C + m t a message, the wire carries them side by side, receivers take one at a time.

    `change(experiment, seconds)` says what is measured instead of the machine's seconds (leaps, escalations);
    `noise` is the relative standard deviation of a measurement.
    """

    def __init__(
        self,
        machine: LMO,
        min_bytes: int = 1,
        eager_limit_bytes: int = 65536,
        noise: float = 0.0,
        seed: int = 0,
        change: Callable[[Experiment, float], float] = lambda experiment, seconds: seconds,
    ) -> None:
        self.machine = machine
        self.procs = len(np.asarray(machine.processor_seconds))
        self.min_bytes = min_bytes
        self.eager_limit_bytes = eager_limit_bytes
        self.effort = Effort()
        self.asked: list[Experiment] = []
        self.calls = 0
        self._noise = noise
        self._generator = np.random.default_rng(seed)
        self._change = change

    def run(self, experiments: Sequence[Experiment], in_parallel: bool = True) -> list[Measurement]:
        self.calls += 1
        self.asked += experiments
        seconds = [self._change(experiment, self._seconds(experiment)) for experiment in experiments]
        self.effort.measurements += len(experiments)
        self.effort.seconds += sum(seconds)
        noisy = np.array(seconds) * (1 + self._noise * self._generator.standard_normal(len(seconds)))
        return [Measurement(float(value), float(1.96 * self._noise * value)) for value in noisy]

    def _busy(self, processor: int, size: int) -> float:
        constants, rates = self.machine.processor_seconds, self.machine.processor_seconds_per_byte
        return float(np.asarray(constants)[processor] + size * np.asarray(rates)[processor])

    def _wire(self, first: int, second: int, size: int) -> float:
        latencies, rates = self.machine.latency_seconds, self.machine.network_seconds_per_byte
        return float(np.asarray(latencies)[first, second] + size * np.asarray(rates)[first, second])

    def _answered(self, sent: float, i: int, j: int, experiment: Experiment) -> float:
        """The time at which j's reply reaches i, which let go of the message at `sent`."""
        received = sent + self._wire(i, j, experiment.message_bytes) + self._busy(j, experiment.message_bytes)
        return received + self._busy(j, experiment.reply_bytes) + self._wire(i, j, experiment.reply_bytes)

    def _seconds(self, experiment: Experiment) -> float:
        i, size = experiment.processes[0], experiment.message_bytes
        if experiment.kind == ROUNDTRIP:
            back = self._answered(self._busy(i, size), i, experiment.processes[1], experiment)
            return back + self._busy(i, experiment.reply_bytes)
        if experiment.kind == ONE_TO_TWO:
            _, j, k = experiment.processes
            from_j = self._answered(self._busy(i, size), i, j, experiment)
            from_k = self._answered(2 * self._busy(i, size), i, k, experiment)
            taken_in = self._busy(i, experiment.reply_bytes)
            return max(from_k + taken_in, from_j) + taken_in
        others = [process for process in range(self.procs) if process != i]
        if experiment.kind == SCATTER:
            return max(
                nth * self._busy(i, size) + self._wire(i, other, size) + self._busy(other, size)
                for nth, other in enumerate(others, start=1)
            )
        if experiment.kind == GATHER:
            done = 0.0
            for arrived in sorted(self._busy(other, size) + self._wire(i, other, size) for other in others):
                done = max(done, arrived) + self._busy(i, size)
            return done
        raise UsageError(f"no {experiment.kind} on this machine")
