"""Predictions judged by measured runs: which cells count, the oracle, regrets, and predictions before times."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import gmean

from collwise.algorithms.catalogue import Catalogue
from collwise.arguments import opened
from collwise.checks import check_machines
from collwise.common.errors import UsageError
from collwise.platforms import Platform, Torus, allocated, load
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.store_contents import import_times
from collwise.studies.present.machines import shown
from collwise.studies.present.shown import Table
from collwise.validation.libraries.baselines import BASELINES
from collwise.validation.measurement.confidence import BY_MEAN, ROBUST
from collwise.validation.measurement.deciding import FIXED, RULES, VOTE, choosers_among, decided, ruled, with_choices
from collwise.validation.measurement.imports import pico
from collwise.validation.measurement.imports.algorithms import code_of
from collwise.validation.measurement.judging import (
    POSSIBLE,
    PREDICTED,
    UNTUNED,
    Beside,
    Cell,
    MeasuredPlace,
    beside_untuned,
    candidates,
    cells_of,
    grids,
    platform_of,
    regrets_of,
    with_decided,
)
from collwise.validation.measurement.runs import MeasuredRun, runs_in
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice
from collwise.validation.times.grid import case_of
from collwise.validation.times.measured import times_of_run
from collwise.validation.times.sources import simulate
from collwise.validation.times.times import Times
from tests.validation.measurement.test_imported_runs import archive, iterations, metadata, ranks, write

DEFAULT = "default"


def run_of(
    columns: Mapping[str, Mapping[int, float]],
    *,
    collective: str = "bcast",
    job: str = "1",
    procs: int = 8,
    width: float = 0.0,
    iterations: int = 100,
    marked: tuple[str, ...] = (),
    machine: str = "hexa",
    per_node: int = 1,
) -> MeasuredRun:
    """A run with these microseconds by algorithm and size."""
    timings = []
    for name, column in columns.items():
        choice = LIBRARY_DECIDES if name == DEFAULT else Choice(name)
        for size, microseconds in column.items():
            case: Case = case_of(collective, choice, procs, size, per_node)
            error = "marked" if name in marked else ""
            seconds = math.nan if error else microseconds * 1e-6
            timings.append(Timing(case, seconds, half_width_seconds=width * 1e-6, repetitions=iterations, error=error))
    configuration = Configuration("measured", machine, "Open MPI 4.1.5", (("job", job),))
    return MeasuredRun(machine, job, "Open MPI 4.1.5", {"job": job}, tuple(times_of_run(configuration, timings)))


def judged(run: MeasuredRun, predicted: Mapping[str, float], **others: Mapping[str, float]) -> list[Cell]:
    """The cells of a run, where the predicted microseconds of an algorithm are the same for all sizes.

    `others` are those of other predictors, which may have none for an algorithm.
    """
    known = {PREDICTED: predicted, **others}
    found: dict[str, dict[MeasuredPlace, Times]] = {name: {} for name in known}
    for place, grid, _ in grids(run):
        for name, microseconds in known.items():
            seconds = {grid.case(one, place.procs, size): microseconds[one.algorithm] * 1e-6
                       for one in grid.choices if one.algorithm in microseconds
                       for size in grid.message_bytes}  # fmt: skip
            timings = {case: Timing(case, value) for case, value in seconds.items()}
            found[name][place] = Times.of_timings(grid, timings, "hexa", "simulated", "engine")
    return list(cells_of(run, found))


def decided_among(cells: Sequence[Cell]) -> list[Cell]:
    """The cells with the choices that need no predictions."""
    return with_choices(cells, choosers_among(cells))


OURS, LIBRARYS, OTHERS = ("binomial", "chain", "binary"), ("default-trix3", DEFAULT), ("bine_lat_over",)
NAMES = (*OURS, *LIBRARYS, *OTHERS)
COLUMNS = st.dictionaries(st.sampled_from(NAMES), st.dictionaries(st.sampled_from((64, 512)), st.integers(1, 99)))
PREDICTIONS = st.permutations((5.0, 6.0, 70.0)).map(lambda some: dict(zip(OURS, some, strict=True)))


@settings(max_examples=80)
@given(COLUMNS, st.sets(st.sampled_from(NAMES), max_size=2), PREDICTIONS, PREDICTIONS, st.sets(st.sampled_from(OURS)),
       st.sampled_from((0.0, 0.25, 6.0)))  # fmt: skip
def test_cells_are_those_of_brute_force(
    drawn: dict[str, dict[int, int]],
    marked: set[str],
    predicted: dict[str, float],
    by_model: dict[str, float],
    modelled: set[str],
    width: float,
) -> None:
    """What only the library has counts for the oracle alone, and implementations of others do not count at all."""
    columns = {
        name: {size: time + NAMES.index(name) / 8 for size, time in some.items()} for name, some in drawn.items()
    }
    run = run_of(columns, marked=(*marked,), width=width, iterations=7)
    cells = {cell.message_bytes: cell for cell in judged(run, predicted, two={one: by_model[one] for one in modelled})}
    for size in (64, 512):
        known = {name: some[size] for name, some in columns.items() if size in some and name not in marked}
        ours = [name for name in OURS if name in known]
        assert (size in cells) == (len(ours) > 1)
        if size not in cells:
            continue
        cell, untuned = cells[size], LIBRARY_DECIDES.algorithm
        best = min((name for name in known if name not in OTHERS), key=known.__getitem__)
        lost = {name: 0 if known[name] - known[best] <= 2 * width else known[name] / known[best] - 1 for name in known}
        picks = {PREDICTED: min(ours, key=predicted.__getitem__), POSSIBLE: min(ours, key=known.__getitem__)}
        two = [name for name in ours if name in modelled]
        picks |= {"two": min(two, key=by_model.__getitem__)} if len(two) > 1 else {}
        picks |= {UNTUNED: DEFAULT} if DEFAULT in known else {}
        assert cell.oracle == (untuned if best == DEFAULT else best)
        assert cell.oracle_seconds == pytest.approx(known[best] * 1e-6)
        assert cell.choices == {by: untuned if name == DEFAULT else name for by, name in picks.items()}
        assert cell.regrets == pytest.approx({by: lost[name] for by, name in picks.items()})
        fastest = min(known[name] for name in ours)
        for name, chosen in ((name, untuned if name == DEFAULT else name) for name in (*ours, *({DEFAULT} & {*known}))):
            expected = 0 if known[name] - fastest <= 2 * width else known[name] / fastest - 1
            assert cell.lost_to_candidates[chosen] == pytest.approx(expected)
        assert sorted(cell.errors) == sorted([PREDICTED, *(["two"] if len(two) > 1 else [])])
        assert cell.errors[PREDICTED] == pytest.approx(
            [abs(predicted[name] / known[name] - 1) for name in cell.candidates]
        )
        assert (cell.floor, cell.iterations) == (pytest.approx(np.median([width / known[name] for name in ours])), 7)


def test_names_of_one_code_count_once() -> None:
    columns = {"linear": {64: 12.0}, "linear_sync": {64: 11.0}, DEFAULT: {64: 12.0}}
    assert not judged(run_of(columns, collective="alltoall"), {"linear": 5.0, "linear_sync": 6.0})


@pytest.mark.parametrize(("chains", "left"), [(1, ["chain"]), (0, ["chain", "k_chain"])])
def test_one_chain_is_the_algorithm_of_that_name(tmp_path: Path, chains: int, left: list[str]) -> None:
    head = "# machine: hexa\n# library: Open MPI 4.1.5\ncollective,algorithm,procs,bytes,parameter,us\n"
    rows = f"bcast,chain,8,64,,9\nbcast,k_chain,8,64,{chains or ''},8\n"
    (run,) = runs_in([write(tmp_path, head + rows, "hexa.times.csv")])
    (times,) = run.times
    assert [one.algorithm for one in candidates(times)] == left


def test_several_processes_on_a_node_are_places_of_their_own(tmp_path: Path) -> None:
    head = "# machine: hexa\n# library: Open MPI 4.1.5\ncollective,algorithm,procs,ppn,bytes,us\n"
    rows = "bcast,binomial,8,4,64,9\nbcast,chain,8,4,64,8\nbcast,binomial,8,1,64,9\nbcast,chain,8,1,64,8\n"
    (run,) = runs_in([write(tmp_path, head + rows, "hexa.times.csv")])
    found = [(place.processes_per_node, grid.processes_per_node) for place, grid, _ in grids(run)]
    assert sorted(found) == [(1, 1), (4, 4)]


def test_points_without_two_candidates_are_not_predicted() -> None:
    """Of the sizes of a collective, chain was measured at one; at 16 processes nothing else was."""
    run = run_of({"binomial": {64: 9.0, 512: 12.0}, "chain": {64: 8.0}, DEFAULT: {64: 8.0, 512: 9.0}})
    ((place, grid, _),) = grids(run)
    assert (place.procs, grid.message_bytes, set(grid.names)) == (8, (64,), {"binomial", "chain"})
    assert not list(grids(run_of({"binomial": {64: 9.0}, DEFAULT: {64: 8.0}}, procs=16)))


def cells_at_random(seed: int) -> list[Cell]:
    """Cells of some jobs and collectives, with few iterations or many, and a library that decides well or badly."""
    random, cells = Random(seed), []
    for job, collective in product("123", ("bcast", "reduce", "gather")):
        columns = {name: {size: random.uniform(1, 9) for size in random.sample((64, 4096, 1 << 21), 2)}
                   for name in ("binomial", "linear", DEFAULT)}  # fmt: skip
        predicted = {"binomial": random.uniform(1, 9), "linear": random.uniform(1, 9)}
        cells += judged(run_of(columns, collective=collective, job=job, iterations=random.choice((4, 100))), predicted)
    return cells


@pytest.mark.parametrize("seed", range(8))
def test_statistics_of_regrets_are_those_of_brute_force(seed: int) -> None:
    """The mean is one of collectives, the others are of cells; a cell of few iterations is not the worst one."""
    cells = cells_at_random(seed)
    found = regrets_of(cells, PREDICTED)
    assert found is not None
    lost = np.array([cell.regrets[PREDICTED] for cell in cells])
    collectives = [cell.place.collective for cell in cells]
    of_collective = {one: np.mean(lost[[one == other for other in collectives]]) for one in collectives}
    assert (found.cells, found.jobs) == (len(cells), len({cell.place.job for cell in cells}))
    assert found.mean == pytest.approx(np.mean([*of_collective.values()]))
    over = np.array([cell.lost_to_candidates[cell.chosen] for cell in cells])
    means = [np.mean(over[[one == other for other in collectives]]) for one in of_collective]
    assert found.over_candidates == pytest.approx(np.mean(means))
    assert (found.median, found.percentile_95) == pytest.approx((np.median(lost), np.percentile(lost, 95)))
    assert found.geometric_mean == pytest.approx(gmean(1 + lost) - 1)
    spent = sum(cell.seconds[cell.chosen] for cell in cells)
    assert found.by_seconds == pytest.approx(spent / sum(cell.oracle_seconds for cell in cells) - 1)
    many = [one for one, cell in zip(lost, cells, strict=True) if cell.iterations == 100]
    assert found.worst == pytest.approx(max(many, default=math.nan), nan_ok=True)
    assert min(lost) <= found.low <= found.mean <= found.high <= max(lost)
    alone = regrets_of(cells[:1], PREDICTED)
    assert alone is not None
    assert math.isnan(alone.low)
    both = [cell for cell in cells if UNTUNED in cell.choices]
    slow = [cell for cell in both if cell.regrets[UNTUNED] > 0.1]
    faster = [cell for cell in slow if cell.regrets[PREDICTED] < cell.regrets[UNTUNED]]
    ratios = [
        np.mean([1 + cell.regrets[PREDICTED] for cell in some]) / np.mean([1 + cell.regrets[UNTUNED] for cell in some])
        for one in set(collectives)
        if (some := [cell for cell in both if cell.place.collective == one])
    ]
    better, close = sum(ratio <= 1 for ratio in ratios), sum(1 < ratio <= 1.05 for ratio in ratios)
    counts = (better, close, len(ratios) - better - close, len(slow), len(slow), len(faster))
    assert beside_untuned(cells, PREDICTED) == Beside(*counts)
    left = [replace(cell, choices=cell.choices | {PREDICTED: LIBRARY_DECIDES.algorithm}) for cell in both]
    assert beside_untuned(left, PREDICTED) == Beside(len(ratios), 0, 0, len(slow), 0, 0)
    assert beside_untuned([cell for cell in cells if cell not in both], PREDICTED) is None


@settings(max_examples=60)
@given(
    st.sampled_from(("bcast", "allreduce", "reduce_scatter", "gather", "scan")),
    st.sampled_from((8, 64, 256)),
    st.sets(st.sampled_from((64, 2048, 16384, 2**20)), min_size=1),
    st.sampled_from(("Open MPI 4.1.6", "Open MPI 3.1.4", "MPICH 4.0.2", "Cray MPICH 8.1")),
    st.data(),
)
def test_what_a_known_library_decides_has_its_algorithms_name_unless_that_was_forced(
    collective: str, procs: int, sizes: set[int], library: str, data: st.DataObject
) -> None:
    forced = data.draw(st.sets(st.sampled_from(sorted(Catalogue.load().collective(collective).algorithms))))
    slower = {size: 1000 + size for size in sizes}
    columns = dict.fromkeys(forced, slower) | {DEFAULT: {size: size for size in sizes}}
    run = replace(run_of(columns, collective=collective, procs=procs), library=library)
    (before,), (after,) = run.times, with_decided(run).times
    known = {"Open MPI 4.1.6": "openmpi-4.1", "Open MPI 3.1.4": "openmpi-3.1", "MPICH 4.0.2": "mpich-4"}
    baseline = BASELINES.get(known.get(library, ""))
    codes = {code_of(collective, choice) for choice in candidates(before)} | forced
    for size in sizes:
        added = dict(after.at_point(procs, size))
        for choice, seconds in before.at_point(procs, size).items():
            assert added.pop(choice) == seconds
        found = {(choice.algorithm, choice.parameter): seconds for choice, seconds in added.items()}
        asked = baseline is not None and collective in baseline.collectives
        decision = baseline.choice(collective, procs, size) if baseline is not None and asked else None
        is_cut = decision is not None and 0 < decision.segment_bytes < size
        if decision is None or is_cut or codes & {decision.algorithm, code_of(collective, decision)}:
            assert not found
        else:
            assert found == {(decision.algorithm, decision.parameter): pytest.approx(size * 1e-6)}


def test_size_classes() -> None:
    sizes = dict.fromkeys((64, 2048, 2049, 1 << 20, (1 << 20) + 1), 20.0)
    cells = judged(run_of({"binomial": sizes, "chain": sizes}), {"binomial": 5.0, "chain": 6.0})
    assert [cell.size_class for cell in cells] == ["to 2 KiB"] * 2 + ["to 1 MiB"] * 2 + ["above"]


@pytest.mark.parametrize(
    ("library", "collective", "procs", "size", "expected"),
    [
        ("openmpi-5.0", "bcast", 4, 64, "binomial"),
        ("openmpi-5.0", "gather", 4, 1 << 20, "linear_sync"),  # its first part is the whole block
        ("openmpi-5.0", "alltoall", 16, 1024, "linear"),  # no limit of exchanges under way
        ("openmpi-5.0", "reduce", 4, 8192, "pipeline"),  # a single chain
        ("mpich-4", "bcast", 8, 64, "binomial"),
        ("mpich-4", "alltoall", 16, 1024, "linear"),  # all exchanges at once
        ("mpich-4", "alltoall", 64, 1024, None),  # 32 at a time
        ("mpich-4", "reduce_scatter", 8, 1 << 20, None),  # the catalogue has none that is the same
    ],
)
def test_libraries_decide_where_a_candidate_is_the_same(
    library: str, collective: str, procs: int, size: int, expected: str | None
) -> None:
    names = ("binomial", "chain", "pipeline", "linear", "pairwise", "linear_sync")
    place = MeasuredPlace("hexa", "1", collective, procs)
    codes = {name: name for name in names}
    cell = Cell(place, "Open MPI 4.1.5", size, "-", 1.0, dict.fromkeys(names, 1.0), {}, {}, codes, {}, {}, 0.0, 100)
    assert decided(BASELINES[library], cell) == expected
    assert decided(BASELINES[library], replace(cell, place=replace(place, processes_per_node=4))) is None


def test_tables_of_other_machines_and_their_vote_against_brute_force() -> None:
    """Random times on four machines, on which not all algorithms were forced, at other P and sizes."""
    random = Random(5)
    names = ("linear", "chain", "binary", "binomial")
    cells = []
    for machine, collective in product("abcd", ("bcast", "reduce")):
        forced = random.sample(names, random.choice((2, 3, 4)))
        columns = {name: {size: random.uniform(1, 9) for size in random.sample((8, 64, 512), 2)} for name in forced}
        for procs in random.sample((4, 8, 16, 32), 2):
            run = run_of(columns, machine=machine, collective=collective, procs=procs)
            cells += judged(run, dict.fromkeys(names, 5.0))
    assert len(cells) > 15

    def ranks(here: Cell, machine: str) -> dict[str, float]:
        there = [one for one in cells if (one.place.machine, one.place.collective) == (machine, here.place.collective)]

        def far(one: Cell) -> tuple[float, float]:
            return (
                abs(math.log(one.place.procs / here.place.procs)),
                abs(math.log(one.message_bytes / here.message_bytes)),
            )

        nearest = [one for one in there if far(one) == min(map(far, there))]
        seen: dict[str, list[float]] = {}
        for one in nearest:
            common = [name for name in names if name in one.candidates and name in here.candidates]
            for name in common if len(common) > 1 else ():
                faster = sum(one.seconds[other] < one.seconds[name] for other in common)
                seen.setdefault(name, []).append(faster / (len(common) - 1))
        return {name: sum(found) / len(found) for name, found in seen.items()}

    def winner(ballots: list[dict[str, float]]) -> str | None:
        counts = {name: sum(name in ballot for ballot in ballots) for ballot in ballots for name in ballot}
        known = sorted(name for name in counts if counts[name] == max(counts.values()))
        return min(known, key=lambda name: sum(ballot.get(name, 0.0) for ballot in ballots), default=None)

    tables, votes = 0, 0
    for cell in decided_among(cells):
        others = [machine for machine in "abcd" if machine != cell.place.machine]
        for machine in "abcd":
            expected = winner([ranks(cell, machine)]) if machine in others else None
            assert cell.choices.get(f"table of {machine}") == expected
            tables += expected is not None
        expected = winner([ranks(cell, machine) for machine in others])
        assert cell.choices.get(VOTE) == expected
        votes += expected is not None
        alike = [one for one in cells if (one.place.machine, one.place.collective, one.size_class) == (
            cell.place.machine, cell.place.collective, cell.size_class)]  # fmt: skip
        counts = {name: sum(name in one.candidates for one in alike) for name in names}
        most = [name for name in sorted(names) if counts[name] == max(counts.values())]
        whole = {name: sum(one.lost.get(name, math.inf) for one in alike) for name in most}
        fixed = min(most, key=whole.__getitem__)
        assert cell.choices.get(FIXED) == (fixed if fixed in cell.seconds else None)
    assert tables > votes > 10
    assert all(VOTE not in one.choices for one in decided_among([one for one in cells if one.place.machine == "a"]))


@pytest.mark.parametrize(
    ("machine", "facts", "expected", "nodes"),
    [
        ("mare_nostrum", {}, "marenostrum5", 1120),
        ("Leonardo", {}, "leonardo", 3456),
        ("fugaku", {"hosts": "4x4x2, not counted"}, "fugaku", 32),
        ("aws_c5n", {}, None, 0),
        ("aws_c5n", {"transport": "efa"}, "aws-c5n-efa", 0),
        ("aws_c5n", {"transport": "tcp"}, None, 0),
        ("lumi", {"transport": "cxi"}, "lumi", 0),
    ],
)
def test_platforms_are_found_by_the_names_of_machines_and_their_transport(
    machine: str, facts: dict[str, str], expected: str | None, nodes: int
) -> None:
    found = platform_of(machine, facts)
    assert (found and found.name) == expected
    if isinstance(found, Platform):
        assert nodes in (0, found.nodes)
        if "hosts" in facts:
            assert isinstance(found.topology, Torus)
            assert tuple(found.topology.dimensions) == (4, 4, 2)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def measured(folder: Path, microseconds: float = 20.0) -> Path:
    """The runs of a machine that has a description: the binomial tree takes half of these microseconds."""
    files = {"alloc.csv": ranks(4)} | {
        f"0/{count}_{name}_ompi_int32.csv": iterations(*[microseconds * 1000 * factor] * 20)
        for count in (64, 65536)
        for name, factor in (("default", 0.75), ("binomial", 0.5), ("binary", 1.0))
    }
    path = archive(folder, files, metadata(("4", "1", "BCAST", "OMPI,4.1.5")))
    (folder / "mare_nostrum").mkdir(exist_ok=True)
    (folder / "hexa_metadata.csv").rename(folder / "mare_nostrum_metadata.csv")
    path.rename(folder / "mare_nostrum" / path.name)
    return folder


def test_predictions_are_written_before_times_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[bool] = []
    read_values = pico._values

    def watched(*arguments: object) -> list[float]:
        seen.append(Path("predictions.csv").exists())
        return read_values(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(pico, "_values", watched)
    found = check_machines(measured(tmp_path / "runs"), predictions=Path("predictions.csv"), models=False)
    assert seen == [True] * 6
    text = Path("predictions.csv").read_text()
    assert found.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert found.sha256 in capsys.readouterr().err
    assert [line.split(",")[:4] for line in text.splitlines()[1:3]] == [
        ["mare_nostrum", "2025_01_02___03_04_05", "bcast", "binary"],
        ["mare_nostrum", "2025_01_02___03_04_05", "bcast", "binomial"],
    ]
    assert [cell.regrets[UNTUNED] for cell in found.cells] == pytest.approx([0.5, 0.5])
    assert list(found.frame().columns[:4]) == ["machine", "job", "collective", "procs"]


def test_other_times_have_the_same_predictions(tmp_path: Path) -> None:
    one, other = (
        check_machines(measured(tmp_path / name, time), predictions=Path(f"{name}.csv"), models=False)
        for name, time in (("one", 20.0), ("other", 70.0))
    )
    assert one.sha256 == other.sha256
    assert one.cells[0].oracle_seconds < other.cells[0].oracle_seconds


def test_imported_output_of_benchmarks_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file has the times of one forced algorithm, so that only the store has the choice."""
    monkeypatch.setenv("COLLWISE_STORE", str(tmp_path / "store.sqlite"))
    for folder in ("osu", "one"):
        (tmp_path / folder).mkdir()
    for name, time in (("binomial", 20.0), ("chain", 70.0)):
        text = f"# OSU MPI Broadcast Latency Test v5.8\n# Size       Avg Latency(us)\n64 {time}\n"
        write(tmp_path / "osu", text, f"{name}.txt")
        file = tmp_path / "osu" / f"{name}.txt"
        import_times(file, platform="jupiter", procs=32, algorithm=name, library="Open MPI 4.1.5")
    found = check_machines(Path("store:platform=jupiter"), predictions=tmp_path / "p.csv", models=False)
    assert [(cell.place.collective, cell.oracle) for cell in found.cells] == [("bcast", "binomial")]
    with pytest.raises(UsageError, match=r"binomial\.txt does not say where it was measured; give its --platform NAME"):
        check_machines(tmp_path / "osu", predictions=tmp_path / "none.csv", models=False)
    with pytest.raises(UsageError, match=r"store:procs=3: 'procs' is not for runs; valid: configuration, file, plat"):
        check_machines(Path("store:procs=3"), models=False)
    write(
        tmp_path / "one", "# machine: jupiter\ncollective,algorithm,procs,bytes,us\nbcast,chain,8,64,9\n", "a.times.csv"
    )
    with pytest.raises(UsageError, match="nothing can be predicted: left out, since no point has two algorithms"):
        check_machines(tmp_path / "one", predictions=tmp_path / "none.csv", models=False)
    assert not (tmp_path / "none.csv").exists()


def test_what_is_shown(tmp_path: Path) -> None:
    folder = measured(tmp_path / "runs")
    head = "# machine: unknown\n# library: Open MPI 4.1.5\ncollective,algorithm,procs,bytes,us\n"
    write(folder, head + "bcast,binomial,8,64,9\nbcast,chain,8,64,8\n", "unknown.times.csv")
    head = "# machine: fugaku\n# hosts: 2x2x2\n# library: Open MPI 4.1.5\ncollective,algorithm,procs,ppn,bytes,us\n"
    placed = product(("binomial", "binary"), ((8, 1), (16, 1), (8, 2)))
    rows = "".join(f"bcast,{name},{procs},{ppn},64,{procs}\n" for name, (procs, ppn) in placed)
    write(folder, head + rows, "fugaku.times.csv")
    write(folder, head + "bcast,default,8,1,64,9\n", "other.times.csv")
    output = shown(check_machines(folder, models=False))
    found = {(row["machine"], row["decider"]): row for row in output.rows if not row["collective"] + row["sizes"]}
    expected = {PREDICTED, RULES, UNTUNED, FIXED, POSSIBLE, VOTE, "MPICH 4", "Open MPI 5.0", "table of fugaku"}
    expected |= {BY_MEAN, ROBUST}
    assert {decider for machine, decider in found if machine == "mare_nostrum"} == expected
    row = found["mare_nostrum", UNTUNED]
    assert (row["cells"], row["mean"], row["median_error"]) == (2, pytest.approx(0.5), None)
    assert "no platform is named after unknown: its runs are left out" in output.parts
    assert "fugaku: P = 16 are left out: fugaku has 8 nodes of 48 cores" in output.parts
    assert "left out, since no point has two algorithms of the catalogue: fugaku (other)" in output.parts
    tables = {part.title: part for part in output.parts if isinstance(part, Table)}
    beside = [row[:2] for row in tables["Choices compared with the untuned library"].rows]
    assert beside == [("mare_nostrum", PREDICTED), ("mare_nostrum", RULES)]
    parts = tables["By message size, and by processes on a node"].rows
    assert [row[1] for row in parts if row[0] == "fugaku"] == ["to 2 KiB", "all, 1 on a node", "all, 2 on a node"]
    assert not any(title.startswith("Models") for title in tables)
    assert output.figures["machines"]().axes
    assert Path("results/machines-predictions.csv").exists()
    assert not output.problem


def test_a_job_is_predicted_on_the_nodes_where_it_ran(tmp_path: Path) -> None:
    """Two hosts in each of two pods, which are not those of the description's first nodes."""
    folder = measured(tmp_path / "runs")
    in_order = check_machines(folder, predictions=Path("in_order.csv"), models=False)
    rows = "host0,a,1\nhost1,b,2\nhost2,a,1\nhost3,b,2\n"
    node_map = write(folder, f"host,switch,group\n{rows}", "mare_nostrum.nodes.csv")
    placed = check_machines(folder, predictions=Path("placed.csv"), models=False)
    assert not in_order.placed
    assert placed.placed == {"mare_nostrum.nodes.csv": ["2025_01_02___03_04_05"]}
    output = shown(placed)
    assert output.facts["placed"] == placed.placed
    assert "predicted on the nodes where they ran, by mare_nostrum.nodes.csv: 2025_01_02___03_04_05" in output.parts
    assert placed.sha256 != in_order.sha256
    header, *lines = Path("placed.csv").read_text().splitlines()
    values = [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]
    assert {one["node_map"] for one in values} == {"mare_nostrum.nodes.csv"}
    there = allocated(load("marenostrum5"), write(tmp_path, ranks(4), "ranks.csv"), node_map)
    (run,) = map(with_decided, runs_in([folder], values=False))
    with opened(None, engine="schedule") as context:
        (times,) = simulate(there, [grid for _, grid, _ in grids(run)], context)
    for one in values:
        assert float(one["seconds"]) == times.seconds_of(Choice(one["algorithm"]), 4, int(one["message_bytes"]))


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("host0,a,1\nhost1,b,2\nhost2,a,1\n", "host 'host3' is not in"),
        ("".join(f"host{node},{node},1\n" for node in range(4)), ""),
        ("".join(f"host{node},a{node},{node}\n" for node in range(4)), ""),
    ],
)
def test_a_job_with_hosts_that_the_map_lacks_is_on_nodes_in_order(tmp_path: Path, rows: str, why: str) -> None:
    folder = measured(tmp_path / "runs")
    write(folder, f"host,switch,group\n{rows}", "mare_nostrum.nodes.csv")
    found = check_machines(folder, models=False)
    notes = [one for one in found.notes if one.startswith("predicted on nodes in order: mare_nostrum (2025_01_02")]
    assert [why in one for one in notes] == [True] * bool(why)
    assert bool(why) != ("mare_nostrum.nodes.csv" in found.file.read_text()) == bool(found.placed)


def test_more_processes_than_hosts_have(tmp_path: Path) -> None:
    head = "# machine: leonardo\n# hosts: lrdn0001*1,lrdn0002*1\ncollective,algorithm,procs,bytes,us\n"
    write(tmp_path, head + "bcast,binomial,4,64,9\nbcast,chain,4,64,8\n", "leonardo.times.csv")
    found = check_machines(tmp_path / "leonardo.times.csv", models=False)
    in_order, alone = found.notes
    assert in_order == "predicted on nodes in order: leonardo (leonardo): its hosts are too few for its processes"
    assert alone.startswith("confidence and robust choices are based on the errors of predictions for aws_c5n, fugaku,")
    (cell,) = found.cells
    assert cell.choices[ROBUST] in ("binomial", "chain")


def test_a_malformed_map(tmp_path: Path) -> None:
    folder = measured(tmp_path / "runs")
    write(folder, "host,switch,group\nhost0,a\n", "mare_nostrum.nodes.csv")
    with pytest.raises(UsageError, match=r"mare_nostrum.nodes.csv:2: expected host,switch,group, not 'host0,a'"):
        check_machines(folder, models=False)


def test_models_are_fitted_without_times(tmp_path: Path) -> None:
    found = check_machines(measured(tmp_path / "runs"), predictions=Path("predictions.csv"))
    names = {line.split(",")[-2] for line in Path("predictions.csv").read_text().splitlines()[1:]}
    assert {PREDICTED, "hockney", "logp", "loggp", "plogp", "by_parts", "critical_path", "loggp_as_printed"} <= names
    assert "lmo" not in names
    for cell in found.cells:
        assert {"hockney", "critical_path"} <= set(cell.choices) & set(cell.errors)
    output = shown(found)
    (table,) = [part for part in output.parts if isinstance(part, Table) and part.title.startswith("Data sheets")]
    assert {row[0] for row in table.rows} == names - {PREDICTED}
    assert all(str(row[1]).startswith("2: ") for row in table.rows)


def test_training_on_a_machine_shows_its_other_cells_apart(tmp_path: Path) -> None:
    found = check_machines(measured(tmp_path / "runs"), predictions=Path("p.csv"), models=False, train=True)
    plain = check_machines(measured(tmp_path / "more"), predictions=Path("q.csv"), models=False)
    kinds = {cell.place.machine for cell in found.cells}
    assert "mare_nostrum, trained on" in kinds
    assert all(name.startswith("mare_nostrum, ") for name in kinds)
    assert len(found.cells) == len(plain.cells)
    assert found.sha256 != plain.sha256
    for judged, decider in ((found, ""), (plain, f", {RULES}")):  # of which the main table has the percentile
        main = next(part for part in shown(judged).parts if isinstance(part, Table))
        assert f"95th percentile{decider}" in main.columns


@pytest.mark.parametrize(("library", "expected"), [("Open MPI 4.1.5", "linear"), ("Fujitsu MPI 4", "library decides")])
def test_rules_leave_a_library_alone_that_nobody_knows(library: str, expected: str) -> None:
    seconds = {"linear": 1.0, "binomial": 2.0, "library decides": 1.5}
    predicted = {name: one for name, one in seconds.items() if name != "library decides"}
    codes, lost = {name: name for name in predicted}, dict.fromkeys(seconds, 0.0)
    choices, place = {PREDICTED: "linear", ROBUST: "linear"}, MeasuredPlace("m", "j", "gather", 4)
    cell = Cell(place, library, 64, "-", 1.0, seconds, lost, lost, codes, choices, {PREDICTED: predicted}, 0.0, 100)
    (found,) = ruled([cell], ROBUST)
    assert found.choices[RULES] == expected
