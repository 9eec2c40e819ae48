from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from collwise.common.errors import CollwiseError, UsageError
from collwise.models.fitting.loggp import Doubling, culler_loggp, hoefler_loggp
from collwise.models.fitting.plogp import kielmann_plogp
from collwise.models.single_messages import LogGP
from tests.models.fitting.loggp_laboratory import LogGPLaboratory, Machine, loggp_machine

EXACT = 1e-6
TRUE = LogGP(30e-6, 5e-6, 8e-6, 12e-6, 9e-9)
MACHINE = loggp_machine(30e-6, 5e-6, 8e-6, 12e-6, 9e-9)


def values(model: LogGP) -> list[float]:
    return [
        model.latency_seconds,
        model.send_overhead_seconds,
        model.receive_overhead_seconds,
        model.gap_seconds,
        model.gap_seconds_per_byte,
    ]


@settings(max_examples=30)
@given(
    st.floats(1e-6, 1e-3), st.floats(1e-7, 1e-4), st.floats(1e-7, 1e-4), st.floats(1.0, 10.0), st.floats(1e-10, 1e-7)
)
def test_recovered_whatever_the_machine(
    latency: float, send: float, receive: float, gaps: float, per_byte: float
) -> None:
    """Hoefler's procedure takes what a receive takes longer than a send for latency."""
    gap = gaps * max(send, receive)
    lab = LogGPLaboratory(loggp_machine(latency, send, receive, gap, per_byte))
    true = [latency, send, receive, gap, per_byte]
    assert values(culler_loggp(lab)) == pytest.approx(true, rel=EXACT)
    assert values(culler_loggp(lab, large_messages=False)) == pytest.approx([*true[:4], 0.0], rel=EXACT)
    hoefler = values(hoefler_loggp(lab))
    assert hoefler[1:] == pytest.approx([send, send, gap, per_byte], rel=EXACT)
    assert hoefler[0] + 2 * hoefler[1] == pytest.approx(latency + send + receive, rel=EXACT)
    plogp = kielmann_plogp(lab)
    for size in (1, 70000):
        assert plogp.gap(size) == pytest.approx(gap + (size - 1) * per_byte, rel=EXACT)
        assert plogp.predict(size) == pytest.approx(latency + send + receive + (size - 1) * per_byte, rel=EXACT)
    assert plogp.send_overhead(70000) == pytest.approx(send, rel=EXACT)
    assert plogp.receive_overhead(70000) == pytest.approx(receive, rel=EXACT)


def test_noise_of_one_percent() -> None:
    pairs = [(i, j) for i in range(6) for j in range(6) if i != j]
    lab = LogGPLaboratory(MACHINE, procs=6, noise=0.01)
    assert values(culler_loggp(lab, pairs=pairs)) == pytest.approx(values(TRUE), rel=0.03)
    hoefler = hoefler_loggp(lab, pairs=pairs)
    assert [hoefler.gap_seconds, hoefler.gap_seconds_per_byte] == pytest.approx([12e-6, 9e-9], rel=0.03)
    assert hoefler.send_overhead_seconds == pytest.approx(5e-6, abs=0.01 * 86e-6)
    assert hoefler.predict(5000) == pytest.approx(TRUE.predict(5000), rel=0.03)


SENDS, RECEIVES = [5e-6, 6e-6, 7e-6, 9e-6], [8e-6, 4e-6, 10e-6, 3e-6]


def unlike_machine() -> Machine:
    return Machine(
        lambda p, m: SENDS[p],
        lambda p, m: RECEIVES[p],
        lambda i, j, m: (20 + i + j) * 1e-6 + (m - 1) * (i + j) * 1e-9,
        lambda i, j, m: (15 + i * j) * 1e-6 + (m - 1) * (i + j) * 1e-9,
    )


def test_heterogeneous_arrays() -> None:
    i, j = np.mgrid[:4, :4]
    apart = i != j
    lab = LogGPLaboratory(unlike_machine(), procs=4)
    culler = culler_loggp(lab, heterogeneous=True)
    assert culler.heterogeneous
    np.testing.assert_allclose(culler.send_overhead_seconds, SENDS, rtol=EXACT)
    np.testing.assert_allclose(culler.receive_overhead_seconds, RECEIVES, rtol=EXACT)
    np.testing.assert_allclose(culler.latency_seconds, apart * (20 + i + j) * 1e-6, rtol=EXACT)
    np.testing.assert_allclose(culler.gap_seconds, apart * (15 + i * j) * 1e-6, rtol=EXACT)
    np.testing.assert_allclose(culler.gap_seconds_per_byte, apart * (i + j) * 1e-9, rtol=EXACT)
    hoefler = hoefler_loggp(lab, heterogeneous=True)
    np.testing.assert_allclose(hoefler.send_overhead_seconds, SENDS, rtol=EXACT)
    np.testing.assert_allclose(hoefler.gap_seconds, apart * (15 + i * j) * 1e-6, rtol=EXACT)
    there, back = hoefler.predict(100, 1, 3), hoefler.predict(100, 3, 1)
    assert there + back == pytest.approx(culler.predict(100, 1, 3) + culler.predict(100, 3, 1), rel=EXACT)


@pytest.mark.parametrize(("limit", "largest"), [(1 << 30, 65536), (5000, 4999), (1, 65536)])
def test_large_messages_are_eager(limit: int, largest: int) -> None:
    for estimate in (culler_loggp, hoefler_loggp):
        lab = LogGPLaboratory(MACHINE, eager_limit_bytes=limit)
        assert estimate(lab).gap_seconds_per_byte == pytest.approx(9e-9, rel=EXACT)
        assert max(one.message_bytes for one in lab.asked) == largest


def test_saturation_goes_on_until_buffers_are_full() -> None:
    """The first 1000 messages find buffers and are as fast as the sender; after those, the gap is ten times that."""

    class Buffered(LogGPLaboratory):
        def run(self, experiments, in_parallel=True):  # type: ignore[no-untyped-def]
            measured = super().run(experiments, in_parallel)
            late = [max(0, one.count - 1000) * 45e-6 for one in experiments]
            return [type(of)(of.seconds + more) for of, more in zip(measured, late, strict=True)]

    machine = loggp_machine(30e-6, 5e-6, 5e-6, 5e-6, 0.0)
    lab = Buffered(machine)
    below = culler_loggp(Buffered(machine), large_messages=False)
    assert below.gap_seconds == pytest.approx(5e-6, rel=EXACT), "starts below the buffers"
    found = culler_loggp(lab, doubling=Doubling(first=900, max_count=1 << 20), large_messages=False)
    assert found.gap_seconds == pytest.approx(50e-6, rel=0.02)
    assert max(one.count for one in lab.asked) > 32000


def test_saturation_stops_at_the_most() -> None:
    lab = LogGPLaboratory(MACHINE, noise=0.5)
    culler_loggp(lab, doubling=Doubling(first=2, change=1e-12, max_count=16), large_messages=False)
    assert [one.count for one in lab.asked if one.kind == "saturation"] == [2, 4, 8, 16]


def test_saturation_stops_at_the_most_bytes() -> None:
    lab = LogGPLaboratory(MACHINE, noise=0.5, eager_limit_bytes=1001)
    culler_loggp(lab, doubling=Doubling(first=2, change=1e-12, max_count=16, max_bytes=8999))
    assert [one.count for one in lab.asked if one.kind == "saturation"] == [2, 4, 8, 16, 2, 4, 8]


def test_all_pairs_of_a_step_are_one_run() -> None:
    few, many = (LogGPLaboratory(MACHINE, procs=procs) for procs in (2, 6))
    culler_loggp(few, heterogeneous=True)
    culler_loggp(many, heterogeneous=True)
    assert few.rounds == many.rounds
    assert len(many.asked) == 15 * len(few.asked)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda lab: culler_loggp(LogGPLaboratory(MACHINE, procs=1)), "at least 2 processes"),
        (lambda lab: culler_loggp(lab, pairs=[(0, 2)]), r"pair \(0, 2\): .* 0 to 1"),
        (lambda lab: culler_loggp(lab, pairs=[(1, 1)]), "two different processes"),
        (lambda lab: culler_loggp(lab, pairs=[]), "no pair"),
        (lambda lab: culler_loggp(lab, pairs=[(0, 1)], heterogeneous=True), "uses all pairs"),
        (lambda lab: Doubling(first=1), "1 to 6400 messages"),
    ],
)
def test_what_does_not_fit(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match=message):
        call(LogGPLaboratory(MACHINE))


def test_messages_that_take_no_time() -> None:
    with pytest.raises(CollwiseError, match="no line"):
        hoefler_loggp(LogGPLaboratory(loggp_machine(1e-6, 0.0, 0.0, 0.0, 0.0)))
