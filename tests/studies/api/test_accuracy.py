"""Whom to trust: errors and slowdowns of sources against simulated and measured times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import collwise
from collwise.common.errors import UsageError
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SimulationContext
from collwise.simulator.timing import Configuration, Timing
from tests.needs import needs

ASKED = {"procs": "4,8", "sizes": "8KiB,64KiB", "segments": "8KiB"}


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SimulationContext]:
    with Store(tmp_path / "timings.sqlite") as store:
        yield SimulationContext(store)


@needs("smpi")
def test_errors_are_relative_to_simulated_times(context: SimulationContext) -> None:
    found = collwise.accuracy("exact", "gather", "hockney", **ASKED, context=context)
    assert set(found.table.source) == {"schedule engine", "hockney"}
    assert found.table.reference.str.startswith("SimGrid").all()
    simulated = collwise.simulate("exact", "gather", "4,8", "8KiB", segments="8KiB", context=context)
    model = collwise.fit("exact", "hockney", context=context)
    predicted = collwise.predict(model, "gather", "4,8", "8KiB", segments="8KiB")
    keys = ["algorithm", "procs"]
    both = simulated.merge(predicted, on=keys, suffixes=("", "_predicted"))
    errors = (both.seconds_predicted / both.seconds - 1).abs().dropna()
    [row] = found.table[(found.table.source == "hockney") & (found.table.message_bytes == 8192)].itertuples()
    assert row.cases == len(errors)
    assert row.mean_error == pytest.approx(errors.mean())
    assert row.worst_error == pytest.approx(errors.max())
    fastest = both.loc[both.groupby("procs").seconds.idxmin()].set_index("procs").seconds
    picked = both.loc[both.groupby("procs").seconds_predicted.idxmin()].set_index("procs").seconds
    assert row.mean_slowdown == pytest.approx((picked / fastest - 1).mean())


@needs("smpi")
def test_measured_times_are_the_reference_where_there_are_any(context: SimulationContext) -> None:
    collwise.simulate("exact", "gather", "4,8", "8KiB,64KiB", segments="8KiB", context=context)
    made = Configuration("measured", "exact", "Open MPI 4.1.4")
    [simulated] = [one for one in context.store.configurations() if "gather" in one.collectives]
    for case, timing in context.store.timings_of(simulated.key).items():
        context.store.add(made, [Timing(case, timing.seconds * 1.25, half_width_seconds=timing.seconds / 100)])
    found = collwise.accuracy("exact", "gather", "hockney", context=context)
    assert set(found.table.reference) == {"Open MPI 4.1.4"}
    by_smpi = found.table[found.table.source == "SMPI"]
    assert by_smpi.mean_error.to_numpy() == pytest.approx(0.2)
    assert (by_smpi.mean_slowdown == 0).all()
    trusted = found.trusted()
    assert list(trusted.message_bytes) == [8192, 65536]
    assert all("SMPI" in names for names in trusted.good_choices)
    assert [axis.get_title() for axis in found.figure().axes[:3]] == ["SMPI", "schedule engine", "hockney"]
    with pytest.raises(UsageError, match="no figure of 'mean_eror'; valid: mean_error"):
        found.figure("mean_eror")


def test_without_measured_times_process_counts_are_needed(context: SimulationContext) -> None:
    with pytest.raises(UsageError, match="gather is not measured on exact, and without measured times procs is needed"):
        collwise.accuracy("exact", "gather", context=replace(context))
