"""The sections of a report about one collective: choices, where they are close, costs, times, and measured ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
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
from collwise.studies.reports.choices import PlatformChoices
from collwise.studies.reports.comparison_table import (
    Columns,
    compared_places,
    percent,
    summary_line,
    table_columns,
    table_row,
)
from collwise.studies.reports.engine_table import (
    agreement_line,
    checked_times,
    engine_columns,
    engine_rows,
    library_line,
)
from collwise.studies.reports.sections import Picture, Section, TextTable
from collwise.validation.compare.scores import Picked, Scores
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.times.times import Times

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


def heading(choices: PlatformChoices, collective: str) -> str:
    """The title of a collective's section."""
    name = _TITLES.get(collective, collective.replace("_", " ").capitalize())
    return f"{name} on {choices.platform.title}"


def comparison_section(choices: PlatformChoices, collective: str, measured: Times | None) -> Section:
    """The section of a collective whose algorithms were compared with a model's and a library's choices."""
    scores, baseline, title = choices.compared[collective], choices.baseline, heading(choices, collective)
    gains = choices.gains(collective) if collective in choices.rules else []
    rules = {(one.i, one.j): one.rules for one in gains}
    if collective == "barrier":
        picture = picks_by_procs(scores, baseline, f"{title}, simulated")
        name = f"{choices.platform.name}-{collective}-picks"
        pictures = [Picture.of(name, picture, "Time of each source's choice over P.")]
    else:
        pictures = list(_pictures(choices, collective, rules))
    lines = [f"{summary_line(scores, baseline)}."]
    if collective in choices.by_engine:
        lines.append(f"{agreement_line(choices.by_engine[collective])}.")
    if measured is not None:
        found, line = _measured_picture(choices, collective, measured)
        pictures += found
        lines.append(line)
    columns = (*table_columns(scores, baseline), "rules (%)")
    shown = Columns.of(scores, baseline).heads
    rows, bad = [], set()
    for number, place in enumerate(compared_places(scores)):
        cells, said = table_row(scores, baseline, *place), rules.get(place)
        rows.append((*cells, "-" if said is None else f"{said.label} ({percent(said.slowdown)})"))
        lost = [float(scores.slowdown[name].values[place]) for name in shown]
        lost.append(np.nan if said is None else said.slowdown)
        bad |= {(number, column) for column, one in enumerate(lost, len(cells) - len(shown)) if one > _SHADED_FROM}
    table = TextTable(columns, rows, 3, f"All {len(rows)} points", bad=bad, folded=True)
    return Section(title, lines, [table], pictures, level=3)


def close_points(times: Times) -> Array:
    """The slowdown of the best other algorithm at every point, shape (P, m); nan where there is no other."""
    names, best = np.array([one.algorithm for one in times.choices]), times.best_seconds.values
    same = names[:, None, None] == names[times.best.values][None]
    other = np.min(np.where(same | np.isnan(times.array), np.inf, times.array), axis=0, initial=np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.isfinite(other) & (best > 0), other / best - 1, np.nan)


def largest_decided(platform: HostPlatform, decisions: DecisionTable) -> int:
    """The largest process count for which times decided, all of the platform for formulas; above it rules repeat it."""
    most = platform.max_procs(decisions.processes_per_node)
    if decisions.times is None or decisions.made_by == f"model {BY_PARTS}":
        return most
    return min(most, max(decisions.times.procs))


def _pictures(choices: PlatformChoices, collective: str, rules: Mapping[tuple[int, int], Picked]) -> Iterator[Picture]:
    """The figures over the message size; `rules` are the rules' picks by place."""
    scores, title = choices.compared[collective], heading(choices, collective)
    right, library = scores.right, choices.baseline.title
    grid, stem, maker = right.grid, f"{choices.platform.name}-{collective}", right.maker
    sources = {"the model chooses": next(iter(scores.times))} if scores.times else {}
    sources[f"{library} chooses untuned"] = library
    said = np.full(right.best.shape, NOBODY)
    lost = np.full(right.best.shape, np.nan)
    methods = list(dict.fromkeys([*grid.timed, *(one.choice for one in rules.values() if one.choice is not None)]))
    for place, one in rules.items():
        if one.choice is not None:
            said[place], lost[place] = methods.index(one.choice), one.slowdown
    timed = f"fastest by {maker}"
    chosen = {timed: right.best.values, **{text: scores.picks[name].values for text, name in sources.items()}}
    yield Picture.of(
        f"{stem}-choices",
        method_map({**chosen, "the rules choose": said}, methods, grid.procs, grid.message_bytes, title, timed=timed),
        "The choices at the points compared. The rules hold only what Open MPI and libcollwise can both express, and "
        "as few rows as keep within the tolerance.",
        f"Maps over process count and message size. {_words(scores)}",
    )
    costs = {
        text.removesuffix(" chooses"): Slowdowns(scores.slowdown[name].values, scores.picks[name].values != NOBODY)
        for text, name in sources.items()
    }
    costs["the rules"] = Slowdowns(lost, said != NOBODY)
    yield Picture.of(
        f"{stem}-costs",
        slowdown_map(costs, grid.procs, grid.message_bytes, f"{title}: what each source's choices cost"),
        "Slowdown of each source's choice against the fastest, in percent."
        + ("" if has_digits((len(grid.procs), len(grid.message_bytes))) else _NO_DIGITS),
    )
    yield Picture.of(
        f"{stem}-close",
        closeness_map(
            {"slowdown of the best other algorithm, %": close_points(right)}, grid.procs, grid.message_bytes, title
        ),
        "Where choices are close: by how many percent the best choice of another algorithm is slower than the fastest. "
        "Where that is little and the cell pale, an error of the times may change the choice, and costs little.",
    )
    largest = max(right.procs[i] for i, _ in compared_places(scores))
    yield Picture.of(
        f"{stem}-algorithms",
        algorithms_by_size(scores, largest, f"{title}, P = {largest}"),
        f"Every algorithm {_cut(choices.segments[0])}: simulated times"
        + (" (markers) and the model's (lines), and the ratio to the best of the same source." if scores.times
           else ", and their ratio to the best."),
    )  # fmt: skip
    yield _rules_map(choices, choices.rules[collective], choices.decided_sizes[collective], title, stem)


def _cut(segment_bytes: int) -> str:
    """A phrase for a caption: how messages are cut."""
    return f"with segments of {format_size(segment_bytes)}" if segment_bytes else "without segments"


def _words(scores: Scores) -> str:
    """The fastest algorithms in a sentence, for those who do not see the map."""
    names = [scores.right.grid.timed[index].algorithm for index in scores.right.best.values.ravel() if index != NOBODY]
    shares = {name: names.count(name) / len(names) for name in dict.fromkeys(names)}
    ordered = sorted(shares.items(), key=lambda pair: -pair[1])
    return "Fastest: " + ", ".join(f"{name} at {share * 100:.0f} % of the points" for name, share in ordered) + "."


def _rules_map(
    choices: PlatformChoices, decisions: DecisionTable, sizes: Sequence[int], title: str, stem: str, more: str = ""
) -> Picture:
    least, largest = min(decisions.rules), largest_decided(choices.platform, decisions)
    most = choices.platform.max_procs(decisions.processes_per_node)
    procs: Sequence[int] = range(least, largest + 1)
    where = f"for every P from {least} to {largest}" if largest > least else f"at P = {least}"
    if decisions.wide_steps() and decisions.times is not None:
        procs = [one for one in decisions.times.procs if least <= one <= largest]
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


def both_timed(right: Times, measured: Times) -> list[tuple[Case, int, int, int]]:
    """The cases that both have a time of, with their places in the arrays of the first, by P and m."""
    grid, other = right.grid, measured.of_grid(right.grid).seconds.values
    both = np.argwhere(np.isfinite(right.seconds.values) & np.isfinite(other)).tolist()
    return [
        (grid.case(grid.timed[a], grid.procs[i], grid.message_bytes[j]), a, i, j)
        for a, i, j in sorted(both, key=lambda place: (place[1], place[2], place[0]))
    ]


def _measured_picture(choices: PlatformChoices, collective: str, measured: Times) -> tuple[list[Picture], str]:
    """Measured times beside simulated ones at the P with the most of both, and how far all of them are apart."""
    right = choices.compared[collective].right
    both = both_timed(right, measured)
    if not both:
        return [], f"{collective} was measured ({measured.maker}), but at none of the points that are compared here."
    other = measured.of_grid(right.grid)
    simulated, seconds, widths = (one.values for one in (right.seconds, other.seconds, other.half_widths))
    errors = np.abs([simulated[place] / seconds[place] - 1 for _, *at in both for place in (tuple(at),)])
    line = (
        f"Measured with {measured.maker}: simulated times of {len(both)} cases differ from measured ones by "
        f"{np.median(errors) * 100:.1f} % in the median, {errors.max() * 100:.0f} % at most."
    )
    common = [one for one in both if one[0].segment_bytes in (0, choices.segments[0])]
    if collective == "barrier" or not common:
        return [], line
    procs = max({one[0].procs for one in common}, key=[one[0].procs for one in common].count)
    here = [one for one in common if one[0].procs == procs]
    sizes = sorted({case.message_bytes for case, *_ in here})
    names = list(dict.fromkeys(case.algorithm for case, *_ in here))

    def series(of: Array) -> dict[str, Array]:
        at = {(case.algorithm, case.message_bytes): of[a, i, j] for case, a, i, j in here}
        return {name: np.array([at.get((name, size), np.nan) for size in sizes]) for name in names}

    bars = series(np.minimum(widths, 0.9 * seconds))
    title = f"{heading(choices, collective)}, P = {procs}"
    picture = markers_and_lines(
        sizes, series(seconds), series(simulated), title,
        "marker: measured\nline: simulated", errors={name: np.array([one, one]) for name, one in bars.items()},
    )  # fmt: skip
    caption = "Measured times with their intervals (markers) beside simulated ones (lines)."
    return [Picture.of(f"{choices.platform.name}-{collective}-measured", picture, caption)], line


def engine_section(choices: PlatformChoices, collective: str) -> Section:
    """The section of a collective that the schedule engine decides."""
    platform, scores, title = choices.platform, choices.by_engine[collective], heading(choices, collective)
    played, smpi, decisions = scores.right, checked_times(scores), choices.rules[collective]
    stem, sizes = f"{platform.name}-{collective}", played.message_bytes
    checked = [p for i, p in enumerate(played.procs) if not np.isnan(smpi.array[:, i]).all()]
    intro = _BY_ENGINE.format(
        least=format_size(sizes[0]),
        overheads=_CHARGED if charges_overheads(platform.smpi_options()) else _FREE,
        segment=format_size(choices.segments[0]),
        procs=", ".join(map(str, checked)),
    )
    pictures = [
        Picture.of(
            f"{stem}-algorithms",
            algorithms_by_engine(played, smpi, checked[-1], f"{title}, P = {checked[-1]}"),
            f"Every algorithm {_cut(choices.segments[0])}: the schedule engine's times (lines) and "
            "SMPI's (markers), and the ratio to the best of the same source.",
        ),
        _rules_map(
            choices, decisions, sizes, title, stem, "; between the process counts of the table the lower one holds"
        ),
    ]
    lines = [f"{line}." for line in (library_line(scores), agreement_line(scores)) if line]
    table = TextTable(engine_columns(scores), engine_rows(scores, choices.baseline), 3, "All points", folded=True)
    return Section(title, [intro, *lines], [table], pictures, level=3)
