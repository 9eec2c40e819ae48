"""The fewest rows that standings allow."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from hypothesis import given, strategies as st

from collwise.validation.select.fewest_rows import Chosen, fewest_rows


def every_table(good: Sequence[Sequence[frozenset[int]]]) -> Iterable[Sequence[Chosen]]:
    """Rows of every table that chooses one of the candidates for each P and size."""
    for picks in itertools.product(*(itertools.product(*row) for row in good)):
        yield [
            tuple((size, pick) for size, pick in enumerate(row) if size == 0 or row[size - 1] != pick) for row in picks
        ]


@given(
    st.integers(1, 3).flatmap(
        lambda sizes: st.lists(
            st.lists(st.frozensets(st.integers(0, 3), min_size=1, max_size=2), min_size=sizes, max_size=sizes),
            min_size=1, max_size=3,
        )
    )
)  # fmt: skip
def test_no_table_has_fewer_rows(good: Sequence[Sequence[frozenset[int]]]) -> None:
    found = fewest_rows({p: list(enumerate(row)) for p, row in enumerate(good)})
    for p, row in enumerate(good):
        in_force = found[max(start for start in found if start <= p)]
        for size, among in enumerate(row):
            assert [pick for start, pick in in_force if start <= size][-1] in among
    least = min(
        sum(len(row) for before, row in itertools.pairwise([(), *table]) if row != before)
        for table in every_table(good)
    )
    assert sum(map(len, found.values())) == least


def test_a_row_takes_what_stays_good_enough_the_longest() -> None:
    steps = [(1, {0, 1, 2}), (10, {1, 2}), (20, {2}), (30, {0, 1}), (40, {0, 1, 3})]
    assert fewest_rows({4: [(start, frozenset(good)) for start, good in steps]}) == {4: ((1, 2), (30, 0))}


def test_process_counts_share_a_row_where_that_saves_one() -> None:
    a, b, both = frozenset({0}), frozenset({1}), frozenset({0, 1})
    assert fewest_rows({2: [(1, both)], 3: [(1, a), (50, both)], 4: [(1, both), (60, b)], 5: [(1, b)]}) == {
        2: ((1, 0),), 4: ((1, 1),),
    }  # fmt: skip
    # What begins elsewhere is not shared: below there is nothing to choose.
    assert fewest_rows({2: [(1, a)], 3: [(5, a)]}) == {2: ((1, 0),), 3: ((5, 0),)}
