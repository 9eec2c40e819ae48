"""The formulas against the papers' tables, written out, and against the special cases that the papers name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, floor, log2

import numpy as np
import pytest
from hypothesis import given, strategies as st

from collwise.models.collectives import barrier, bcast, blocks, printed, reduce
from collwise.models.collectives.steps import EMPTY_BYTES, Steps, steps_of
from collwise.models.interface import Points
from collwise.models.piecewise import Array, PiecewiseLinear
from collwise.models.single_messages import Hockney, HockneyBySize, LogGP, PLogP

# Table 5, Frodo and Boba, and G of a byte.
FRODO = LogGP(61.22e-6, 8.2e-6, 8.2e-6, 23.8e-6, 0.084e-6)
BOBA = LogGP(30.4e-6, 8.15e-6, 8.15e-6, 8.683e-6, 0.015e-6)
GAMMA = 2e-9

BY_SIZE = HockneyBySize(PiecewiseLinear((1, 1024, 65536, 1 << 20), (60e-6, 170e-6, 6e-3, 89e-3)))
PLOGP = PLogP(
    70e-6,
    PiecewiseLinear((1.0, 4096.0, 1e6), (9e-6, 11e-6, 80e-6)),
    PiecewiseLinear((1.0, 4096.0, 1e6), (8e-6, 30e-6, 900e-6)),
    PiecewiseLinear((1.0, 4096.0, 1e6), (24e-6, 370e-6, 85e-3)),
)

PROCS = st.integers(2, 64)
SEGMENTS = st.integers(1, 50)
SEGMENT_BYTES = st.sampled_from([1, 100, 1024, 8192])
COLLECTIVES: dict[str, Callable[[Points, Steps], Array]] = {
    "bcast linear": bcast.linear,
    "bcast chain": bcast.chain,
    "bcast binomial": bcast.binomial,
    "bcast binary": bcast.binary,
    "reduce linear": reduce.linear,
    "reduce pipeline": reduce.pipeline,
    "reduce binomial": reduce.binomial,
    "reduce binary": reduce.binary,
}


def at(formula: Callable[..., Array], model: object, procs: int, segments: int, each: int, gamma: float = 0.0) -> float:
    points = Points.of(procs, segments * each, each, reduce_seconds_per_byte=gamma)
    return float(formula(points, steps_of(model)))


@given(PROCS, SEGMENTS, SEGMENT_BYTES)
def test_table_2_hockney(procs: int, segments: int, each: int) -> None:
    hop = float(BY_SIZE.alpha(each) + each * BY_SIZE.beta(each))
    assert at(bcast.linear, BY_SIZE, procs, segments, each) == pytest.approx(segments * (procs - 1) * hop)
    assert at(bcast.chain, BY_SIZE, procs, segments, each) == pytest.approx((procs + segments - 2) * hop)
    assert at(bcast.binomial, BY_SIZE, procs, segments, each) == pytest.approx(segments * ceil(log2(procs)) * hop)


@given(PROCS, SEGMENTS, SEGMENT_BYTES)
def test_table_2_loggp(procs: int, segments: int, each: int) -> None:
    lat, o, g, big_g = 61.22e-6, 8.2e-6, 23.8e-6, 0.084e-6
    rest = (each - 1) * big_g
    assert at(bcast.linear, FRODO, procs, segments, each) == pytest.approx(
        lat + 2 * o - g + segments * (procs - 1) * (rest + g)
    )
    assert at(bcast.chain, FRODO, procs, segments, each) == pytest.approx(
        (procs - 1) * (lat + 2 * o + rest) + (segments - 1) * (g + rest)
    )
    assert at(bcast.binomial, FRODO, procs, segments, each) == pytest.approx(
        ceil(log2(procs)) * (lat + 2 * o + rest + (segments - 1) * (g + rest))
    )
    if procs > 2:
        depth = ceil(log2(procs + 1)) - 1
        filling = depth * (lat + g + 2 * (o + rest))
        assert at(bcast.binary, FRODO, procs, segments, each) == pytest.approx(
            filling + (segments - 1) * 2 * (rest + g)
        )


@given(PROCS, SEGMENTS, SEGMENT_BYTES)
def test_table_2_plogp(procs: int, segments: int, each: int) -> None:
    lat, g = 70e-6, float(PLOGP.gap(each))
    overheads = float(PLOGP.receive_overhead(each) + PLOGP.send_overhead(each))
    assert at(bcast.linear, PLOGP, procs, segments, each) == pytest.approx(lat + segments * (procs - 1) * g)
    assert at(bcast.chain, PLOGP, procs, segments, each) == pytest.approx((procs - 1) * (lat + g) + (segments - 1) * g)
    assert at(bcast.binomial, PLOGP, procs, segments, each) == pytest.approx(ceil(log2(procs)) * (lat + segments * g))
    if procs > 3:
        depth = ceil(log2(procs + 1)) - 1
        assert at(bcast.binary, PLOGP, procs, segments, each) == pytest.approx(
            depth * (lat + 2 * g) + (segments - 1) * max(2 * g, overheads + g)
        )


@given(st.integers(3, 64), st.integers(1, 25), SEGMENT_BYTES)
def test_split_binary_of_an_even_number_of_segments_is_as_printed(procs: int, pairs: int, each: int) -> None:
    points = Points.of(procs, 2 * pairs * each, each)
    assert bcast.split_binary(points, steps_of(FRODO)) == pytest.approx(printed.bcast_split_binary_loggp(points, FRODO))
    exchange = float(PLOGP.predict(pairs * each))
    if procs > 3:
        ours = float(bcast.split_binary(points, steps_of(PLOGP)))
        assert ours - exchange == pytest.approx(float(printed.bcast_split_binary_plogp(points, PLOGP)))


@given(PROCS, SEGMENTS, SEGMENT_BYTES)
def test_split_binary_is_binary_with_half_the_message_and_an_exchange(procs: int, segments: int, each: int) -> None:
    for model in (BY_SIZE, FRODO, PLOGP):
        whole, half = Points.of(procs, 2 * segments * each, each), Points.of(procs, segments * each, each)
        expected = bcast.binary(half, steps_of(model)) + model.predict(segments * each)
        assert bcast.split_binary(whole, steps_of(model)) == pytest.approx(expected)


@given(PROCS, SEGMENTS, SEGMENT_BYTES)
def test_table_3_hockney(procs: int, segments: int, each: int) -> None:
    hop = float(BY_SIZE.alpha(each) + each * BY_SIZE.beta(each)) + GAMMA * each
    levels = ceil(log2(procs + 1))
    expected = {
        reduce.linear: segments * (procs - 1) * hop,
        reduce.pipeline: (procs + segments - 2) * hop,
        reduce.binomial: segments * ceil(log2(procs)) * hop,
    }
    if procs > 2:
        expected[reduce.binary] = 2 * (levels + segments - 2) * hop
    for formula, seconds in expected.items():
        assert at(formula, BY_SIZE, procs, segments, each, GAMMA) == pytest.approx(seconds)


@given(PROCS, SEGMENTS, SEGMENT_BYTES)
def test_reductions_that_compute_longer_than_the_gap_are_as_printed(procs: int, segments: int, each: int) -> None:
    gamma = 50e-6 / each
    points = Points.of(procs, segments * each, each, reduce_seconds_per_byte=gamma)
    one_more = (each - 1) * FRODO.gap_seconds_per_byte
    steps = steps_of(FRODO)
    assert reduce.linear(points, steps) + one_more == pytest.approx(printed.reduce_linear_loggp(points, FRODO))
    assert reduce.binomial(points, steps) == pytest.approx(printed.reduce_binomial_loggp(points, FRODO))
    if procs > 2:
        assert reduce.pipeline(points, steps) == pytest.approx(printed.reduce_pipeline_loggp(points, FRODO))
    if procs > 3:
        levels = ceil(log2(procs + 1)) - 1
        second_child = (levels + segments - 1) * one_more
        each_segment = one_more + 3 * FRODO.overhead_seconds + 2 * gamma * each
        on_other_levels = (levels - 1) * (segments - 1) * each_segment
        assert reduce.binary(points, steps) - second_child + on_other_levels == pytest.approx(
            printed.reduce_binary_loggp(points, FRODO)
        )


def test_binary_reduction_under_loggp_as_printed_pays_every_segment_on_every_level() -> None:
    """Table 3 for 32 processes and 1 MiB in 128 segments of 8 KiB, in microseconds."""
    first = 61.22 + 3 * 8.2 + 8191 * 0.084 + 2 * 0.002 * 8192
    later = 8191 * 0.084 + max(23.8, 3 * 8.2 + 2 * 0.002 * 8192)
    points = Points.of(32, 1 << 20, 8192, reduce_seconds_per_byte=GAMMA)
    assert printed.reduce_binary_loggp(points, FRODO) == pytest.approx(1e-6 * 5 * (first + 127 * later))
    assert printed.reduce_binary_loggp(points, FRODO) == pytest.approx(0.47737, rel=1e-5)


@given(PROCS)
def test_table_1(procs: int) -> None:
    points = Points.of(procs, 0)
    lat, o, g = 61.22e-6, 8.2e-6, 23.8e-6
    gap, receiving = float(PLOGP.gap(EMPTY_BYTES)), float(PLOGP.receive_overhead(EMPTY_BYTES))
    whole = log2(procs) if procs & (procs - 1) == 0 else floor(log2(procs)) + 2
    loggp, plogp = steps_of(FRODO), steps_of(PLOGP)
    assert barrier.linear(points, loggp) == pytest.approx((procs - 2) * g + 2 * (lat + 2 * o))
    assert barrier.linear(points, loggp, True) == pytest.approx((procs - 2) * (g + o) + 2 * (lat + 2 * o))
    assert barrier.linear(points, plogp) == pytest.approx(procs * gap + 2 * 70e-6)
    assert barrier.linear(points, plogp, True) == pytest.approx(procs * (gap + receiving) + 2 * (70e-6 - receiving))
    for formula, rounds in (
        (barrier.double_ring, 2 * procs),
        (barrier.recursive_doubling, whole),
        (barrier.bruck, ceil(log2(procs))),
    ):
        assert formula(points, loggp) == pytest.approx(rounds * (lat + o + g))
        assert formula(points, plogp) == pytest.approx(rounds * (70e-6 + gap))
        assert formula(points, steps_of(BY_SIZE)) == pytest.approx(rounds * 60e-6)
    # One receive and P - 1 sends, as the text says; the table's P - 1 would be half a barrier between two.
    assert barrier.linear(points, steps_of(BY_SIZE)) == pytest.approx(procs * 60e-6)
    assert printed.barrier_linear_hockney(points, Hockney(60e-6, 1.0)) == pytest.approx((procs - 1) * 60e-6)


@given(PROCS, st.sampled_from([1, 100, 8192]))
def test_table_4_pairwise_and_table_5_2_of_the_thesis(procs: int, m: int) -> None:
    points = Points.of(procs, m)
    lat, o, g, big_g = 61.22e-6, 8.2e-6, 23.8e-6, 0.084e-6
    gap = float(PLOGP.gap(m))
    assert blocks.pairwise(points, steps_of(FRODO)) == pytest.approx((procs - 1) * (lat + o + (m - 1) * big_g + g))
    assert blocks.pairwise(points, steps_of(PLOGP)) == pytest.approx((procs - 1) * (70e-6 + gap))
    assert blocks.linear(points, steps_of(FRODO)) == pytest.approx(
        lat + 2 * o + (procs - 1) * (m - 1) * big_g + (procs - 2) * g
    )
    assert blocks.linear(points, steps_of(PLOGP)) == pytest.approx(70e-6 + (procs - 1) * gap)
    assert blocks.linear(points, steps_of(Hockney(5e-5, 1e-8))) == pytest.approx((procs - 1) * (5e-5 + 1e-8 * m))


@given(PROCS, SEGMENTS, SEGMENT_BYTES)
def test_table_4_linear_as_printed(procs: int, segments: int, each: int) -> None:
    points = Points.of(procs, segments * each, each)
    messages = (procs - 1) * (segments * procs + 1 - procs / 2)
    assert printed.alltoall_linear_plogp(points, PLOGP) == pytest.approx(
        procs * 70e-6 + messages * float(PLOGP.gap(each))
    )
    assert printed.alltoall_linear_loggp(points, FRODO) == pytest.approx(
        procs * (61.22e-6 + 2 * 8.2e-6) + messages * (23.8e-6 + (each - 1) * 0.084e-6)
    )
    assert printed.alltoall_linear_hockney(points, BY_SIZE) == pytest.approx(
        procs * float(BY_SIZE.predict(each)) + messages * float(BY_SIZE.alpha(each))
    )


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("model", [BY_SIZE, FRODO, PLOGP], ids=["hockney", "loggp", "plogp"])
def test_one_segment_between_two_processes_is_a_message(name: str, model: HockneyBySize | LogGP | PLogP) -> None:
    gamma = GAMMA if name.startswith("reduce") else 0.0
    expected = float(model.predict(3000)) + gamma * 3000
    assert at(COLLECTIVES[name], model, 2, 1, 3000, gamma) == pytest.approx(expected)


@given(SEGMENTS, SEGMENT_BYTES)
def test_between_two_all_trees_are_chains_and_between_three_binary_is_linear(segments: int, each: int) -> None:
    for model in (BY_SIZE, FRODO, PLOGP):
        for kind, line in (("bcast", "chain"), ("reduce", "pipeline")):
            of_two = [
                at(COLLECTIVES[f"{kind} {name}"], model, 2, segments, each, GAMMA)
                for name in ("linear", line, "binomial", "binary")
            ]
            assert of_two == pytest.approx(of_two[:1] * 4)
        for binary, linear in ((bcast.binary, bcast.linear), (reduce.binary, reduce.linear)):
            of_three = [at(formula, model, 3, segments, each, GAMMA) for formula in (binary, linear)]
            assert of_three[0] == pytest.approx(of_three[1])


@given(PROCS, SEGMENTS, SEGMENT_BYTES)
def test_without_combining_and_overheads_a_reduction_is_a_broadcast(procs: int, segments: int, each: int) -> None:
    model = replace(FRODO, send_overhead_seconds=0.0, receive_overhead_seconds=0.0)
    for down, up in (("linear", "linear"), ("chain", "pipeline"), ("binomial", "binomial"), ("binary", "binary")):
        assert at(COLLECTIVES[f"reduce {up}"], model, procs, segments, each) == pytest.approx(
            at(COLLECTIVES[f"bcast {down}"], model, procs, segments, each)
        )


@given(PROCS, SEGMENTS, SEGMENT_BYTES, st.floats(0, 1e-6))
def test_plogp_with_linear_gap_is_loggp(procs: int, segments: int, each: int, gamma: float) -> None:
    """Section 3.1. The receiver's overhead then holds the bytes' time, since LogGP's formulas never overlap it."""

    def line(at_one: float, slope: float) -> PiecewiseLinear:
        return PiecewiseLinear((1.0, 2.0), (at_one, at_one + slope))

    o, g, big_g = 8.2e-6, 23.8e-6, 0.084e-6
    plogp = PLogP(61.22e-6 + 2 * o - g, line(o, 0), line(o, big_g), line(g, big_g))
    for name, formula in COLLECTIVES.items():
        if name != "bcast binary":  # PLogP alone counts overheads there
            assert at(formula, plogp, procs, segments, each, gamma) == pytest.approx(
                at(formula, FRODO, procs, segments, each, gamma)
            )
    # With L less the sender's overhead only, rounds are equal, too, and messages where g = o.
    rounds = replace(plogp, latency_seconds=61.22e-6 + o)
    points = Points.of(procs, each)
    assert blocks.pairwise(points, steps_of(rounds)) == pytest.approx(blocks.pairwise(points, steps_of(FRODO)))


@given(PROCS, st.integers(2, 64), st.sampled_from([64, 1024, 8192]), st.floats(0, 1e-7))
def test_segments_of_a_binomial_reduction_as_section_6_2_has_it(
    procs: int, segments: int, each: int, gamma: float
) -> None:
    m = segments * each
    points, whole = (Points.of(procs, m, s, reduce_seconds_per_byte=gamma) for s in (each, 0))
    better = reduce.binomial(whole, steps_of(BY_SIZE)) > reduce.binomial(points, steps_of(BY_SIZE)) * (1 + 1e-12)
    left, right = BY_SIZE.alpha(m) / m + BY_SIZE.beta(m), BY_SIZE.alpha(each) / each + BY_SIZE.beta(each)
    assert better == (left > right * (1 + 1e-12)) or left == pytest.approx(right)
    for model in (FRODO, BOBA):
        assert reduce.binomial(whole, steps_of(model)) < reduce.binomial(points, steps_of(model))
        assert printed.reduce_binomial_loggp(whole, model) < printed.reduce_binomial_loggp(points, model)
    condition = _printed_plogp_load(m, gamma) > segments * _printed_plogp_load(each, gamma) * (1 + 1e-12)
    gain = printed.reduce_binomial_plogp(whole, PLOGP) > printed.reduce_binomial_plogp(points, PLOGP) * (1 + 1e-12)
    assert gain == condition


def _printed_plogp_load(m: int, gamma: float) -> float:
    overheads = float(PLOGP.receive_overhead(m) + PLOGP.send_overhead(m))
    return max(float(PLOGP.gap(m)), overheads + gamma * m)


@pytest.mark.parametrize("model", [BY_SIZE, FRODO, PLOGP], ids=["hockney", "loggp", "plogp"])
def test_pipeline_reduction_of_a_long_message_hardly_depends_on_procs(model: HockneyBySize | LogGP | PLogP) -> None:
    ratios = [
        at(reduce.pipeline, model, 24, segments, 1024, GAMMA) / at(reduce.pipeline, model, 8, segments, 1024, GAMMA)
        for segments in (1, 100, 10000)
    ]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] > 2
    assert ratios[-1] < 1.01


@given(st.integers(2, 40), SEGMENTS, SEGMENT_BYTES)
def test_k_chains_of_one_are_the_pipeline_and_of_all_the_linear_tree(procs: int, segments: int, each: int) -> None:
    for model in (BY_SIZE, FRODO, PLOGP):
        points = Points.of(procs, segments * each, each, reduce_seconds_per_byte=GAMMA)
        one, every = replace(points, parameter=1), replace(points, parameter=procs - 1)
        if procs > 2:
            assert reduce.chain(one, steps_of(model)) == pytest.approx(reduce.pipeline(points, steps_of(model)))
        assert reduce.chain(every, steps_of(model)) == pytest.approx(reduce.linear(points, steps_of(model)))


def test_printed_hockney_trees() -> None:
    """(ceil(log2 8) + 4 - 2) (2 alpha + m_s beta), and with half the segments and the exchange of half the message."""
    points, model = Points.of(7, 4000, 1000), Hockney(1e-4, 1e-7)
    assert printed.bcast_binary_hockney(points, model) == pytest.approx(5 * 3e-4)
    assert printed.bcast_split_binary_hockney(points, model) == pytest.approx(3 * 3e-4 + 3e-4)


def test_printed_plogp_reductions_add_the_overheads() -> None:
    points = Points.of(7, 4000, 1000, reduce_seconds_per_byte=1e-6)
    model = PLogP(1e-3, *(PiecewiseLinear((0.0,), (s,)) for s in (1e-4, 2e-4, 3e-4)))
    assert printed.reduce_linear_plogp(points, model) == pytest.approx(1e-3 + 24 * 12e-4)
    assert printed.reduce_pipeline_plogp(points, model) == pytest.approx(6 * 22e-4 + 3 * 13e-4)
    assert printed.reduce_binomial_plogp(points, model) == pytest.approx(3 * (1e-3 + 4 * 13e-4))
    assert printed.reduce_binary_plogp(points, model) == pytest.approx(2 * 34e-4 + 3 * 25e-4)


def test_an_unsegmented_split_binary_sends_halves_down() -> None:
    """d = 2 levels of two messages of half the size each, then the exchange."""
    points = Points.of(7, 2000)
    assert bcast.split_binary(points, steps_of(Hockney(1e-4, 1e-7))) == pytest.approx(5 * 2e-4)
    assert np.isclose(printed.bcast_split_binary_hockney(points, Hockney(1e-4, 1e-7)), 2 * 4e-4 + 2e-4)
