"""Choices from measured times: which measurement counts, ties by confidence intervals, gaps filled from elsewhere."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import collwise
from collwise.common.errors import UsageError
from collwise.simulator.store import Store
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.studies.cli.main import main
from collwise.validation.libraries.sayable import for_consumer
from collwise.validation.select.decisions import decisions_from, loss_of, undecided_points
from collwise.validation.select.select import select, tied_seconds
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import BUILTIN, Grid
from collwise.validation.times.measured import stored_times
from collwise.validation.times.times import Times

BED = Configuration("measured", "bed", "Open MPI 4.1.4", (("confidence", "0.95"), ("timing", "maximum")))
SIZES = (1024, 4096, 16384)
ALGORITHMS = ("linear", "ring", "rabenseifner")


def case(algorithm: str, procs: int, size: int, ppn: int = 1) -> Case:
    return Case("allreduce", algorithm, procs, size, processes_per_node=ppn)


def timing(algorithm: str, procs: int, size: int, seconds: float, half_width: float = 0.0, ppn: int = 1) -> Timing:
    return Timing(case(algorithm, procs, size, ppn), seconds, half_width_seconds=half_width, precise=True)


def launch(number: int) -> Configuration:
    return replace(BED, details=(*BED.details, ("launch", str(number))))


def filled(path: Path, *rows: tuple[Configuration, list[Timing]]) -> Store:
    store = Store(path)
    for configuration, timings in rows:
        store.add(configuration, timings)
    return store


def table(seconds: dict[str, list[float]], widths: dict[str, list[float]], **options: float) -> dict[int, object]:
    """The rules for P = 4 at SIZES, from times and half-widths by algorithm."""
    return dict(select(times_of(seconds, widths), **options).rules)


def times_of(seconds: dict[str, list[float]], widths: dict[str, list[float]]) -> Times:
    """Measured times for P = 4 at SIZES."""
    grid = Grid.of("allreduce", (4,), SIZES[: len(next(iter(seconds.values())))], 1, (0,), tuple(seconds))
    timings = {}
    for choice in grid.choices:
        name = choice.algorithm
        for place, one in enumerate(seconds[name]):
            if not math.isnan(one):
                at = grid.case(choice, 4, SIZES[place])
                timings[at] = Timing(at, one, half_width_seconds=widths.get(name, [0.0] * len(SIZES))[place])
    return Times.of_timings(grid, timings, "bed", "measured", "test")


def stored(store: Store, **options: object) -> Times:
    return stored_times(store, "measured", "bed", "allreduce", **options)  # type: ignore[arg-type]


def test_launches_and_runs_of_one_measurement_are_combined(tmp_path: Path) -> None:
    with filled(
        tmp_path / "s.sqlite",
        (BED, [timing("linear", 4, 1024, 1.0), timing("ring", 4, 1024, 5.0)]),
        (launch(2), [timing("linear", 4, 1024, 3.0), timing("ring", 4, 1024, 6.0)]),
        (replace(BED, details=(*BED.details, ("run", "again"))), [timing("linear", 4, 1024, 2.0)]),
    ) as store:
        found = stored(store)
    assert found.seconds_of(Choice("linear"), 4, 1024) == pytest.approx(2.0)
    assert found.half_width_of(Choice("linear"), 4, 1024) == pytest.approx(2.484, rel=1e-3)
    assert found.seconds_of(Choice("ring"), 4, 1024) == pytest.approx(5.5)
    assert (len(found.facts["configurations"]), found.facts["others"]) == (3, 0)


def with_median(algorithm: str, median: float, mean: float, half_width: float = 0.0) -> Timing:
    return replace(timing(algorithm, 4, 1024, mean, half_width), median_seconds=median)


def test_choices_are_made_by_medians_which_stalls_do_not_move(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # As measured: recursive doubling stalls in some launches, and linear is slower in every one of them.
    stalls = [(5.9, 60.0), (6.0, 6.1), (5.8, 200.0), (6.2, 6.3), (6.0, 20.0)]
    launches = [
        [with_median("linear", 9.9 + 0.1 * number, 10.0), with_median("recursive_doubling", *both)]
        for number, both in enumerate(stalls)
    ]
    rows = [(launch(number + 1) if number else BED, each) for number, each in enumerate(launches)]
    with filled(tmp_path / "s.sqlite", *rows) as store:
        found = stored(store)
    assert found.seconds_of(Choice("recursive_doubling"), 4, 1024) == 6.0
    # t(0.975; 4) s / sqrt(5) of the five medians, widened as a median's is against a mean's.
    expected = 2.7764 * 0.14832 / 5**0.5 * (math.pi / 2) ** 0.5
    assert found.half_width_of(Choice("recursive_doubling"), 4, 1024) == pytest.approx(expected, rel=1e-3)
    words = ["select", f"store:file={tmp_path / 's.sqlite'},source=measured"]
    with pytest.raises(SystemExit):
        main(words)
    shown = capsys.readouterr().out
    assert "recursive_doubling" in shown
    assert "linear" not in shown
    assert "at the only point the intervals determine the best choice" in shown


def test_points_are_undecided_where_an_interval_overlaps_that_of_the_fastest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [with_median("linear", 1.0, 1.0, 0.3), with_median("ring", 1.5, 1.5, 0.3)]
    rows += [timing("linear", 4, 4096, 1.0, 0.1), timing("ring", 4, 4096, 1.5, 0.1)]
    filled(tmp_path / "s.sqlite", (BED, rows)).close()
    words = ["select", f"store:file={tmp_path / 's.sqlite'},source=measured"]
    with pytest.raises(SystemExit):
        main([*words, "-o", str(tmp_path / "d.json")])
    assert "undecided at 1 of 2 points: " in capsys.readouterr().out
    [table] = decisions_from(tmp_path / "d.json")
    assert undecided_points(table) == (1, 2)
    assert table.times is not None
    assert table.times.half_width_of(Choice("ring"), 4, 4096) == pytest.approx(0.1)


def test_a_point_is_left_to_mpis_own_collective_where_ours_is_not_faster_beyond_the_intervals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [timing("ring", procs, size, 1.0, 0.1, procs) for procs in (2, 4) for size in SIZES]
    for procs, seconds in ((2, (2.0, 1.1, 2.0)), (4, (0.5, 2.0, 2.0))):
        for size, one in zip(SIZES, seconds, strict=True):
            own = Case("allreduce", "-", procs, size, processes_per_node=procs, experiment=BUILTIN)
            rows.append(Timing(own, one, half_width_seconds=0.1))
    filled(tmp_path / "s.sqlite", (BED, rows)).close()
    decisions, output = str(tmp_path / "d.json"), tmp_path / "rules"
    words = ["select", f"store:file={tmp_path / 's.sqlite'},source=measured"]
    for command in ([*words, "-o", decisions], ["export", decisions, "--format", "collwise", "-o", str(output)]):
        with pytest.raises(SystemExit) as ended:
            main(command)
        assert not ended.value.code
    [table] = decisions_from(Path(decisions))
    said = "faster than MPI's own collective beyond the intervals at 4 of 6 points; rules for Open MPI and libcollwise "
    assert said in capsys.readouterr().out
    assert [line.split()[1:] for line in output.read_text().splitlines() if line.startswith("allreduce")] == [
        ["2", "2", "0", "default"],
        ["2", "2", "1024", "ring"],
        ["2", "2", "4096", "default"],
        ["2", "2", "16384", "ring"],
        ["4", "4", "0", "default"],
        ["4", "4", "4096", "ring"],
    ]
    ring = Choice("ring")
    (kept,), _ = for_consumer([table], "openmpi-4.1")
    assert kept.rules == {
        2: ((1024, ring), (4096, LIBRARY_DECIDES), (SIZES[2], ring)),
        4: ((1024, LIBRARY_DECIDES), (4096, ring)),
    }
    assert table.times is not None
    of_mpich = replace(table, made_by="times measured under MPICH", times=replace(table.times, maker="MPICH 4.0.2"))
    (other,), _ = for_consumer([of_mpich], "openmpi-4.1")
    assert other.rules == {2: ((1024, ring),)}


def test_segments_that_cut_nothing_share_one_measured_time(tmp_path: Path) -> None:
    rows = [
        replace(
            timing("segmented_ring", 4, size, seconds), case=replace(case("segmented_ring", 4, size), segment_bytes=s)
        )
        for size, s, seconds in ((1024, 8192, 1.0), (2**20, 8192, 3.0), (2**20, 65536, 2.0))
    ]
    with filled(tmp_path / "s.sqlite", (BED, rows)) as store:
        found = stored(store)
    assert found.facts["measured"] == 3
    assert found.seconds_of(Choice("segmented_ring", 65536), 4, 1024) == 1.0
    made = select(found.only(lambda one: one.algorithm == "segmented_ring"))
    assert made.rules == {4: ((1024, Choice("segmented_ring", 65536)),)}
    assert undecided_points(made) == (0, 2)


def test_of_several_measurements_that_with_the_most_times_counts_unless_one_is_named(tmp_path: Path) -> None:
    other = replace(BED, maker="MPICH 4.0.2")
    with filled(
        tmp_path / "s.sqlite",
        (BED, [timing("linear", 4, size, 1.0) for size in SIZES]),
        (other, [timing("linear", 4, 1024, 7.0)]),
        (replace(BED, source="simulated"), [timing("ring", 4, size, 0.1) for size in range(99)]),
    ) as store:
        assert stored(store).maker == "Open MPI 4.1.4"
        assert stored(store).facts["others"] == 1
        assert stored(store, keys=[other.key[:8]]).maker == "MPICH 4.0.2"


def test_failed_times_other_roots_and_experiments_do_not_count(tmp_path: Path) -> None:
    with filled(
        tmp_path / "s.sqlite",
        (
            BED,
            [
                timing("linear", 4, 1024, 1.0),
                replace(timing("ring", 4, 1024, math.nan), error="it broke"),
                Timing(replace(case("linear", 4, 4096), root=1), 1.0),
                Timing(replace(case("-", 4, 4096), experiment=BUILTIN), 1.0),
            ],
        ),
    ) as store:
        found = stored(store)
    assert [
        (one, *point) for point in found.grid.points for one in found.at_point(*point) if one != LIBRARY_DECIDES
    ] == [(Choice("linear"), 4, 1024)]


@pytest.mark.parametrize(
    ("rows", "platform", "collective", "ppn", "said"),
    [
        ([], "bed", "allreduce", None, "no measured times; measure some (collwise measure"),
        ([timing("linear", 4, 1024, 1.0)], "bad", "allreduce", None, "did you mean bed?"),
        ([timing("linear", 4, 1024, 1.0)], "bed", "bcast", None, "measured there: allreduce; measure some"),
        ([Timing(replace(case("-", 4, 8), experiment=BUILTIN), 1.0)], "bed", "allreduce", None, "MPI's own collective"),
        (
            [timing("linear", 4, 1, 1.0), timing("linear", 4, 1, 1.0, ppn=2)],
            "bed",
            "allreduce",
            None,
            "name one with ppn",
        ),
        ([timing("linear", 4, 1, 1.0)], "bed", "allreduce", 3, "not measured with 3 processes per node"),
    ],
)
def test_where_nothing_is_measured_the_error_says_what_to_do(
    tmp_path: Path, rows: list[Timing], platform: str, collective: str, ppn: int | None, said: str
) -> None:
    with (
        filled(tmp_path / "s.sqlite", *([(BED, rows)] if rows else [])) as store,
        pytest.raises(UsageError) as caught,
    ):
        stored_times(store, "measured", platform, collective, ppn)
    assert said in str(caught.value)


def test_fewer_processes_than_fit_on_a_node_belong_to_the_same_mapping(tmp_path: Path) -> None:
    rows = [timing("linear", procs, 1024, procs, ppn=min(procs, 4)) for procs in (2, 3, 4, 8)]
    with filled(tmp_path / "s.sqlite", (BED, rows)) as store:
        found = stored(store)
    assert found.processes_per_node == 4
    assert {procs: found.seconds_of(Choice("linear"), procs, 1024) for procs in found.procs} == {2: 2, 3: 3, 4: 4, 8: 8}


def test_of_equally_short_rows_the_one_with_the_least_mean_slowdown_is_taken() -> None:
    seconds = {"linear": [1.00, 1.05, 1.05], "ring": [1.04, 1.00, 1.00]}
    wide = {name: [0.1] * 3 for name in seconds}
    assert table(seconds, wide) == {4: ((1024, Choice("ring")),)}


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.floats(0.1, 10) | st.just(math.nan), st.floats(0, 5)), min_size=3, max_size=3),
    st.floats(0, 1),
)
def test_a_tie_overlaps_the_best_interval_and_keeps_to_the_limit(
    pairs: list[tuple[float, float]], limit: float
) -> None:
    names = dict(zip(ALGORITHMS, pairs, strict=True))
    times = times_of(
        {name: [one] for name, (one, _) in names.items()}, {name: [one] for name, (_, one) in names.items()}
    )
    tied = tied_seconds(times, limit)[:, 0, 0]
    known = [pair for pair in pairs if not math.isnan(pair[0])]
    if not known:
        assert np.isnan(tied).all()
        return
    best, width = min(known, key=lambda pair: pair[0])
    assert times.best_seconds.values[0, 0] == best
    for (own, half), value in zip(pairs, tied, strict=True):
        tie = own - half <= best + width and own <= best * (1 + limit)
        assert math.isnan(value) if math.isnan(own) else value == (best if tie else own)


def measured(tmp_path: Path, *rows: Timing) -> Store:
    """linear everywhere; ring at the ends only, where it is slower by half."""
    return filled(
        tmp_path / "s.sqlite",
        (
            BED,
            [
                *(timing("linear", 4, size, 1.0, 0.01) for size in SIZES),
                *(timing("ring", 4, size, 1.5, 0.01) for size in (1024, 16384)),
                *rows,
            ],
        ),
    )


def test_the_grid_is_what_is_measured_in_the_order_of_candidates(tmp_path: Path) -> None:
    with measured(tmp_path, timing("linear", 8, 1024, 1.0)) as store:
        found = stored(store)
    assert replace(found.grid, besides=()) == Grid.of("allreduce", (4, 8), SIZES, 1, (0,), ("linear", "ring"))


def test_the_loss_is_that_of_the_choices_by_mean_times() -> None:
    seconds = {"linear": [1.0, 1.0, 1.0], "ring": [1.0, 1.0, 1.08]}
    made = select(times_of(seconds, {name: [0.1] * 3 for name in seconds}))
    assert (loss_of(made).mean, loss_of(made).worst) == (0.0, 0.0)
    forced = replace(made, rules={4: ((1024, Choice("ring")),)})
    assert loss_of(forced).worst == pytest.approx(0.08)


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, output = tmp_path / "s.sqlite", tmp_path / "d.json"
    query = f"store:file={store},source=measured,collective=allreduce"

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["select", *words])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    code, _, err = run(query)
    assert (code, "collwise simulate, measure or times import" in err, store.exists()) == (2, True, False)
    measured(tmp_path).close()
    code, out, err = run(query, "-o", str(output))
    assert (code, "linear" in out, "5 times measured under Open MPI 4.1.4" in err) == (0, True, True)
    assert "1 time missing; a choice is not chosen at a point where it was not measured" in err
    assert collwise.Decisions.load(output).choose("allreduce", 4, 2048) == Choice("linear")
    for words, said in (
        ((query, "--fill", "none.times"), "none.times"),
        ((f"{query},platform=bet",), "bed"),
        ((query, "--exact"), "exact is for predicted times"),
        ((f"{query},configuration=0000",), "list"),
        ((query, "--agreement", "100"), "below 100"),
        ((query, query), "times of allreduce are given twice"),
        ((f"{query},procs=x",), "process count"),
    ):
        code, _, err = run(*words)
        assert (code, err.count("\n"), said in err) == (2, 1, True), err
