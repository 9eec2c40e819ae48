"""The sections of a report about one collective: choices, where they are close, costs, times, and measured ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from collwise.common.units import format_size
from collwise.models.piecewise import Array
from collwise.models.registry import BY_PARTS
from collwise.models.switch_points import NOBODY
from collwise.platforms import HostPlatform
from collwise.platforms.smpi import charges_overheads
from collwise.simulator.timing import Case
from collwise.studies.figures.cells import has_digits
from collwise.studies.figures.maps import Slowdowns, closeness_map, method_map, slowdown_map
from collwise.studies.figures.picks import algorithms_by_engine, algorithms_by_size, markers_and_lines, picks_by_procs
from collwise.studies.reports.comparison_table import chooses_segments, percent, summary_line, table_columns, table_row
from collwise.studies.reports.engine_table import agreement_line, engine_columns, engine_rows, library_line
from collwise.studies.reports.sections import Picture, Section, TextTable
from collwise.validation.compare.comparison import ComparisonResult, Pick
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.select.tuning import EngineChoices, Tuning
from collwise.validation.times.measured import Measurement

CLOSE = 0.05
"""A choice is close where the best other algorithm is slower by less than this share."""

_TITLES = {"bcast": "Broadcast"}
_SHADED_FROM = 0.1
_BY_ENGINE = (
    "Times and choices are the schedule engine's, for messages of {least} and more: {overheads} Neither it nor SMPI "
    "simulates switches that drop packets, so that algorithms in which all processes send to one at a time look better "
    "than they may be. As a check, SMPI timed every algorithm with segments of {segment} on {procs} processes. The "
    "last two columns have its time of the best algorithm, with the difference from the engine's in percent, and the "
    "slowdown of this algorithm by SMPI's times."
)
_FREE = "this platform has no overheads, so that shorter ones cannot be decided, and small segments seem too cheap."
_NO_DIGITS = " The cells are too small for digits; the table of all points has the numbers."
_CHARGED = "shorter ones are not compared."


def heading(tuning: Tuning, collective: str) -> str:
    """The title of a collective's section."""
    name = _TITLES.get(collective, collective.replace("_", " ").capitalize())
    return f"{name} on {tuning.platform.title}"


def comparison_section(
    tuning: Tuning, collective: str, result: ComparisonResult, measured: Measurement | None
) -> Section:
    """The section of a collective whose algorithms were compared with a model's and a library's choices."""
    gains = tuning.gains(collective) if collective in tuning.rules else []
    rules = {(one.procs, one.message_bytes): one.rules for one in gains}
    if collective == "barrier":
        picture = picks_by_procs(result, f"{heading(tuning, collective)}, simulated")
        pictures = [
            Picture.of(f"{tuning.platform.name}-{collective}-picks", picture, "Time of each source's choice over P.")
        ]
    else:
        pictures = list(_pictures(tuning, collective, result, rules))
    lines = [f"{summary_line(result)}."]
    if collective in tuning.by_engine:
        lines.append(f"{agreement_line(tuning.by_engine[collective])}.")
    if measured is not None:
        found, line = _measured_picture(tuning, collective, result, measured)
        pictures += found
        lines.append(line)
    columns = (*table_columns(result), "rules (%)")
    rows, bad = [], set()
    for number, row in enumerate(result.rows):
        cells, said = table_row(row), rules.get((row.procs, row.message_bytes))
        rows.append((*cells, "-" if said is None else f"{said.choice.label} ({percent(said.slowdown)})"))
        common = [] if chooses_segments([row]) or row.listed is None else [row.listed]
        picks = [*([row.model] if row.predicted else []), *common, row.baseline]
        shaded = enumerate(picks, len(cells) - len(picks))
        bad |= {(number, column) for column, pick in shaded if pick.slowdown > _SHADED_FROM}
        if said is not None and said.slowdown > _SHADED_FROM:
            bad.add((number, len(columns) - 1))
    table = TextTable(columns, rows, 3, f"All {len(rows)} points", bad=bad, folded=True)
    return Section(heading(tuning, collective), lines, [table], pictures, level=3)


def close_points(result: ComparisonResult) -> Array:
    """The slowdown of the best other algorithm at every compared point, shape (P, m); nan where there is no other."""
    algorithms = {label: choice.algorithm for label, choice in result.grid.candidates.items()}
    values = []
    for row in result.rows:
        others = [
            seconds
            for label, seconds in row.simulated.items()
            if algorithms[label] != row.best.choice.algorithm and np.isfinite(seconds)
        ]
        values.append(min(others) / row.best.seconds - 1 if others and row.best.seconds else np.nan)
    return _on_grid(result, values, np.nan)


def _on_grid(result: ComparisonResult, values: Sequence[Any], missing: Any) -> npt.NDArray[Any]:
    """Values, one for each row of a comparison, by P and m; `missing` at points without a row."""
    grid = result.grid
    found = np.full((len(grid.procs), len(grid.message_bytes)), missing)
    for row, value in zip(result.rows, values, strict=True):
        found[grid.procs.index(row.procs), grid.message_bytes.index(row.message_bytes)] = value
    return found


def largest_decided(platform: HostPlatform, decisions: DecisionTable) -> int:
    """The largest process count for which times decided, all of the platform for formulas; above it rules repeat it."""
    most = platform.max_procs(decisions.processes_per_node)
    if decisions.evidence is None or decisions.made_by == f"model {BY_PARTS}":
        return most
    return min(most, max(decisions.evidence.procs))


def _pictures(
    tuning: Tuning, collective: str, result: ComparisonResult, rules: Mapping[tuple[int, int], Pick]
) -> Iterator[Picture]:
    """The figures over the message size; `rules` are the rules' picks by point."""
    grid, title = result.grid, heading(tuning, collective)
    stem, maker = f"{tuning.platform.name}-{collective}", result.sweep.configuration.maker
    points = [(row.procs, row.message_bytes) for row in result.rows]
    model: dict[str, list[Pick | None]] = {"the model chooses": [row.model for row in result.rows]}
    sources: dict[str, list[Pick | None]] = {
        **(model if result.has_model else {}),
        f"{result.baseline.title} chooses untuned": [row.baseline for row in result.rows],
        "the rules choose": [rules.get(point) for point in points],
    }
    panels: dict[str, list[Pick | None]] = {f"fastest by {maker}": [row.best for row in result.rows], **sources}
    every = [pick.choice for picks in panels.values() for pick in picks if pick is not None and not pick.missing]
    methods = [*grid.candidates.values(), *dict.fromkeys(one for one in every if one not in grid.candidates.values())]
    chosen = {
        name: _on_grid(
            result,
            [NOBODY if pick is None or pick.missing else methods.index(pick.choice) for pick in picks],
            NOBODY,
        )
        for name, picks in panels.items()
    }
    timed = next(iter(panels))
    yield Picture.of(
        f"{stem}-choices",
        method_map(chosen, methods, grid.procs, grid.message_bytes, title, timed=timed),
        "The choices at the points compared. The rules hold only what Open MPI and libcollwise can both express, and "
        "as few rows as keep within the tolerance.",
        f"Maps over process count and message size. {_words(result)}",
    )
    costs = {
        name.removesuffix(" chooses").removesuffix(" choose"): _slowdowns(result, picks)
        for name, picks in sources.items()
    }
    yield Picture.of(
        f"{stem}-costs",
        slowdown_map(costs, grid.procs, grid.message_bytes, f"{title}: what each source's choices cost"),
        "Slowdown of each source's choice against the fastest, in percent."
        + ("" if has_digits((len(grid.procs), len(grid.message_bytes))) else _NO_DIGITS),
    )
    yield Picture.of(
        f"{stem}-close",
        closeness_map(
            {"slowdown of the best other algorithm, %": close_points(result)}, grid.procs, grid.message_bytes, title
        ),
        "Where choices are close: by how many percent the best choice of another algorithm is slower than the fastest. "
        "Where that is little and the cell pale, an error of the times may change the choice, and costs little.",
    )
    largest = max(row.procs for row in result.rows)
    at_largest = [row for row in result.rows if row.procs == largest]
    yield Picture.of(
        f"{stem}-algorithms",
        algorithms_by_size(at_largest, f"{title}, P = {largest}"),
        f"Every algorithm {_cut(tuning.segment_bytes)}: simulated times"
        + (" (markers) and the model's (lines), and the ratio to the best of the same source." if result.has_model
           else ", and their ratio to the best."),
    )  # fmt: skip
    yield _rules_map(tuning, tuning.rules[collective], tuning.decided_sizes[collective], title, stem)


def _cut(segment_bytes: int) -> str:
    """A phrase for a caption: how messages are cut."""
    return f"with segments of {format_size(segment_bytes)}" if segment_bytes else "without segments"


def _slowdowns(result: ComparisonResult, picks: Sequence[Pick | None]) -> Slowdowns:
    """The slowdowns of picks, one for each row of the comparison, shape (P, m)."""
    values = [np.nan if pick is None or pick.missing else pick.slowdown for pick in picks]
    chosen = [pick is not None and not pick.missing for pick in picks]
    return Slowdowns(_on_grid(result, values, np.nan), _on_grid(result, chosen, False))


def _words(result: ComparisonResult) -> str:
    """The fastest algorithms in a sentence, for those who do not see the map."""
    names = [row.best.choice.algorithm for row in result.rows]
    shares = {name: names.count(name) / len(names) for name in dict.fromkeys(names)}
    ordered = sorted(shares.items(), key=lambda pair: -pair[1])
    return "Fastest: " + ", ".join(f"{name} at {share * 100:.0f} % of the points" for name, share in ordered) + "."


def _rules_map(
    tuning: Tuning, decisions: DecisionTable, sizes: Sequence[int], title: str, stem: str, more: str = ""
) -> Picture:
    least, largest = min(decisions.rules), largest_decided(tuning.platform, decisions)
    most = tuning.platform.max_procs(decisions.processes_per_node)
    procs: Sequence[int] = range(least, largest + 1)
    where = f"for every P from {least} to {largest}" if largest > least else f"at P = {least}"
    if decisions.wide_steps() and decisions.evidence is not None:
        procs = [one for one in decisions.evidence.procs if least <= one <= largest]
        where = f"at P = {', '.join(map(str, procs))}, and, without times for it, from each of them up to the next,"
    if decisions.wide_size_steps():
        more += ". Between sizes over 4 times apart no times decided: the choices for the smaller ones hold there"
    if largest < most:
        more += (
            f". No times decided for more than {largest} processes: the rules repeat their choices for {largest} there"
        )
    if decisions.between is not None:
        more += f". Between the sizes drawn they are slower than the best by {decisions.between}"
    return Picture.of(
        f"{stem}-map",
        _map(procs, decisions, sizes, f"{title}: what the rules choose"),
        f"What the rules choose {where} and every m, by {decisions.made_by}, among the algorithms that Open MPI and "
        f"libcollwise can both express{more}.",
    )


def _map(procs: Sequence[int], decisions: DecisionTable, sizes: Sequence[int], title: str) -> Figure:
    chosen = [[decisions.choose(p, m) for m in sizes] for p in procs]
    methods = list(dict.fromkeys(choice for row in chosen for choice in row))
    winners = np.array([[methods.index(choice) for choice in row] for row in chosen])
    return method_map({title: winners}, methods, procs, sizes)


def _measured_picture(
    tuning: Tuning, collective: str, result: ComparisonResult, measured: Measurement
) -> tuple[list[Picture], str]:
    """Measured times beside simulated ones at the P with the most of both, and how far all of them are apart."""
    both = {case: one for case, one in measured.timings.items() if case in result.sweep.timings}
    if not both:
        return [], f"{collective} was measured ({measured.maker}), but at none of the points that are compared here."
    simulated = {case: result.sweep.timings[case].seconds for case in both}
    errors = np.abs([simulated[case] / one.seconds - 1 for case, one in both.items()])
    line = (
        f"Measured with {measured.maker}: simulated times of {len(both)} cases differ from measured ones by "
        f"{np.median(errors) * 100:.1f} % in the median, {errors.max() * 100:.0f} % at most."
    )
    common = [case for case in both if case.segment_bytes in (0, tuning.segment_bytes)]
    if collective == "barrier" or not common:
        return [], line
    procs = max({case.procs for case in common}, key=[case.procs for case in common].count)
    here = [case for case in common if case.procs == procs]
    sizes = sorted({case.message_bytes for case in here})
    names = list(dict.fromkeys(case.algorithm for case in here))

    def series(of: dict[Case, float]) -> dict[str, Array]:
        at = {(case.algorithm, case.message_bytes): of[case] for case in here}
        return {name: np.array([at.get((name, size), np.nan) for size in sizes]) for name in names}

    widths = series({case: min(both[case].half_width_seconds, 0.9 * both[case].seconds) for case in here})
    title = f"{heading(tuning, collective)}, P = {procs}"
    picture = markers_and_lines(
        sizes, series({case: both[case].seconds for case in here}), series(simulated), title,
        "marker: measured\nline: simulated", errors={name: np.array([one, one]) for name, one in widths.items()},
    )  # fmt: skip
    caption = "Measured times with their intervals (markers) beside simulated ones (lines)."
    return [Picture.of(f"{tuning.platform.name}-{collective}-measured", picture, caption)], line


def engine_section(tuning: Tuning, collective: str, choices: EngineChoices, decisions: DecisionTable) -> Section:
    """The section of a collective that the schedule engine decides."""
    platform, grid, title = tuning.platform, choices.grid, heading(tuning, collective)
    stem = f"{platform.name}-{collective}"
    checked = [p for i, p in enumerate(grid.procs) if not np.isnan(choices.smpi_seconds[:, i]).all()]
    intro = _BY_ENGINE.format(
        least=format_size(grid.message_bytes[0]),
        overheads=_CHARGED if charges_overheads(platform.smpi_options()) else _FREE,
        segment=format_size(min(grid.segments)),
        procs=", ".join(map(str, checked)),
    )
    pictures = [
        Picture.of(
            f"{stem}-algorithms",
            algorithms_by_engine(choices, checked[-1], f"{title}, P = {checked[-1]}"),
            f"Every algorithm {_cut(min(grid.segments))}: the schedule engine's times (lines) and "
            "SMPI's (markers), and the ratio to the best of the same source.",
        ),
        _rules_map(
            tuning, decisions, grid.message_bytes, title, stem,
            "; between the process counts of the table the lower one holds",
        ),
    ]  # fmt: skip
    lines = [f"{line}." for line in (library_line(choices), agreement_line(choices)) if line]
    table = TextTable(engine_columns(choices), engine_rows(choices), 3, "All points", folded=True)
    return Section(title, [intro, *lines], [table], pictures, level=3)
