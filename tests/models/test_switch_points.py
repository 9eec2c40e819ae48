"""Switch points against brute force at every size, for made-up times and for the formulas of the by_parts model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from collwise.models.implementation_aware.message_counts import Gamma
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.parameters import AlgorithmFit, ModelParameters
from collwise.models.piecewise import Array
from collwise.models.registry import BY_PARTS, MODELS
from collwise.models.single_messages import Hockney
from collwise.models.switch_points import NOBODY, TIE, Standings, Times, fastest, good_enough, switch_points

LARGEST = 1500
TOLERANCES = st.sampled_from((0.0, 0.01, 0.2, 1.0)) | st.floats(1e-6, 2.0)


def by_brute_force(
    candidates: Sequence[Times], procs: int, least: int, largest: int, tolerance: float = 0.0
) -> Standings:
    sizes = np.arange(least, largest + 1)
    seconds = np.stack([times(np.full(len(sizes), float(procs)), sizes.astype(float)) for times in candidates])
    found: list[tuple[int, frozenset[int]]] = []
    for size, good in zip(sizes.tolist(), good_enough(seconds, tolerance).T, strict=True):
        now = frozenset(np.flatnonzero(good).tolist())
        if not found or found[-1][1] != now:
            found.append((size, now))
    return found


def without_leaps_back(points: Standings, found: Standings) -> Standings:
    """Without those that are missed and may be: the winner is back within a 64th of a doubling."""
    left = list(points)
    for (size, _), (back, winner) in pairwise(points):
        before = next((other for start, other in reversed(left) if start < size), None)
        if winner == before and back < size * 2 ** (1 / 64) and not {size, back} & {start for start, _ in found}:
            left = [one for one in left if one[0] not in (size, back)]
    return left


def winners(row: Standings) -> tuple[tuple[int, int], ...]:
    """One candidate from each size on, NOBODY where there is none."""
    return tuple((start, *(good or {NOBODY})) for start, good in row)  # type: ignore[misc]


def test_ties_go_to_the_first_and_no_time_is_no_choice() -> None:
    nan = float("nan")
    seconds = np.array([[2.0, 1.0, nan, nan, 0.0, 1.0 + TIE / 2], [1.0, 1.0, 3.0, nan, 0.0, 1.0]])
    assert fastest(seconds).tolist() == [1, 0, 1, NOBODY, 0, 0]


def test_good_enough_is_what_takes_little_longer() -> None:
    nan = float("nan")
    seconds = np.array([[1.0, 1.0, nan, -1.0, 0.0], [1.1, 1.11, nan, -0.9, 1e-9], [nan, 1.0, nan, -0.89, np.inf]])
    assert good_enough(seconds, 0.1).T.tolist() == [
        [True, True, False], [True, False, True], [False] * 3, [True, True, False], [True, False, False],
    ]  # fmt: skip
    assert good_enough(seconds, 0.0).sum(axis=0).tolist() == [1, 1, 0, 1, 1]


def test_a_third_one_in_between_is_found() -> None:
    """Ahead for 11 bytes of 8 MiB only."""

    def valley(p: Array, m: Array) -> Array:
        return 5e6 + 5 - 1.5 * np.maximum(5 - np.abs(m - 5_000_000), -1000.0)

    times: list[Times] = [lambda p, m: m, lambda p, m: 1e7 - m + 0.5, valley]
    found = switch_points(times, (2,), 1, 8 * 2**20)
    assert [candidate for _, candidate in winners(found[2])] == [0, 2, 1]
    assert found[2][1:] == by_brute_force(times, 2, 4_990_000, 5_010_000)[1:]


def test_a_leap_for_a_single_byte_where_all_segments_are_full() -> None:
    """However far the candidate is behind everywhere else."""
    times: list[Times] = [lambda p, m: 1.0 + 0 * m, lambda p, m: np.where(m % 4096 == 0, 0.5, 9.0)]
    found = switch_points(times, (2,), 1, 2**16, (4096, 1000))[2]
    assert found == by_brute_force(times, 2, 1, 2**16)
    assert winners(found)[1:3] == ((4096, 1), (4097, 0))


def test_where_no_candidate_has_a_time() -> None:
    times: list[Times] = [
        lambda p, m: np.where((m >= 700) & (m <= 1100), np.nan, m),
        lambda p, m: np.where(m < 900, np.nan, 10 * m),
    ]
    assert winners(switch_points(times, (2,), 1, LARGEST)[2]) == ((1, 0), (700, NOBODY), (900, 1), (1101, 0))
    never: list[Times] = [lambda p, m: np.full(m.shape, np.nan)] * 2
    assert switch_points(never, (2, 3), 0, 0, (), 0.1) == {2: [(0, frozenset())], 3: [(0, frozenset())]}


def test_equal_candidates_do_not_take_turns() -> None:
    """The same time computed in two ways: rounding decides nothing."""

    times: list[Times] = [
        lambda p, m: (p - 1) * (1e-5 + m * 1e-9),
        lambda p, m: (p - 1) * 1e-5 + (p - 1) * m * 1e-9,
    ]
    for p, row in switch_points(times, range(2, 40), 1, 8 * 2**20, (1024,)).items():
        assert winners(row) == ((1, 0),), p


@st.composite
def made_up(draw: st.DrawFn) -> tuple[list[Times], tuple[int, ...]]:
    """Candidates with teeth at multiples of segments, a leap at one limit for all, a kink, and no time at some P."""
    segments = tuple(draw(st.lists(st.integers(16, 700), max_size=3, unique=True)))
    limit = draw(st.integers(1, LARGEST))
    cost = st.floats(0, 10)
    slope = st.floats(0, 0.1)
    candidates = [
        (
            draw(st.sampled_from((0, *segments))), draw(cost), draw(slope), draw(cost), draw(slope), draw(cost),
            draw(st.booleans()),
        )
        for _ in range(draw(st.integers(1, 5)))
    ]  # fmt: skip

    def times(segment: int, base: float, by: float, leap: float, other: float, tooth: float, floors: bool) -> Times:
        def seconds(p: Array, m: Array) -> Array:
            found = np.maximum(base + by * m, p * other * m) + np.where(m >= limit, leap, 0.0)
            if segment:
                found = found + tooth * (np.floor(m / segment) if floors else np.ceil(m / segment))
            return np.asarray(found)

        return seconds

    return [times(*candidate) for candidate in candidates], segments


@settings(max_examples=100)
@given(model=made_up(), least=st.integers(0, 900), tolerance=TOLERANCES)
def test_every_size_of_made_up_times(model: tuple[list[Times], tuple[int, ...]], least: int, tolerance: float) -> None:
    times, segments = model
    found = switch_points(times, (1, 2, 5), least, LARGEST, segments, tolerance)
    for p in (1, 2, 5):
        assert found[p] == by_brute_force(times, p, least, LARGEST, tolerance)


@st.composite
def by_parts(draw: st.DrawFn) -> ImplementationAware:
    """Parameters of any size, with a segment size that has its own, and a small eager limit."""
    pair = st.builds(Hockney, st.floats(1e-6, 1e-4), st.floats(1e-10, 1e-7))
    parts = ("main", "fill", "steady", "exchange", "scatter", "ring")
    keys = [f"{part}/{protocol}" for part in parts for protocol in ("eager", "rendezvous")]

    def drawn() -> dict[str, Hockney]:
        return {key: draw(pair) for key in keys}

    fits = {
        collective: {
            name: AlgorithmFit(drawn(), (), {256: drawn()} if draw(st.booleans()) else {})
            for name in MODELS[BY_PARTS].formulas[collective]
        }
        for collective in ("bcast", "gather")
    }
    slopes = draw(st.tuples(st.floats(0.01, 0.5), st.floats(0.01, 0.5)))
    gamma = Gamma((100.0, 1500.0), tuple((1.0, 1 + slope, 1 + 1.9 * slope) for slope in slopes))
    # Full segments that reach the eager limit go by another protocol than all other sizes around.
    # So do those just cut in two, of half a segment each.
    eager = draw(st.sampled_from((129, 256, 352, 700)) | st.integers(100, 4000))
    return ImplementationAware(
        ModelParameters("toy", "made up", 1, eager, 256, gamma, Hockney(1e-5, 1e-9), {BY_PARTS: fits}), BY_PARTS
    )


@pytest.mark.parametrize("collective", ["bcast", "gather"])
@settings(max_examples=15)
@given(model=by_parts(), procs=st.sets(st.integers(2, 40), min_size=1, max_size=3), tolerance=TOLERANCES)
def test_every_size_of_the_formulas(
    collective: str, model: ImplementationAware, procs: set[int], tolerance: float
) -> None:
    segmented = (256, 700) if collective == "bcast" else ()

    def time_of(name: str, size: int) -> Times:
        return lambda p, m: model.predict(collective, name, p, m, size)

    times = [time_of(name, size) for name in model.algorithms(collective) for size in (0, *segmented)]
    found = switch_points(times, sorted(procs), 1, LARGEST, segmented, tolerance)
    for p in procs:
        assert found[p] == without_leaps_back(by_brute_force(times, p, 1, LARGEST, tolerance), found[p])
