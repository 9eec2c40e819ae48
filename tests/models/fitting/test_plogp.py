from __future__ import annotations

from math import log2

import numpy as np
import pytest

from collwise.common.errors import CollwiseError, UsageError
from collwise.models.fitting.plogp import fitted_plogp, kielmann_heterogeneous_plogp, kielmann_plogp
from collwise.models.fitting.regression import Sizes
from collwise.models.piecewise import PiecewiseLinear
from collwise.models.single_messages import PLogP
from tests.models.fitting.loggp_laboratory import LogGPLaboratory, Machine, eager_machine

EXACT = 1e-6
FLAT = PLogP(1e-5, *[PiecewiseLinear((0.0,), (1e-6,))] * 3)
SIZES = np.array([1, 700, 1024, 5000, 65536, 300000, 1 << 20])


def network(m: int) -> float:
    """The seconds of a message in the network, with a bend at 20000 bytes and a leap at 100000."""
    return 1e-9 * m + 7e-9 * max(0, m - 20000) + (m >= 100000) * 300e-6


def bent_machine() -> Machine:
    return Machine(
        lambda p, m: 4e-6 + 1e-10 * m,
        lambda p, m: 6e-6,
        lambda i, j, m: 30e-6 + network(m),
        lambda i, j, m: 10e-6 + network(m),
    )


def test_the_roundtrip_gap_is_the_sum_where_both_sides_work_on_the_bytes_and_saturation_tells_the_gap() -> None:
    both = Machine(lambda p, m: 5e-6 + 3e-9 * m, lambda p, m: 8e-6 + 1e-8 * m, lambda i, j, m: 40e-6)
    fast = kielmann_plogp(LogGPLaboratory(both))
    assert fast.gap(100001) - fast.gap(1) == pytest.approx(1.3e-8 * 1e5, rel=EXACT)
    direct = kielmann_plogp(LogGPLaboratory(both), saturate=True)
    assert direct.gap(SIZES) == pytest.approx(8e-6 + 1e-8 * SIZES, rel=EXACT)
    assert direct.send_overhead(SIZES) == pytest.approx(5e-6 + 3e-9 * SIZES, rel=EXACT)


@pytest.mark.parametrize("saturate", [False, True])
def test_knots_are_close_where_the_gap_bends_or_leaps(saturate: bool) -> None:
    lab = LogGPLaboratory(bent_machine())
    plan = Sizes(tolerance=0.005, min_step_bytes=256)
    gap = kielmann_plogp(lab, plan, saturate=saturate).gap
    knots = np.array(gap.message_bytes)
    below, above = knots[knots < 100000].max(), knots[knots >= 100000].min()
    assert above - below < 2 * plan.min_step_bytes
    assert np.abs(knots - 20000).min() < 1000
    sizes = np.arange(1, 1 << 20, 991)
    sizes = sizes[(sizes <= below) | (sizes >= above)]
    sending = 0.0 if saturate else 1e-10
    true = np.array([10e-6 + network(int(m)) + sending * m for m in sizes])
    np.testing.assert_allclose(gap(sizes), true, rtol=0.01)


def test_a_straight_gap_takes_the_regular_sizes_only() -> None:
    gap = kielmann_plogp(LogGPLaboratory(eager_machine()), Sizes(1024, 1 << 20)).gap
    assert len(gap.message_bytes) == 2 + log2((1 << 20) / 1024)


def test_noise_of_one_percent() -> None:
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
    model = kielmann_plogp(LogGPLaboratory(eager_machine(), procs=5, noise=0.01), Sizes(tolerance=0.1), pairs=pairs)
    assert model.latency_seconds == pytest.approx(45e-6, rel=0.02)
    assert model.gap(SIZES) == pytest.approx(8e-6 + 1e-8 * SIZES, rel=0.04)
    loggp = model.as_loggp()
    assert loggp.gap_seconds_per_byte == pytest.approx(1e-8, rel=0.02)
    assert [loggp.latency_seconds, loggp.send_overhead_seconds, loggp.receive_overhead_seconds] == pytest.approx(
        [40e-6, 5e-6, 8e-6], rel=0.03
    )


def test_heterogeneous_functions() -> None:
    sends, receives = [5e-6, 6e-6, 9e-6, 7e-6], [8e-6, 4e-6, 3e-6, 10e-6]
    lab = LogGPLaboratory(
        Machine(
            lambda p, m: sends[p],
            lambda p, m: receives[p] + p * 1e-10 * m,
            lambda i, j, m: (20 + i + j) * 1e-6 + (i + j) * 1e-9 * m,
            lambda i, j, m: (15 + i + j) * 1e-6 + (i + j) * 1e-9 * m,
        ),
        procs=4,
    )
    model = kielmann_heterogeneous_plogp(lab)
    for i in range(4):
        assert model.pairs[i][i] is None
        for j in set(range(4)) - {i}:
            pair = model.pairs[i][j]
            assert pair is not None
            near, far = min(i, j), max(i, j)
            assert pair.send_overhead(SIZES) == pytest.approx(np.full(len(SIZES), sends[i]), rel=EXACT)
            assert pair.receive_overhead(SIZES) == pytest.approx(receives[j] + j * 1e-10 * SIZES, rel=EXACT)
            per_byte = (i + j) * 1e-9 + far * 1e-10
            base = (15 + i + j) * 1e-6 + (i + j) * 1e-9
            assert pair.gap(SIZES) == pytest.approx(base + per_byte * (SIZES - 1), rel=EXACT)
            there_and_back = 2 * ((20 + i + j) * 1e-6 + (i + j) * 1e-9)
            there_and_back += sum(sends[p] + receives[p] + p * 1e-10 for p in (near, far))
            assert pair.latency_seconds == pytest.approx(there_and_back / 2 - base, rel=EXACT)


def test_the_answer_of_a_much_slower_sender_has_come_when_it_is_taken() -> None:
    lab = LogGPLaboratory(
        Machine(lambda p, m: 1e-6 + p * 1e-7 * m, lambda p, m: 2e-6 + 1e-9 * m, lambda i, j, m: 1e-5), procs=2
    )
    pair = kielmann_heterogeneous_plogp(lab).pairs[1][0]
    assert pair is not None
    assert pair.receive_overhead(SIZES) == pytest.approx(2e-6 + 1e-9 * SIZES, rel=EXACT)


def test_fitted_to_collectives_of_the_eager_machine() -> None:
    """A step of the chain takes o_s + 2 l + o_r(m); the barrier's root takes overheads for each process."""
    lab = LogGPLaboratory(eager_machine(), procs=16)
    measured = kielmann_plogp(lab)
    model = fitted_plogp(lab, measured)
    assert model.latency_seconds == pytest.approx(40e-6, rel=EXACT)
    assert model.gap(SIZES) == pytest.approx(5e-6 + 8e-6 + 1e-8 * SIZES, rel=EXACT)
    assert (model.send_overhead, model.receive_overhead) == (measured.send_overhead, measured.receive_overhead)
    assert {len(one.processes) for one in lab.asked if one.kind == "chain_bcast"} == {2, 4, 8, 16}


def test_fitted_with_noise() -> None:
    """Where empty messages cost overheads too, the barrier's root takes o_s + o_r for each process: that is g(0)."""
    machine = Machine(lambda p, m: 5e-6, lambda p, m: 8e-6 + 1e-8 * m, lambda i, j, m: 40e-6)
    lab = LogGPLaboratory(machine, procs=12, noise=0.01, min_bytes=0)
    measured = PLogP(0.0, *[PiecewiseLinear((0.0, 1024.0, 65536.0), (1e-6, 1e-6, 1e-6))] * 3)
    model = fitted_plogp(lab, measured)
    assert model.gap.message_bytes == (1, 1024, 65536)
    assert model.latency_seconds == pytest.approx(40e-6, rel=0.02)
    assert model.gap([1, 1024, 65536]) == pytest.approx([13e-6, 13e-6 + 1024e-8, 13e-6 + 65536e-8], rel=0.04)


def test_collectives_of_two_processes_are_too_few() -> None:
    with pytest.raises(UsageError, match=r"on 2 processes: .* two different"):
        fitted_plogp(LogGPLaboratory(eager_machine()), FLAT)


def test_collectives_that_take_no_time() -> None:
    with pytest.raises(CollwiseError, match="took no time"):
        fitted_plogp(
            LogGPLaboratory(Machine(lambda p, m: 0.0, lambda p, m: 0.0, lambda i, j, m: 0.0), procs=3),
            PLogP(0.0, *[PiecewiseLinear((0.0,), (1e-6,))] * 3),
        )


def test_as_loggp() -> None:
    gap = PiecewiseLinear((1, 1001, 100001), (10e-6, 20e-6, 910e-6))
    plogp = PLogP(50e-6, PiecewiseLinear((0.0,), (3e-6,)), PiecewiseLinear((0.0,), (4e-6,)), gap)
    loggp = plogp.as_loggp()
    assert loggp.latency_seconds == pytest.approx(50e-6 + 10e-6 - 7e-6)
    assert loggp.predict(1) == pytest.approx(plogp.predict(1))
    assert loggp.gap_seconds + 100000 * loggp.gap_seconds_per_byte == pytest.approx(910e-6)
    flat = PLogP(50e-6, *[PiecewiseLinear((0.0,), (3e-6,))] * 3).as_loggp()
    assert [flat.gap_seconds, flat.gap_seconds_per_byte] == [3e-6, 0.0]
