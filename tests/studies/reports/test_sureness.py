"""How sure decisions are said to be: by scales of the discrepancy, and only by simulated times of all choices."""

from __future__ import annotations

from pathlib import Path

import pytest

import collwise
from collwise import arguments
from collwise.common.errors import UsageError
from collwise.studies.present.shown import shown
from collwise.studies.reports import sureness
from collwise.validation.measurement.confidence import Discrepancy, outlooks_of, robust_times
from collwise.validation.select.decisions import DecisionTable

NOTHING, MUCH = Discrepancy(1e-9, 1e-9, 1e-9, 5.0), Discrepancy(3.0, 1e-9, 1e-9, 5.0)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DecisionTable:
    monkeypatch.chdir(tmp_path)
    with arguments.opened(None, engine="schedule") as context:
        times = collwise.simulate("exact", "bcast", "4,8", "1KiB,64KiB", segments="8KiB", context=context)
    (made,) = collwise.select(times).tables
    return made


def test_without_a_discrepancy_every_point_is_sure(table: DecisionTable) -> None:
    found = outlooks_of(table, NOTHING)
    assert [(one.procs, one.message_bytes) for one in found] == [(4, 1024), (4, 65536), (8, 1024), (8, 65536)]
    assert all(one.outlook.probability == 1 and one.outlook.percentile_95 < 0.02 for one in found)
    assert all(one.outlook.probability < 0.9 and len(one.rivals) > 1 for one in outlooks_of(table, MUCH))


def test_what_is_said(table: DecisionTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sureness, "DISCREPANCY", NOTHING)
    sure, *_, mean, worst = sureness.sure_sentences([table])
    assert sure.startswith("sure at 4 of 4 points: there the choice loses less than 5 % with a probability of 90 %")
    assert mean == "expected loss against the fastest choices, as the geometric mean of these 4 points: 0 %"
    assert worst.startswith("at worst (95th percentile) ")
    monkeypatch.setattr(sureness, "DISCREPANCY", MUCH)
    sure, *_, unsure, measure, _, _ = sureness.sure_sentences([table])
    assert sure.startswith("sure at none of 4 points")
    assert unsure.startswith("not sure at 4: ")
    assert measure.startswith("measure bcast (P = 4, 8; 1 KiB to 64 KiB): ")
    assert all(len(part.split()) <= 22 for part in sureness.sure_sentences([table]))


def test_what_is_said_stands_in_json(table: DecisionTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sureness, "DISCREPANCY", MUCH)
    times = table.times
    assert times is not None
    facts = shown(collwise.select(times)).facts
    assert (facts["sure"]["points"], facts["sure"]["sure"], facts["robust"]) == (4, 0, False)
    assert facts["sure"]["worst"]["collective"] == "bcast"
    assert 0 < facts["sure"]["mean"] < facts["sure"]["worst"]["percentile_95"]
    (measure,) = facts["sure"]["measure"]
    assert f"measure {measure}" in "\n".join(sureness.sure_sentences([table]))
    predicted = collwise.predict(collwise.fit("exact", "hockney"), "bcast", procs="4")
    assert shown(collwise.select(predicted)).facts["sure"] is None


def test_robust_choices_say_so(table: DecisionTable) -> None:
    times = table.times
    assert times is not None
    said = "choices are those that lose least in the worst case (--robust), not those with the least time"
    assert said in shown(collwise.select(times, robust=True)).parts
    assert said not in shown(collwise.select(times)).parts


def test_robust_choices_lose_least_at_the_95th_percentile(
    table: DecisionTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert table.times is not None
    doubt = Discrepancy(0.1, 1.0, 1e-9, 5.0)
    monkeypatch.setattr(sureness, "DISCREPANCY", doubt)
    (robust,) = collwise.select(table.times, robust=True, tolerance=0).tables
    assert robust.times is not None
    assert robust.times.seconds.equals(table.times.seconds)
    assert robust.rules != collwise.select(table.times, tolerance=0).tables[0].rules
    ranked = robust_times(table.times, doubt)
    for procs, size in table.times.grid.points:
        known = ranked.at_point(procs, size)
        assert known[robust.choose(procs, size)] == min(known.values())
    pairs = zip(outlooks_of(robust, doubt), outlooks_of(table, doubt), strict=True)
    assert all(one.outlook.percentile_95 <= other.outlook.percentile_95 + 1e-9 for one, other in pairs)


def test_robust_choices_need_simulated_times() -> None:
    times = collwise.predict(collwise.fit("exact", "hockney"), "bcast", procs="4")
    with pytest.raises(UsageError, match="robust choices need simulated times of all choices, not predicted ones"):
        collwise.select(times, robust=True)


def test_nothing_is_said_of_times_that_were_not_simulated() -> None:
    times = collwise.predict(collwise.fit("exact", "hockney"), "bcast", procs="4")
    assert not sureness.sure_sentences(collwise.select(times).tables)
