"""The sections of a report about one collective: choices, where they are close, costs, times, and measured ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from collwise.models.piecewise import Array
from collwise.models.registry import BY_PARTS
from collwise.models.switch_points import NOBODY
from collwise.platforms import HostPlatform
from collwise.platforms.smpi import charges_overheads
from collwise.studies.figures.cells import has_digits
from collwise.studies.figures.maps import Slowdowns, closeness_map, method_map, slowdown_map
from collwise.studies.figures.picks import algorithms_by_engine, algorithms_by_size, markers_and_lines, picks_by_procs
from collwise.studies.reports.choices import PlatformChoices
from collwise.studies.reports.comparison_table import (
    compared_places,
    heads,
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
from collwise.studies.reports.texts import Texts
from collwise.validation.compare.scores import Picked
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.times.times import Times

CLOSE = 0.05
"""A choice is close where the best other algorithm is slower by less than this share."""

_TITLES = {"bcast": "Broadcast"}
_SHADED_FROM = 0.1
TEXTS = Texts("report.md.j2")


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
        pictures = [_picture(choices, collective, "picks", picks_by_procs(scores, baseline, f"{title}, simulated"))]
    else:
        pictures = list(_pictures(choices, collective, rules))
    lines = [f"{summary_line(scores, baseline)}."]
    if collective in choices.by_engine:
        lines.append(f"{agreement_line(choices.by_engine[collective])}.")
    if measured is not None:
        line, found = _measured(choices, collective, measured)
        lines.append(line)
        pictures += found
    columns = (*table_columns(scores, baseline), "rules (%)")
    shown = heads(scores, baseline)
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


def errors_by_measured(right: Times, measured: Times) -> Array:
    """The relative errors of times by measured ones, in the shape of the former; nan where one of both has no time."""
    return right.seconds.values / measured.of_grid(right.grid).seconds.values - 1


def _picture(
    choices: PlatformChoices, collective: str, name: str, figure: Figure, alt: str = "", **said: Any
) -> Picture:
    """A picture whose caption is the template's block of its name."""
    return Picture.of(f"{choices.platform.name}-{collective}-{name}", figure, TEXTS.line(name, **said), alt)


def _pictures(choices: PlatformChoices, collective: str, rules: Mapping[tuple[int, int], Picked]) -> Iterator[Picture]:
    """The figures over the message size; `rules` are the rules' picks by place."""
    scores, title = choices.compared[collective], heading(choices, collective)
    right, library = scores.right, choices.baseline.title
    procs, sizes = right.procs, right.message_bytes
    sources = {"the model chooses": next(iter(scores.times))} if scores.times else {}
    sources[f"{library} chooses untuned"] = library
    said = np.full(right.best.shape, NOBODY)
    lost = np.full(right.best.shape, np.nan)
    methods = list(dict.fromkeys([*right.grid.timed, *(one.choice for one in rules.values() if one.choice)]))
    for place, one in rules.items():
        if one.choice is not None:
            said[place], lost[place] = methods.index(one.choice), one.slowdown
    timed = f"fastest by {right.maker}"
    chosen = {timed: right.best.values, **{text: scores.picks[name].values for text, name in sources.items()}}
    figure = method_map({**chosen, "the rules choose": said}, methods, procs, sizes, title, timed=timed)
    names = [right.grid.timed[index].algorithm for index in right.best.values.ravel() if index != NOBODY]
    shares = [(name, count / len(names)) for name, count in Counter(names).most_common()]
    yield _picture(choices, collective, "choices", figure, TEXTS.line("fastest", shares=shares))
    costs = {
        text.removesuffix(" chooses"): Slowdowns(scores.slowdown[name].values, scores.picks[name].values != NOBODY)
        for text, name in sources.items()
    }
    costs["the rules"] = Slowdowns(lost, said != NOBODY)
    figure = slowdown_map(costs, procs, sizes, f"{title}: what each source's choices cost")
    yield _picture(choices, collective, "costs", figure, digits=has_digits((len(procs), len(sizes))))
    close = {"slowdown of the best other algorithm, %": close_points(right)}
    yield _picture(choices, collective, "close", closeness_map(close, procs, sizes, title))
    largest = max(procs[i] for i, _ in compared_places(scores))
    figure = algorithms_by_size(scores, largest, f"{title}, P = {largest}")
    segment, model = choices.segments[0], bool(scores.times)
    yield _picture(choices, collective, "algorithms", figure, segment=segment, model=model, by_engine=False)
    yield _rules_map(choices, collective, choices.decided_sizes[collective])


def _rules_map(choices: PlatformChoices, collective: str, sizes: Sequence[int], by_engine: bool = False) -> Picture:
    rules, title = choices.rules[collective], f"{heading(choices, collective)}: what the rules choose"
    least, largest = min(rules.rules), largest_decided(choices.platform, rules)
    timed = [one for one in rules.times.procs if least <= one <= largest] if rules.wide_steps() and rules.times else []
    shown = timed or range(least, largest + 1)
    chosen = [[rules.choose(p, m) for m in sizes] for p in shown]
    methods = list(dict.fromkeys(choice for row in chosen for choice in row))
    winners = np.array([[methods.index(choice) for choice in row] for row in chosen])
    return _picture(
        choices,
        collective,
        "map",
        method_map({title: winners}, methods, shown, sizes),
        procs=timed,
        least=least,
        largest=largest,
        most=choices.platform.max_procs(rules.processes_per_node),
        rules=rules,
        by_engine=by_engine,
    )


def _measured(choices: PlatformChoices, collective: str, measured: Times) -> tuple[str, list[Picture]]:
    """How far simulated and measured times are apart, and both in a picture at the P with the most of them."""
    right = choices.compared[collective].right
    other, errors = measured.of_grid(right.grid), np.abs(errors_by_measured(right, measured))
    known = np.isfinite(errors)
    median, worst = (np.median(errors[known]), errors[known].max()) if known.any() else (np.nan, np.nan)
    line = TEXTS.line(
        "measured", collective=collective, maker=measured.maker, cases=known.sum(), median=median, worst=worst
    )
    names = right.grid.names
    places = [right.index_of(right.grid.at_common_segment(name)) for name in names]
    common = known[places]
    if collective == "barrier" or not common.any():
        return line, []
    at = int(common.sum(axis=(0, 2)).argmax())
    sizes, drawn = np.flatnonzero(common[:, at].any(axis=0)), np.flatnonzero(common[:, at].any(axis=1))

    def series(values: Array) -> dict[str, Array]:
        """Each algorithm's values at the sizes where both times of any are known, nan where its own are not."""
        both = np.where(known, values, np.nan)[places][:, at, sizes]
        return {names[number]: both[number] for number in drawn}

    seconds, title = other.seconds.values, f"{heading(choices, collective)}, P = {right.procs[at]}"
    bars = series(np.minimum(other.half_widths.values, 0.9 * seconds))
    figure = markers_and_lines(
        [right.message_bytes[j] for j in sizes], series(seconds), series(right.seconds.values), title,
        "marker: measured\nline: simulated", errors={name: np.array([one, one]) for name, one in bars.items()},
    )  # fmt: skip
    # Of the same name as the sentence, but with a caption of its own.
    return line, [Picture.of(f"{choices.platform.name}-{collective}-measured", figure, TEXTS.line("measured_times"))]


def engine_section(choices: PlatformChoices, collective: str) -> Section:
    """The section of a collective that the schedule engine decides."""
    scores, segment = choices.by_engine[collective], choices.segments[0]
    played, smpi = scores.right, checked_times(scores)
    checked = [p for i, p in enumerate(played.procs) if not np.isnan(smpi.array[:, i]).all()]
    intro = TEXTS.line(
        "by_engine",
        least=played.message_bytes[0],
        charged=charges_overheads(choices.platform.smpi_options()),
        segment=segment,
        procs=checked,
    )
    figure = algorithms_by_engine(played, smpi, checked[-1], f"{heading(choices, collective)}, P = {checked[-1]}")
    pictures = [
        _picture(choices, collective, "algorithms", figure, segment=segment, model=False, by_engine=True),
        _rules_map(choices, collective, played.message_bytes, by_engine=True),
    ]
    lines = [f"{line}." for line in (library_line(scores), agreement_line(scores)) if line]
    table = TextTable(engine_columns(scores), engine_rows(scores, choices.baseline), 3, "All points", folded=True)
    return Section(heading(choices, collective), [intro, *lines], [table], pictures, level=3)
