"""The cost of reductions in simulation: reduce_seconds_per_byte for every byte combined on the critical path."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from collwise.platforms import load_description
from collwise.platforms.description import Platform
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Case, Timing
from tests.needs import needs

pytestmark = needs("smpi")

GRISOU = load_description("grisou")
MESSAGE_BYTES = 1048576
GAMMA = 1e-9
ENGINE_PRECISION = 1e-9

# (collective, algorithm, P): bytes combined one after another before the last process has its result, in messages.
COMBINED = {
    ("reduce", "linear", 2): 1,
    ("reduce", "linear", 7): 6,
    ("reduce", "pipeline", 7): 6,
    ("reduce", "binary", 7): 4,
    ("reduce", "in_order_binary", 7): 4,
    ("reduce", "binomial", 8): 3,
    ("reduce", "rabenseifner", 2): 1 / 2,
    ("reduce", "rabenseifner", 8): 7 / 8,
    ("reduce", "rabenseifner", 6): 1 / 2 + 3 / 4,
    ("allreduce", "linear", 7): 6,
    ("allreduce", "non_overlapping", 8): 3,
    ("allreduce", "recursive_doubling", 8): 3,
    ("allreduce", "recursive_doubling", 6): 3,
    ("allreduce", "ring", 8): 7 / 8,
    ("allreduce", "segmented_ring", 8): 7 / 8,
    ("allreduce", "rabenseifner", 8): 7 / 8,
    ("allreduce", "rabenseifner", 6): 1 / 2 + 3 / 4,
}


def with_gamma(seconds_per_byte: float) -> Platform:
    return replace(GRISOU, calibration=replace(GRISOU.calibration, reduce_seconds_per_byte=seconds_per_byte))


def times(folder: Path, cases: list[Case], seconds_per_byte: float, version: str | None) -> dict[Case, Timing]:
    with Store(folder / "timings.sqlite") as store:
        result = SimulationContext(store, simgrid=version).simulate(with_gamma(seconds_per_byte), cases)
    assert result.failed == []
    return result.timings


def added(folder: Path, cases: list[Case], version: str | None = None, gamma: float = GAMMA) -> dict[Case, float]:
    """Seconds that reductions add to each case."""
    free, charged = times(folder, cases, 0.0, version), times(folder, cases, gamma, version)
    return {case: charged[case].seconds - free[case].seconds for case in cases}


def unsegmented(collective: str, algorithm: str, procs: int) -> Case:
    """Every process on a node of its own."""
    return Case(collective, algorithm, procs, MESSAGE_BYTES)


@pytest.mark.parametrize("version", [None, pytest.param("4.1", marks=needs("smpi-4.1"))], ids=["system", "4.1"])
def test_combinations_on_the_critical_path_add_up(tmp_path: Path, version: str | None) -> None:
    cases = {unsegmented(*key): share * MESSAGE_BYTES * GAMMA for key, share in COMBINED.items()}
    found = added(tmp_path, list(cases), version)
    for case, expected in cases.items():
        assert found[case] == pytest.approx(expected, rel=0, abs=20 * ENGINE_PRECISION), case


def test_two_processes_pay_for_one_message_exactly(tmp_path: Path) -> None:
    case = unsegmented("reduce", "linear", 2)
    assert added(tmp_path, [case])[case] == pytest.approx(MESSAGE_BYTES * GAMMA, rel=0, abs=ENGINE_PRECISION)


def test_a_segment_is_combined_while_the_next_is_under_way(tmp_path: Path) -> None:
    """Combining is quicker than sending here: only the last segment's reduction is left when its last byte is in."""
    segment = 65536
    case = replace(unsegmented("reduce", "pipeline", 2), segment_bytes=segment)
    assert added(tmp_path, [case])[case] == pytest.approx(segment * GAMMA, rel=0, abs=20 * ENGINE_PRECISION)


def test_a_second_child_is_received_while_the_first_is_combined(tmp_path: Path) -> None:
    """Messages of 2 and 3 processes reach the root one after another; where combining takes longer than sending, the
    root does nothing else from the first arrival on."""
    slow = 4e-9
    first, both = unsegmented("reduce", "binary", 2), unsegmented("reduce", "binary", 3)
    found = times(tmp_path, [first, both], slow, None)
    combining = MESSAGE_BYTES * slow
    arrival = found[first].seconds - combining
    assert found[both].seconds >= 2 * combining + arrival - ENGINE_PRECISION
    assert found[both].seconds < 2 * combining + 2 * arrival


@pytest.mark.parametrize("collective", ["bcast", "gather"])
def test_collectives_without_reductions_do_not_notice(tmp_path: Path, collective: str) -> None:
    case = unsegmented(collective, "binomial", 6)
    assert added(tmp_path, [case])[case] == 0.0


@pytest.mark.parametrize("name", ["grisou", "gros"])
def test_reductions_are_not_free_on_the_known_platforms(tmp_path: Path, name: str) -> None:
    gamma = load_description(name).calibration.reduce_seconds_per_byte
    case = unsegmented("reduce", "linear", 3)
    assert gamma > 0
    assert added(tmp_path, [case], gamma=gamma)[case] == pytest.approx(2 * MESSAGE_BYTES * gamma, rel=1e-4)
