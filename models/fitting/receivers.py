"""Estimation of a gap that depends on the number of receivers: Pješivac-Grbović et al. 2007, section 7.

A linear scatter of the smallest blocks to k processes takes k - 1 gaps longer than one to a single process, so that its
gap is (T(k) - T(1)) / (k - 1). The change is the difference to the gap between messages to one process.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from collwise.common.experiments import SCATTER, Experiment, Laboratory
from collwise.models.collectives.steps import steps_of
from collwise.models.single_messages import FurtherGap, LogGP, PLogP

WithGap = TypeVar("WithGap", LogGP, PLogP)


def with_further_gap(lab: Laboratory, measured: WithGap) -> WithGap:
    """The parameters with the change of the gap for 2, 4, 8 receivers and so on, and for all others."""
    # Linear trees send no messages for empty blocks.
    least = max(1, lab.min_bytes)
    receivers = sorted({*(1 << k for k in range((lab.procs - 1).bit_length())), lab.procs - 1})
    experiments = [Experiment(SCATTER, tuple(range(1 + count)), least) for count in receivers]
    single, *others = (measurement.seconds for measurement in lab.run(experiments))
    gap = float(steps_of(measured).gap(least))
    changes: list[float] = [
        (seconds - single) / (count - 1) - gap for count, seconds in zip(receivers[1:], others, strict=True)
    ]
    return replace(measured, further_gap=FurtherGap(tuple(map(float, receivers)), (0.0, *changes)))
