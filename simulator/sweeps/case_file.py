"""The file of cases that programs/benchmark.c reads."""

from __future__ import annotations

from collections.abc import Sequence

from collwise.simulator.timing import Case


def case_lines(cases: Sequence[Case]) -> str:
    """The case file that programs/benchmark.c reads: ids are positions."""
    return "".join(
        f"{number} {case.experiment} {case.collective} {case.algorithm} {case.procs} {case.root} "
        f"{case.message_bytes} {case.segment_bytes} {case.fanout} {case.gather_bytes} {case.limit_bytes}\n"
        for number, case in enumerate(cases)
    )
