"""Decision tables of models and of simulated times: what a table says at its points and between them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from collwise.common.errors import UsageError
from collwise.models.implementation_aware.message_counts import Gamma
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.parameters import AlgorithmFit, ModelParameters
from collwise.models.registry import BY_PARTS, MODELS
from collwise.models.single_messages import Hockney
from collwise.models.switch_points import fastest
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.select.select import select
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import predict_choice, predicted

SEGMENT = 8192


def parameters(**alphas: float) -> ImplementationAware:
    """Gather models whose alphas are given; beta is 1e-9 for all."""
    pairs = {name: Hockney(alpha, 1e-9) for name, alpha in alphas.items()}
    fits = {name: AlgorithmFit({"main/eager": pair, "main/rendezvous": pair}, (0.0,)) for name, pair in pairs.items()}
    made_up = ModelParameters(
        "grisou", "made up", 1, 65536, SEGMENT, Gamma((8192.0,), ((1.0, 1.1),)), Hockney(1e-5, 1e-9),
        {BY_PARTS: {"gather": fits}},
    )  # fmt: skip
    return ImplementationAware(made_up, BY_PARTS)


def broadcasts() -> ImplementationAware:
    """Broadcast models with parameters of their own for each part, protocol and, in part, segment size."""
    rng = np.random.default_rng(5)
    parts = ("main", "fill", "steady", "exchange", "scatter", "ring")

    def drawn() -> dict[str, Hockney]:
        return {
            f"{part}/{protocol}": Hockney(rng.uniform(1e-5, 4e-5), rng.uniform(1e-9, 2e-9))
            for part in parts
            for protocol in ("eager", "rendezvous")
        }

    fits = {name: AlgorithmFit(drawn(), (), {SEGMENT: drawn()}) for name in MODELS[BY_PARTS].formulas["bcast"]}
    gamma = Gamma((1024.0, 65536.0), ((1.0, 1.1, 1.2, 1.35), (1.0, 1.3, 1.6, 1.9)))
    hockney = Hockney(1e-5, 1e-9)
    made_up = ModelParameters("grisou", "made up", 1, 60000, SEGMENT, gamma, hockney, {BY_PARTS: {"bcast": fits}})
    return ImplementationAware(made_up, BY_PARTS)


@pytest.mark.parametrize("more_segments", [(), (1024, 65536)])
def test_looking_up_decides_as_the_formulas_do(more_segments: tuple[int, ...]) -> None:
    """At random points, and on both sides of every switch point."""
    model, (least, largest) = broadcasts(), (100, 2**21)
    procs = tuple(range(2, 34))
    plan = Grid.of("bcast", procs, (least, 4096, largest), 1, (SEGMENT, *more_segments))
    table = select(predicted(model, plan), exact=True)
    assert any(start not in (least, 4096, largest) for row in table.rules.values() for start, _ in row)
    rng = np.random.default_rng(6)
    points = [*zip(rng.integers(2, 34, 1000), rng.integers(least, largest + 1, 1000), strict=True)]
    points += [(p, min(max(start + by, least), largest)) for p in procs for start, _ in table.row(p) for by in (-1, 0)]
    p, m = np.array(points).T
    choices = list(plan.choices)
    times = [predict_choice(model, "bcast", choice, p, m) for choice in choices]
    expected = [choices[index] for index in fastest(np.stack(times))]
    assert [table.choose(*point) for point in points] == expected
    sampled = select(predicted(model, plan))
    assert [sampled.choose(count, 4096) for count in procs] == [table.choose(count, 4096) for count in procs]


@settings(max_examples=5)
@given(st.lists(st.integers(100, 2**21), min_size=3, max_size=6, unique=True), st.sampled_from((0.0, 0.01, 0.1)))
def test_sampled_tables_say_what_they_lose_between_the_sizes(sizes: list[int], tolerance: float) -> None:
    """Their choices at the sizes are within the tolerance, and the loss is that of looking up at sizes between."""
    model, procs, ordered = broadcasts(), (2, 5, 16), tuple(sorted(sizes))
    plan = Grid.of("bcast", procs, ordered, 1, (SEGMENT, 1024))
    table = select(predicted(model, plan), tolerance=tolerance)
    between = {
        size
        for first, end in itertools.pairwise(ordered)
        for size in (*np.geomspace(first, end, 9).astype(int).tolist(), end - 1)
        if size not in ordered
    }

    def losses(some: Iterable[int]) -> list[float]:
        found = []
        for p in procs:
            for m in some:
                times = {choice: float(predict_choice(model, "bcast", choice, np.array([p]), np.array([m]))[0])
                         for choice in plan.choices}  # fmt: skip
                found.append(times[table.choose(p, m)] / min(times.values()) - 1)
        return found

    assert max(losses(ordered)) <= tolerance + 1e-9
    if between:
        lost = losses(sorted(between))
        assert table.between is not None
        assert (table.between.points, table.between.worst) == (len(lost), pytest.approx(max(lost), abs=1e-12))
        assert table.between.mean == pytest.approx(sum(lost) / len(lost), abs=1e-12)
    for p, row in table.rules.items():
        for (_, before), (start, after) in itertools.pairwise(row):
            at = np.array([start - 1, start])
            earlier, later = (predict_choice(model, "bcast", one, np.array([p]), at) for one in (before, after))
            # The later choice begins where it becomes the faster one, or at a size of the grid.
            assert (later[1] < earlier[1] and not later[0] < earlier[0]) or start in ordered or start - 1 in ordered


def test_between_two_entries_the_lower_one_holds() -> None:
    chain, binary, linear = Choice("chain", SEGMENT), Choice("binary", SEGMENT), Choice("linear")
    table = DecisionTable(
        "bcast", "grisou", 1, "simulated", "hand", {4: ((0, linear), (1000, chain)), 10: ((500, binary),)}
    )
    assert [table.choose(4, size) for size in (0, 999, 1000, 10**9)] == [linear, linear, chain, chain]
    assert table.choose(9, 999) == linear
    assert table.choose(10, 500) == table.choose(10**6, 10**9) == binary
    with pytest.raises(UsageError, match="starts at P = 4, not 3"):
        table.choose(3, 1000)
    with pytest.raises(UsageError, match="no entry for 499 bytes"):
        table.choose(10, 499)


def test_a_model_that_covers_nothing() -> None:
    plan = Grid.of("gather", (4,), (10,), 1, (SEGMENT,), ("binomial",))
    with pytest.raises(UsageError, match="model 'by_parts' covers none of the gather algorithms asked for"):
        select(predicted(parameters(linear=1e-5), plan), exact=True)
    with pytest.raises(UsageError, match="model 'by_parts' covers none of the bcast algorithms"):
        predicted(parameters(linear=1e-5), Grid.of("bcast", (4,), (10,), 1, (SEGMENT,)))
