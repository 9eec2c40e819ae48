"""Mappings of processors to a binomial tree: against brute force, and never worse than the default."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from collwise.common.errors import UsageError
from collwise.models import rank_mapping
from collwise.models.rank_mapping import Cost, Mapping, heaviest_to_fastest, optimal_mapping


def tree_cost(procs: int, seed: int, calls: list[Mapping] | None = None) -> Cost:
    """Formula (5.1) for any number of processors: a subtree's root sends to its largest child first."""
    generator = np.random.default_rng(seed)
    alpha = generator.uniform(1, 4, (procs, procs))
    beta = generator.uniform(0.5, 3, (procs, procs)) * generator.choice([1, 4], procs)[:, None]

    def subtree(mapping: Mapping, first: int, size: int) -> float:
        if size == 1:
            return 0.0
        half = 1 << ((size - 1).bit_length() - 1)
        sender, receiver = mapping[first], mapping[first + half]
        sent = alpha[sender, receiver] + beta[sender, receiver] * (size - half)
        return float(sent + max(subtree(mapping, first, half), subtree(mapping, first + half, size - half)))

    def cost(mapping: Mapping) -> float:
        if calls is not None:
            calls.append(mapping)
        return subtree(mapping, 0, procs)

    return cost


@settings(max_examples=25)
@given(procs=st.integers(1, 6), seed=st.integers(0, 2**32 - 1))
def test_few_processors_have_the_best_mapping(procs: int, seed: int) -> None:
    cost = tree_cost(procs, seed)
    mapping = optimal_mapping(cost, procs)
    assert mapping[0] == 0
    assert cost(mapping) == pytest.approx(best_cost(cost, procs), rel=1e-11)


def best_cost(cost: Cost, procs: int) -> float:
    return min(cost((0, *others)) for others in permutations(range(1, procs)))


@pytest.mark.parametrize("seed", range(6))
def test_the_search_finds_the_best_of_seven(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_mapping, "PROCS_TO_EXHAUST", 0)
    cost = tree_cost(7, seed)
    assert cost(optimal_mapping(cost, 7)) == pytest.approx(best_cost(cost, 7), rel=1e-12)


@settings(max_examples=15)
@given(procs=st.integers(9, 12), seed=st.integers(0, 2**32 - 1))
def test_the_search_is_never_worse_than_where_it_starts(procs: int, seed: int) -> None:
    cost = tree_cost(procs, seed)
    start = (0, *np.random.default_rng(seed).permutation(np.arange(1, procs)).tolist())
    mapping = optimal_mapping(cost, procs, [start])
    assert sorted(mapping) == list(range(procs))
    assert mapping[0] == 0
    assert cost(mapping) <= min(cost(tuple(range(procs))), cost(start))


def test_the_search_is_deterministic() -> None:
    first: list[Mapping] = []
    second: list[Mapping] = []
    assert optimal_mapping(tree_cost(10, 1, first), 10) == optimal_mapping(tree_cost(10, 1, second), 10)
    assert first == second


@pytest.mark.parametrize("procs", [5, 12])
def test_equal_processors_keep_the_default(procs: int) -> None:
    assert optimal_mapping(lambda mapping: 1.0, procs) == tuple(range(procs))


def test_heaviest_to_fastest() -> None:
    """Of eight ranks 4 has four ranks, 2 and 6 have two, the others themselves."""
    assert heaviest_to_fastest([0, 1, 2, 3, 4, 5, 6, 7]) == (0, 4, 2, 5, 1, 6, 3, 7)
    assert heaviest_to_fastest([7, 6, 5, 4, 3, 2, 1, 0]) == (0, 4, 6, 3, 7, 2, 5, 1)
    # Of six, 4 and 2 have two.
    assert heaviest_to_fastest([0, 5, 1, 4, 2, 3]) == (0, 5, 2, 3, 4, 1)


def test_bad_input() -> None:
    cost = tree_cost(9, 0)
    with pytest.raises(UsageError, match="not a mapping"):
        optimal_mapping(cost, 9, [(0, 1)])
    with pytest.raises(UsageError, match="with root 0"):
        optimal_mapping(cost, 9, [(1, 0, *range(2, 9))])
