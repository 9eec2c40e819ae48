"""Machines that deviate at random from a description, for judging searches whose predictions use the description.

A search that uses the schedule engine's predictions cannot be judged by times that the engine simulates from the same
description, since the engine would predict itself. The times of a drawn machine are also simulated by the engine, but
the machine deviates from the description in three respects, which its seed decides:

- **Numbers.** Every latency, rate, overhead, threshold and the time to reduce a byte is multiplied by a factor of its
  own, log-uniform from 1/OFF to OFF, as if the description came from data sheets and another machine's calibration.
- **Rules.** Half of the machines have the network of SMPI: an eager message leaves only when its receive is posted, and
  the sender of a long message waits until the message has arrived. Independently of this, half of the machines have no
  load from acknowledgements.
- **Form.** Each configuration is slower or faster than these numbers and rules predict, by a log-normal factor. The
  factor is the same for all message sizes between two neighbouring powers of SIZES_ALIKE, and independent of the
  factors of other configurations.

Benchmarks are repeated, and their repetitions vary; the true times of whole collectives are also known.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from collwise.common.errors import UsageError
from collwise.platforms import HostPlatform, Platform
from collwise.platforms.description import Calibration, FactorRow, OverheadRow
from collwise.platforms.topology import FatTree
from collwise.simulator.bench import Timer
from collwise.simulator.schedule.tasks import is_of_tasks
from collwise.simulator.timing import Case, Timing

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

OFF = 1.5
"""The greatest factor by which a number of the description is too large or too small."""

DEVIATION, SIZES_ALIKE = 0.05, 16
"""The standard deviation, in logarithms, of a configuration's own factor, and the ratio of sizes that share it."""

NOISE, REPETITIONS = 0.03, 5
"""The standard deviation of a repetition, in logarithms, and how often a benchmark is repeated."""

_Item = TypeVar("_Item", bound="DataclassInstance")
_Factor = Callable[[], float]
_NUMBERS = ("_seconds", "_per_second", "_per_byte")
_95_PERCENT = 1.96


@dataclass(frozen=True)
class _Changed:
    """A timer that applies `change` to every timing that another timer returns."""

    timer: Timer
    change: Callable[[Timing], Timing]

    def time(self, cases: Sequence[Case], /) -> Mapping[Case, Timing]:
        """The changed timings."""
        return {case: self.change(timing) for case, timing in self.timer.time(cases).items()}


@dataclass(frozen=True)
class DrawnMachine:
    """The machine drawn for a seed. An engine simulates `platform`, by SMPI's network rules if `like_smpi` is true."""

    platform: Platform
    like_smpi: bool
    seed: int

    def true(self, timer: Timer) -> Timer:
        """A timer of this machine's times without noise. `timer` is the engine's timer for `platform`."""
        return _Changed(timer, lambda timing: _scaled(timing, self._deviation(timing.case)))

    def measured(self, timer: Timer) -> Timer:
        """A timer of what repeated benchmarks measure; a case gets the same time whenever it is timed."""
        return _Changed(self.true(timer), self._repeated)

    def _deviation(self, case: Case) -> float:
        """The factor by which a case's time deviates; segment sizes that leave the message whole share one factor."""
        cut = case.segment_bytes if case.segment_bytes < case.message_bytes else 0
        size = int(math.log(max(case.message_bytes, 1), SIZES_ALIKE) + 1e-9)
        parameters = (cut, case.limit_bytes, case.parameter)
        key = (case.collective, case.algorithm, case.procs, case.processes_per_node, *parameters)
        return math.exp(self._normal(DEVIATION, 1, *key, size)[0])

    def _repeated(self, timing: Timing) -> Timing:
        """The mean over the repetitions, with noise; each task of a benchmark has noise of its own."""
        if not timing.ok:
            return timing
        tasks = len(timing.samples or ()) // timing.case.nodes or 1
        mean = self._normal(NOISE / math.sqrt(REPETITIONS), tasks, *astuple(timing.case))
        noisy = _scaled(timing, *np.exp(mean))
        width = _95_PERCENT * NOISE / math.sqrt(REPETITIONS) * noisy.seconds
        return replace(noisy, repetitions=REPETITIONS, half_width_seconds=width)

    def _normal(self, deviation: float, count: int, *key: object) -> list[float]:
        generator = np.random.default_rng([self.seed, zlib.crc32(repr(key).encode())])
        return generator.normal(0.0, deviation, count).tolist()


def draw(platform: HostPlatform, seed: int) -> DrawnMachine:
    """The machine of a seed. Raises UsageError for platform XML and for nodes of several types."""
    if not isinstance(platform, Platform):
        raise UsageError(f"platform '{platform.name}': random machines need a description with equal nodes")
    generator = np.random.default_rng(seed)

    def factor() -> float:
        return float(OFF ** generator.uniform(-1.0, 1.0))

    calibration = _off_calibration(platform.calibration, factor)
    topology = platform.topology and _off(platform.topology, factor)
    if isinstance(topology, FatTree):
        topology = replace(topology, oversubscription=max(topology.oversubscription * factor(), 1.0))
    drawn = replace(
        _off(platform, factor),
        name=f"{platform.name}-drawn-{seed}",
        calibration=replace(calibration, crosstraffic=bool(generator.integers(2))),
        ports=platform.ports and _off(platform.ports, factor),
        topology=topology,
    )
    return DrawnMachine(drawn, bool(generator.integers(2)), seed)


def _off(item: _Item, factor: _Factor) -> _Item:
    """The item with all its times and rates multiplied, each by its own factor."""
    known = {field.name: getattr(item, field.name) for field in fields(item) if field.name.endswith(_NUMBERS)}
    return replace(item, **{name: value * factor() for name, value in known.items() if value is not None})


def _off_calibration(own: Calibration, factor: _Factor) -> Calibration:
    """A wrong calibration; all size limits share one random factor, all latency factors of the handshake another."""
    move = factor()

    def overheads(rows: tuple[OverheadRow, ...]) -> tuple[OverheadRow, ...]:
        base, per_byte = factor(), factor()
        return tuple(
            (start, value * base, other * per_byte)
            for start, (_, value, other) in zip(_moved([row[0] for row in rows], move), rows, strict=True)
        )

    def factors(rows: tuple[FactorRow, ...], further: float) -> tuple[FactorRow, ...]:
        starts = _moved([row[0] for row in rows], move)
        return tuple(
            (start, value * (further if start else 1.0)) for start, (_, value) in zip(starts, rows, strict=True)
        )

    return replace(
        _off(own, factor),
        os=overheads(own.os),
        or_=overheads(own.or_),
        ois=overheads(own.ois),
        latency_factor=factors(own.latency_factor, factor()),
        bandwidth_factor=factors(own.bandwidth_factor, 1.0),
        eager_limit_bytes=_moved([0, own.eager_limit_bytes], move)[-1],
    )


def _moved(starts: Sequence[int], factor: float) -> list[int]:
    """Sizes multiplied by a factor, still ascending."""
    found: list[int] = []
    for start in starts:
        found.append(max(round(start * factor), found[-1] + 1 if found else 0))
    return found


def _scaled(timing: Timing, *factors: float) -> Timing:
    """A timing with its seconds multiplied by a factor; a timing of tasks has a factor for each task."""
    if not is_of_tasks(timing.case) or not timing.ok:
        return replace(timing, seconds=timing.seconds * factors[0])
    ends = np.array(timing.samples).reshape(timing.case.nodes, -1)
    each = np.diff(ends, axis=1, prepend=0.0) * np.array(factors)
    later = np.cumsum(each, axis=1)
    seconds = timing.seconds * float(later[:, -1].max() / ends[:, -1].max())
    return replace(timing, seconds=seconds, samples=tuple(later.ravel().tolist()))
