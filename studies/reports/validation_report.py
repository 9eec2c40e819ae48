"""The report of `collwise validate`: sections of tables and figures, and the same numbers for scripts."""

from __future__ import annotations

import collections
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from collwise.common.units import format_seconds, format_size
from collwise.models.registry import MODELS
from collwise.platforms import Platform
from collwise.studies.figures import three_way as draw
from collwise.studies.reports.markdown import percent
from collwise.studies.reports.sections import Picture, Section, TextTable, write_sections
from collwise.studies.reports.shared_nodes import shared_node_document, shared_node_sections
from collwise.studies.reports.testbed_check import COLUMNS, check_rows, check_words
from collwise.studies.reports.texts import Texts
from collwise.validation.compare.scores import Errors
from collwise.validation.three_way.conditions import CONDITIONS
from collwise.validation.three_way.disagreements import LIMIT, Disagreement, Pair
from collwise.validation.three_way.pipeline import Validation
from collwise.validation.three_way.scores import (
    ALL,
    LARGE,
    LARGE_BYTES,
    WANTED_REPEATABILITY,
    RankAgreement,
    errors_by,
    errors_of,
    rank_agreement,
    slowdowns_of_builtin,
    slowdowns_of_picks,
    verdicts,
)
from collwise.validation.three_way.table import SCHEDULED, SIMULATED, ours, own, records, sources, with_points

STEM = "validation"
TEXTS = Texts("validation.md.j2")
T = TypeVar("T")
OWN = "MPI's own choice"
_ERROR_COLUMNS = ("cases", "median", "mean", "bias", "90 %", "worst")


def write_validation(result: Validation, folder: Path) -> tuple[Path, Path]:
    """Writes validation.html and validation.md with its figures; returns both paths.

    Raises UsageError when the folder cannot be written.
    """
    main = result.main
    intro = TEXTS.line("intro", result=result, target=main.target.iloc[0], by_node=result.plan.main.by_node)
    sections = [
        *(limits(result), _errors(main), _ranks(main), _slowdowns(main), *shared_node_sections(result)),
        *(_repeated(result), _causes(result)),
        *(_others(result), _by_algorithm(main), _made(result)),
    ]
    return write_sections("Predicted, simulated, measured", intro, sections, folder, STEM)


def _shown(by_source: Mapping[str, T]) -> dict[str, T]:
    """The sources for figures: without the models whose formulas are as printed in their papers."""
    return {source: value for source, value in by_source.items() if source not in MODELS or not MODELS[source].printed}


def _testbed_title(name: str) -> str:
    return name.replace("testbed-", "test bed ")


def limits(result: Validation) -> Section:
    """The promised limits of errors and slowdowns, the values found, and the reasons why these are beyond them."""
    found = verdicts(result.main)
    rows = [
        (
            *(one.collective, one.quantity, percent(one.found), percent(one.limit)),
            *("yes" if one.within_limit else "no", percent(one.distance, sign=True)),
            "" if one.within_limit else _why(result, one.collective),
        )
        for one in found
    ]
    columns = ("collective", "quantity of simulation", "found", "limit", "within limit", "distance", "causes found")
    bad = {(i, j) for i, one in enumerate(found) for j in range(len(columns)) if not one.within_limit}
    tables = [TextTable(columns, rows, 2, bad=bad)]
    place = _testbed_title(result.main.target.iloc[0])
    return Section("Limits", TEXTS.paragraphs("limits", place=place, on_testbed=result.on_testbed), tables)


def _why(result: Validation, collective: str) -> str:
    """The causes of the collective's diagnosed disagreements, with their numbers."""
    chosen = [
        one
        for one in result.diagnoses
        if collective in (ALL, one.disagreement.worst.collective)
        or (collective == LARGE and one.disagreement.worst.message_bytes >= LARGE_BYTES)
    ]
    causes = collections.Counter(one.cause for one in chosen)
    return ", ".join(f"{cause} ({count})" for cause, count in causes.most_common())


def _errors(table: pd.DataFrame) -> Section:
    measured = ours(table)
    rows = [(source, name, *_error_cells(found)) for source, name, found in _errors_by_collective(measured)]
    ascending = measured.sort_values("message_bytes", kind="stable")
    by_size = [
        (source, format_size(size), *_error_cells(found))
        for source in _engines(table)
        for size, found in errors_by(ascending, source, "message_bytes").items()
    ]
    tables = [
        TextTable(("source", "collective", *_ERROR_COLUMNS), rows, 2, "By source and collective"),
        TextTable(("source", "size", *_ERROR_COLUMNS), by_size, 2, "By engine and size"),
    ]
    testbed = _testbed_title(table.target.iloc[0])
    pictures = [Picture.of("scatter", draw.scatter(table, testbed), "Simulated over measured times.")]
    for name in measured.collective.unique():
        title = f"{name} on {testbed}"
        caption = f"{name}: measured (markers, 95 % intervals) and simulated (lines)."
        pictures.append(Picture.of(f"times-{name}", draw.times(table, name, title), caption))
    return Section("Relative errors", TEXTS.paragraphs("errors"), tables, pictures)


def _error_cells(found: Errors) -> tuple[object, ...]:
    return (
        found.count,
        *(percent(found.median), percent(found.mean), percent(found.bias, True), percent(found.ninetieth)),
        percent(found.worst, True),
    )


def agreements(table: pd.DataFrame) -> dict[str, dict[str, RankAgreement]]:
    """Rank agreement by collective, all together first, and by source that predicts two algorithms at least."""
    found: dict[str, dict[str, RankAgreement]] = {}
    for name, rows in _by_collective(table):
        by_source = {source: rank_agreement(rows, source) for source in sources(table)}
        found[name] = {source: one for source, one in by_source.items() if one.points}
    return found


def _ranks(table: pd.DataFrame) -> Section:
    found = agreements(table)
    rows = [
        (name, source, one.points, f"{one.tau:.2f}", f"{one.tau_distinguishable:.2f}", percent(one.distinguishable))
        for name, by_source in found.items()
        for source, one in by_source.items()
    ]
    columns = ("collective", "source", "points", "tau-b", "tau, distinguishable", "distinguishable pairs")
    title = f"Rank agreement on {_testbed_title(table.target.iloc[0])}, distinguishable pairs"
    pictures = [
        Picture.of(
            "ranks",
            draw.rank_map({name: _shown(sources) for name, sources in found.items()}, title),
            "Kendall's tau by collective and source, without formulas as printed.",
        )
    ]
    return Section("Rank agreement", TEXTS.paragraphs("ranks"), [TextTable(columns, rows, 2)], pictures)


def all_slowdowns(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The slowdowns of each source's picks, the MPI library's own last; sources that pick nothing are left out."""
    found = {source: slowdowns_of_picks(ours(table), source) for source in sources(table)}
    found[OWN] = slowdowns_of_builtin(table)
    return {source: picks for source, picks in found.items() if len(picks)}


def _slowdowns(table: pd.DataFrame) -> Section:
    found = all_slowdowns(table)
    rows = [
        _slowdown_cells(name, source, mine)
        for name in (ALL, *table.collective.unique())
        for source, picks in found.items()
        if len(mine := picks if name == ALL else picks[picks.collective == name])
    ]
    columns = ("collective", "picked by", "points", "mean slowdown", "worst slowdown", "worst at", "best picked",
               "beyond intervals", "candidates")  # fmt: skip
    title = f"Slowdown of picks on {_testbed_title(table.target.iloc[0])}, in measured time"
    pictures = [
        Picture.of(
            "slowdowns",
            draw.slowdown_maps(_shown(found), title),
            "Slowdown of each source's pick, in percent; hatched: not measured, dotted: no formula.",
        )
    ]
    return Section("Slowdown of picks", TEXTS.paragraphs("slowdowns", own=OWN), [TextTable(columns, rows, 2)], pictures)


def _slowdown_cells(name: str, source: str, picks: pd.DataFrame) -> tuple[object, ...]:
    worst, points = picks.loc[picks.slowdown.idxmax()], len(picks)
    at = f"P = {worst.procs}, {format_size(worst.message_bytes)}"
    picked = f"{worst.collective} {worst.pick or 'its own'} for {worst.best}, {at}"
    return (
        *(name, source, points, percent(picks.slowdown.to_numpy().mean()), percent(worst.slowdown), picked),
        "-" if source == OWN else f"{(picks.pick == picks.best).sum()} of {points}",
        f"{picks.certain.sum()} of {points}",
        "-" if source == OWN else f"{picks.candidates.mean():.1f} of {picks.measured.mean():.1f}",
    )


def _repeated(result: Validation) -> Section:
    found = result.repeated
    rows = [
        ("cases measured again in a run of their own", found.cases),
        ("means that differ by at most sqrt(h1^2 + h2^2)", _share(found.within, found.cases)),
        ("intervals that overlap", _share(found.overlapping, found.cases)),
        ("second means in the first interval", _share(found.inside, found.cases)),
        ("wanted share", f"{WANTED_REPEATABILITY * 100:.0f} %"),
        ("median difference of the means", percent(found.median_difference)),
        ("worst difference", percent(found.worst_difference)),
        ("median half-width of an interval", percent(found.median_half_width)),
    ]
    return Section("Repeated measurement", (), [TextTable(("", ""), rows)])


def _share(part: int, whole: int) -> str:
    return f"{part} ({part / whole * 100:.0f} %)" if whole else "-"


def _causes(result: Validation) -> Section:
    looked_at = {id(one.disagreement) for one in result.diagnoses}
    rest = [one for one in result.disagreements if id(one) not in looked_at]
    text = TEXTS.paragraphs(
        "causes",
        limit=LIMIT,
        points=sum(len(one.rows) for one in result.disagreements),
        cases=len(ours(result.main)),
        groups=len(result.disagreements),
        diagnosed=len(result.diagnoses),
        on_testbed=result.on_testbed,
    )

    def gap_text(pair: Pair) -> str:
        return f"{math.expm1(pair.gap) * 100:.0f} %"

    def by_gap(item: tuple[str, Pair]) -> float:
        return item[1].gap

    causes = [
        (
            *_group_cells(one.disagreement),
            one.cause,
            "-" if one.unchanged is None else gap_text(one.unchanged),
            "; ".join(f"{name} {gap_text(pair)}" for name, pair in sorted(one.under.items(), key=by_gap)[:2]),
            "-" if one.counted is None else f"{one.counted.sent_again}, {one.counted.drops}",
        )
        for one in result.diagnoses
    ]
    group = ("collective", "algorithm", "sizes", "worst at", "error")
    tables = [
        TextTable((*group, "cause", "gap again", "smallest gaps left", "sent again, dropped"), causes, 2, "Causes"),
        TextTable(("cause", "change"), [(one.cause, one.change) for one in CONDITIONS], 2, "Tests"),
        TextTable(group, [_group_cells(one) for one in rest], 2, "Not diagnosed"),
    ][0 if result.on_testbed else -1 :]
    return Section("Where simulation and measurement differ", text, tables)


def _group_cells(one: Disagreement) -> tuple[object, ...]:
    worst = one.worst
    extent = " to ".join(dict.fromkeys(format_size(one.rows.message_bytes.iloc[end]) for end in (0, -1)))
    error = percent(worst[SIMULATED] / worst.seconds - 1, sign=True)
    return (worst.collective, worst.algorithm, extent, format_size(worst.message_bytes), error)


def _others(result: Validation) -> Section:
    title, tables = "Other process counts, rates and transport", dict(iter(result.table.groupby("target", sort=False)))
    if len(tables) < 2:
        return Section(title, ["None were measured."])
    rows = []
    for testbed, table in tables.items():
        for source in _engines(table):
            found = verdicts(table, source)
            for name, here in _by_collective(table):
                mine = [percent(one.found) for one in found if one.collective == name]
                if mine:
                    tau = rank_agreement(here, source).tau
                    rows.append((_testbed_title(testbed), source, name, *mine, f"{tau:.2f}"))
    columns = ("where", "source", "collective", "median error", "mean slowdown", "worst slowdown", "tau-b")
    text = TEXTS.paragraphs("others", on_testbed=result.on_testbed)
    return Section(title, text, [TextTable(columns, rows, 3)])


def _engines(table: pd.DataFrame) -> list[str]:
    """The sources that are engines."""
    return [source for source in (SIMULATED, SCHEDULED) if source in sources(table)]


def _by_collective(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The rows of our algorithms, all together first."""
    rows = ours(table)
    return [(ALL, rows), *rows.groupby("collective", sort=False)]


def _errors_by_collective(table: pd.DataFrame) -> list[tuple[str, str, Errors]]:
    return [
        (source, name, found)
        for source in sources(table)
        for name, rows in _by_collective(table)
        if (found := errors_of(rows, source)) is not None
    ]


def _by_algorithm(table: pd.DataFrame) -> Section:
    rows = [
        (source, *key, *_error_cells(errors))
        for source in _engines(table)
        for key, errors in errors_by(ours(table), source, ["collective", "algorithm"]).items()
    ]
    columns = ("source", "collective", "algorithm", *_ERROR_COLUMNS)
    return Section("Both engines, by algorithm", (), [TextTable(columns, rows, 3)])


def _made(result: Validation) -> Section:
    stages = [(stage.name, format_seconds(stage.seconds)) for stage in result.stages]
    stages.append(("all", format_seconds(sum(stage.seconds for stage in result.stages))))
    platforms = [
        (
            _testbed_title(name),
            f"{platform.link_bytes_per_second / 1e6:.4g} MB/s",
            format_seconds(2 * platform.link_latency_seconds),
            f"{platform.calibration.eager_limit_bytes} B",
        )
        for name, platform in result.platforms.items()
        if isinstance(platform, Platform)
    ]
    checked = check_rows(result.checked) if result.checked is not None else []
    failed = [
        (one.case.collective, one.case.algorithm, one.case.procs, format_size(one.case.message_bytes), one.error)
        for one in result.failed
    ]
    tables = [
        TextTable(("stage", "time"), stages, 1, "Time"),
        TextTable(("platform", "link", "latency", "eager limit"), platforms, 1, "Simulated platforms"),
        TextTable(COLUMNS, checked, 1, "The main test bed: whether the network is the bottleneck"),
        TextTable(("collective", "algorithm", "P", "m", "error"), failed, 2, "Failed cases"),
    ]
    words = check_words(result.checked) if result.checked is not None else []
    return Section("How it was made", TEXTS.paragraphs("made", result=result, checked=words), tables)


def document(result: Validation) -> dict[str, Any]:
    """The whole comparison as plain dictionaries and lists."""
    main = result.main
    return {
        "maker": result.maker,
        "stages": [asdict(stage) for stage in result.stages],
        "verdicts": [
            {"source": source} | asdict(one) | {"within_limit": one.within_limit, "distance": one.distance}
            for source in _engines(main)
            for one in verdicts(main, source)
        ],
        "errors": [
            {"source": source, "collective": name, **asdict(found)}
            for source, name, found in _errors_by_collective(main)
        ],
        "ranks": [
            {"collective": name, "source": source, **asdict(one)}
            for name, by_source in agreements(main).items()
            for source, one in by_source.items()
        ],
        "slowdowns": [
            {"source": source, **one} for source, picks in all_slowdowns(main).items() for one in with_points(picks)
        ],
        "repeated": asdict(result.repeated),
        "checked": None if result.checked is None else result.checked.as_json(),
        "causes": [
            {
                "cause": one.cause,
                **records(one.disagreement.worst.to_frame().T)[0],
                "under": {k: asdict(v) for k, v in one.under.items()},
            }
            for one in result.diagnoses
        ],
        "rows": records(ours(result.table)),
        "builtin": [
            {name: row[name] for name in ("point", "seconds", "half_width_seconds")}
            for row in records(own(result.table))
        ],
        "failed": [asdict(one) for one in result.failed],
        **(shared_node_document(result) if result.plan.main.by_node else {}),
    }
