"""The report of `collwise check three-way`: sections of tables and figures, and the same numbers for scripts."""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from collwise.common.units import format_seconds, format_size
from collwise.models.registry import MODELS
from collwise.platforms import Platform
from collwise.studies.figures import three_way as draw
from collwise.studies.present.shown import Table
from collwise.studies.present.testbed import CHECK_COLUMNS, check_rows, check_words
from collwise.studies.reports.markdown import Texts, percent
from collwise.studies.reports.sections import Picture, Section, write_sections
from collwise.studies.reports.shared_nodes import shared_node_document, shared_node_sections
from collwise.validation.compare.scores import AllScores, Scores
from collwise.validation.three_way.disagreements import CONDITIONS, LIMIT, Disagreement, Pair
from collwise.validation.three_way.pipeline import Validation
from collwise.validation.three_way.verdicts import (
    ALL,
    ENGINES,
    LARGE,
    LARGE_BYTES,
    OWN,
    POINT,
    SIMULATED,
    WANTED_REPEATABILITY,
    errors_by,
    label,
    point,
    rank_agreement,
    verdicts,
    with_all,
)
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import choice_of

STEM = "validation"
TEXTS = Texts("validation.md.j2")


def write_validation(result: Validation, folder: Path) -> tuple[Path, Path]:
    """Writes validation.html and validation.md with its figures; returns both paths."""
    intro = TEXTS.line("intro", result=result, target=result.place, by_node=result.plan.main.by_node)
    sections = [
        *(limits(result), _errors(result), _ranks(result), _slowdowns(result), *shared_node_sections(result)),
        *(_repeated(result), _causes(result)),
        *(_others(result), _by_algorithm(result.main), _made(result)),
    ]
    return write_sections("Predicted, simulated, measured", intro, sections, folder, STEM)


def _shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows for figures, without models whose formulas are as printed in their papers."""
    printed = {name for name, kind in MODELS.items() if kind.printed}
    return rows[~rows.source.isin(printed)]


def _testbed_title(name: str) -> str:
    return name.replace("testbed-", "test bed ")


def limits(result: Validation) -> Section:
    """The promised limits of errors and slowdowns, the values found, and why values are beyond their limits."""
    found = list(verdicts(result.main, SIMULATED).itertuples())
    rows = [
        (
            *(item.collective, item.quantity, percent(item.found), percent(item.limit)),
            *("yes" if item.within_limit else "no", percent(item.distance, sign=True)),
            "" if item.within_limit else _why(result, item.collective),
        )
        for item in found
    ]
    columns = ("collective", "quantity of simulation", "found", "limit", "within limit", "distance", "causes found")
    bad = {(i, j) for i, item in enumerate(found) for j in range(len(columns)) if not item.within_limit}
    text = TEXTS.paragraphs("limits", place=_testbed_title(result.place), on_testbed=result.on_testbed)
    return Section("Limits", text, [Table("", columns, rows, 2, bad=bad)])


def _why(result: Validation, collective: str) -> str:
    """The causes of the collective's diagnosed disagreements, with their numbers."""
    chosen = [
        diagnosis
        for diagnosis in result.diagnoses
        if collective in (ALL, diagnosis.disagreement.case.collective)
        or (collective == LARGE and diagnosis.disagreement.case.message_bytes >= LARGE_BYTES)
    ]
    causes = collections.Counter(diagnosis.cause for diagnosis in chosen)
    return ", ".join(f"{cause} ({count})" for cause, count in causes.most_common())


def _errors(result: Validation) -> Section:
    rows = result.main.error_rows()
    sizes = errors_by(_of_engines(rows).sort_values("message_bytes", kind="stable"), ["message_bytes"])
    tables = [
        _error_table(errors_by(with_all(rows), ["group"]), "By source and collective"),
        _error_table(sizes.assign(message_bytes=sizes.message_bytes.map(format_size)), "By engine and size"),
    ]
    place = _testbed_title(result.place)
    pictures = [Picture.of("scatter", draw.scatter(result.main, place), "Simulated over measured times.")]
    for name, scores in result.main.items():
        caption = f"{name}: measured (markers, 95 % intervals) and simulated (lines)."
        pictures.append(Picture.of(f"times-{name}", draw.times(scores, f"{name} on {place}"), caption))
    return Section("Relative errors", TEXTS.paragraphs("errors"), tables, pictures)


def _of_engines(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows.source.isin(ENGINES)]


def _error_table(errors: pd.DataFrame, title: str = "") -> Table:
    cells = errors.copy()
    for name, signed in {"median": False, "mean": False, "bias": True, "ninetieth": False, "worst": True}.items():
        cells[name] = [percent(error, signed) for error in errors[name]]
    heads = {"group": "collective", "message_bytes": "size", "count": "cases", "ninetieth": "90 %"}
    columns = [heads.get(name, name) for name in cells.columns]
    return Table(title, columns, cells.to_numpy().tolist(), columns.index("cases"))


def _ranks(result: Validation) -> Section:
    ranks = rank_agreement(result.main)
    rows = [
        (*(rank.collective, rank.source, rank.points, f"{rank.tau:.2f}", f"{rank.tau_distinguishable:.2f}"),
         percent(rank.distinguishable))
        for rank in ranks.itertuples()
    ]  # fmt: skip
    columns = ("collective", "source", "points", "tau-b", "tau, distinguishable", "distinguishable pairs")
    title = f"Rank agreement on {_testbed_title(result.place)}, distinguishable pairs"
    caption = "Kendall's tau by collective and source, without formulas as printed."
    pictures = [Picture.of("ranks", draw.rank_map(_shown(ranks), title), caption)]
    return Section("Rank agreement", TEXTS.paragraphs("ranks"), [Table("", columns, rows, 2)], pictures)


def _picks(scores: AllScores) -> pd.DataFrame:
    """The rows of each source's picks, with labels in place of choices; points without a pick are left out."""
    rows = scores.pick_rows().dropna(subset="slowdown")
    return rows.assign(pick=rows.pick.map(label), best=rows.best.map(label))


def _slowdowns(result: Validation) -> Section:
    picks = _picks(result.main)
    rows = [
        _slowdown_cells(name, source, mine)
        for (name, source), mine in with_all(picks).groupby(["group", "source"], sort=False)
    ]
    columns = ("collective", "picked by", "points", "mean slowdown", "worst slowdown", "worst at", "best picked",
               "beyond intervals", "candidates")  # fmt: skip
    title = f"Slowdown of picks on {_testbed_title(result.place)}, in measured time"
    caption = "Slowdown of each source's pick, in percent; grey: not measured, or no formula."
    pictures = [Picture.of("slowdowns", draw.slowdown_maps(_shown(picks), title), caption)]
    return Section("Slowdown of picks", TEXTS.paragraphs("slowdowns", own=OWN), [Table("", columns, rows, 2)], pictures)


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
    return Section("Repeated measurement", (), [Table("", ("", ""), rows)])


def _share(part: int, whole: int) -> str:
    return f"{part} ({part / whole * 100:.0f} %)" if whole else "-"


def _causes(result: Validation) -> Section:
    looked_at = {id(diagnosis.disagreement) for diagnosis in result.diagnoses}
    rest = [disagreement for disagreement in result.disagreements if id(disagreement) not in looked_at]
    text = TEXTS.paragraphs(
        "causes",
        limit=LIMIT,
        points=sum(len(disagreement.message_bytes) for disagreement in result.disagreements),
        cases=sum(int(np.isfinite(scores.right.array).sum()) for scores in result.main.values()),
        groups=len(result.disagreements),
        diagnosed=len(result.diagnoses),
        on_testbed=result.on_testbed,
    )

    def gap_text(pair: Pair) -> str:
        return f"{math.expm1(pair.gap) * 100:.0f} %"

    causes = [
        (
            *_group_cells(diagnosis.disagreement),
            diagnosis.cause,
            "-" if diagnosis.unchanged is None else gap_text(diagnosis.unchanged),
            "; ".join(
                f"{name} {gap_text(pair)}"
                for name, pair in sorted(diagnosis.under.items(), key=lambda item: item[1].gap)[:2]
            ),
            "-" if diagnosis.counted is None else f"{diagnosis.counted.sent_again}, {diagnosis.counted.drops}",
        )
        for diagnosis in result.diagnoses
    ]
    group = ("collective", "algorithm", "sizes", "worst at", "error")
    tables = [
        Table("Causes", (*group, "cause", "gap again", "smallest gaps left", "sent again, dropped"), causes, 2),
        Table("Tests", ("cause", "change"), [(condition.cause, condition.change) for condition in CONDITIONS], 2),
        Table("Not diagnosed", group, [_group_cells(disagreement) for disagreement in rest], 2),
    ][0 if result.on_testbed else -1 :]
    return Section("Where simulation and measurement differ", text, tables)


def _group_cells(disagreement: Disagreement) -> tuple[object, ...]:
    case, sizes = disagreement.case, disagreement.message_bytes
    extent = " to ".join(dict.fromkeys(format_size(size) for size in (sizes[0], sizes[-1])))
    name = label(choice_of(case))
    return (
        case.collective,
        name,
        extent,
        format_size(case.message_bytes),
        percent(disagreement.worst.error, sign=True),
    )


def _others(result: Validation) -> Section:
    title = "Other process counts, rates and transport"
    if len(result.scores) < 2:
        return Section(title, ["None were measured."])
    rows = []
    for place, scores in result.scores.items():
        taus = rank_agreement(scores).set_index(["source", "collective"]).tau
        for source in ENGINES:
            for name, found in verdicts(scores, source).groupby("collective", sort=False).found:
                if name != LARGE:
                    tau = f"{taus.get((source, name), math.nan):.2f}"
                    rows.append((_testbed_title(place), source, name, *map(percent, found), tau))
    columns = ("where", "source", "collective", "median error", "mean slowdown", "worst slowdown", "tau-b")
    text = TEXTS.paragraphs("others", on_testbed=result.on_testbed)
    return Section(title, text, [Table("", columns, rows, 3)])


def _by_algorithm(scores: AllScores) -> Section:
    found = _of_engines(scores.error_rows())
    found = found.assign(algorithm=found.choice.map(label))
    return Section("Both engines, by algorithm", (), [_error_table(errors_by(found, ["collective", "algorithm"]))])


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
        (
            timing.case.collective,
            timing.case.algorithm,
            timing.case.procs,
            format_size(timing.case.message_bytes),
            timing.error,
        )
        for timing in result.failed
    ]
    tables = [
        Table("Time", ("stage", "time"), stages, 1),
        Table("Simulated platforms", ("platform", "link", "latency", "eager limit"), platforms, 1),
        Table("The main test bed: whether the network is the bottleneck", CHECK_COLUMNS, checked, 1),
        Table("Failed cases", ("collective", "algorithm", "P", "m", "error"), failed, 2),
    ]
    words = check_words(result.checked) if result.checked is not None else []
    return Section("How it was made", TEXTS.paragraphs("made", result=result, checked=words), tables)


def _record(scores: Scores, choice: Choice, procs: int, message_bytes: int) -> dict[str, Any]:
    """A measured case with what each source predicts, as plain data."""
    right, at = scores.right, (choice, procs, message_bytes)
    predicted = {name: times.seconds_of(*at) for name, times in scores.times.items()}
    return {
        "point": point(right, procs, message_bytes),
        "algorithm": label(choice),
        "seconds": right.seconds_of(*at),
        "half_width_seconds": right.half_width_of(*at),
        "predicted": {name: seconds for name, seconds in predicted.items() if not math.isnan(seconds)},
    }


def _records(every: Iterable[AllScores]) -> list[dict[str, Any]]:
    return [
        _record(scores, choice, *at)
        for place in every
        for scores in place.values()
        for at in scores.right.grid.points
        for choice in scores.right.grid.timed
        if not math.isnan(scores.right.seconds_of(choice, *at))
    ]


def document(result: Validation) -> dict[str, Any]:
    """The whole comparison as plain dictionaries and lists."""
    main, records = result.main, _records(result.scores.values())
    picks = _picks(main).rename(columns={"platform": "target"})
    said = picks[["source", "pick", "best", "slowdown", "certain", "candidates", "measured"]].to_dict("records")
    return {
        "maker": result.maker,
        "stages": [asdict(stage) for stage in result.stages],
        "verdicts": [verdict for source in ENGINES for verdict in verdicts(main, source).to_dict("records")],
        "errors": errors_by(with_all(main.error_rows()), ["group"])
        .rename(columns={"group": "collective"})
        .to_dict("records"),
        "ranks": rank_agreement(main).to_dict("records"),
        "slowdowns": [{"point": at, **item} for at, item in zip(picks[[*POINT]].to_dict("records"), said, strict=True)],
        "repeated": asdict(result.repeated),
        "checked": None if result.checked is None else result.checked.as_json(),
        "causes": [
            {
                "cause": diagnosis.cause,
                **_record(main[case.collective], choice_of(case), case.procs, case.message_bytes),
                "under": {name: asdict(pair) for name, pair in diagnosis.under.items()},
            }
            for diagnosis in result.diagnoses
            for case in [diagnosis.disagreement.case]
        ],
        "rows": [record for record in records if record["algorithm"]],
        "builtin": [
            {name: record[name] for name in ("point", "seconds", "half_width_seconds")}
            for record in records
            if not record["algorithm"]
        ],
        "failed": [asdict(timing) for timing in result.failed],
        **(shared_node_document(result) if result.plan.main.by_node else {}),
    }
