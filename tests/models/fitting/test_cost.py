"""Counts of table 5.1 of O'Flynn 2009 beside those of the procedures, where nothing has to be repeated."""

from __future__ import annotations

from math import comb

import pytest

from collwise.models.fitting.hockney import hockney_by_regression
from collwise.models.fitting.loggp import culler_loggp
from collwise.models.fitting.plogp import kielmann_plogp
from collwise.models.fitting.regression import Sizes
from collwise.models.fitting.rounds import with_effort
from tests.models.fitting.loggp_laboratory import LogGPLaboratory, eager_machine

PAIRS = [(i, j) for i in range(4) for j in range(i + 1, 4)]


def test_hockney_takes_as_many_as_the_table_says() -> None:
    lab = LogGPLaboratory(eager_machine(), procs=4)
    model, effort = with_effort(
        lab, lambda: hockney_by_regression(lab, Sizes(1024, 1 << 15, max_count=10), pairs=PAIRS)
    )
    assert effort.measurements == 7 * comb(4, 2)
    roundtrips = [2 * float(model.predict(size)) for size in (1, *(1 << k for k in range(10, 16)))]
    assert effort.seconds == pytest.approx(6 * sum(roundtrips))


def test_only_the_procedure_itself_is_counted() -> None:
    lab = LogGPLaboratory(eager_machine(), procs=4)
    before = with_effort(lab, lambda: culler_loggp(lab, pairs=PAIRS))[1]
    again = with_effort(lab, lambda: culler_loggp(lab, pairs=PAIRS))[1]
    assert (again.measurements, again.seconds) == (before.measurements, pytest.approx(before.seconds))
    # Two saturations of two steps each, not three: the least message is the empty one; two overheads, two roundtrips.
    assert again.measurements == 6 * (2 * 2 + 2 + 2)
    assert again.measurements <= 6 * (3 * 2 + 2)


def test_plogp_takes_a_roundtrip_more_a_size_than_the_table_says() -> None:
    """A send is timed apart from the roundtrip that it begins."""
    lab = LogGPLaboratory(eager_machine(), procs=4)
    effort = with_effort(lab, lambda: kielmann_plogp(lab, Sizes(1024, 1 << 15), pairs=PAIRS))[1]
    assert effort.measurements == 6 * (2 + 2 * 7) + 6 * 7
