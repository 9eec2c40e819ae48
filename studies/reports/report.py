"""The report of `demo` and `report`: what to do first, and why, on one HTML page, and the rules beside it."""

from __future__ import annotations

import platform as python_platform
import shlex
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import geometric_mean

import numpy as np

from collwise.common.errors import UsageError
from collwise.common.files import writable_folder, write_text
from collwise.common.program import program_name
from collwise.common.units import format_seconds, format_size
from collwise.models.hockney import Hockney
from collwise.models.parameters import ModelParameters, PathParameters
from collwise.models.registry import BY_PARTS, CRITICAL_PATH
from collwise.platforms.description import Description
from collwise.platforms.smpi import charges_overheads
from collwise.simulator.store import Store
from collwise.studies.figures.maps import collective_maps
from collwise.studies.reports.choices import Gained, PlatformChoices
from collwise.studies.reports.collective_sections import (
    CLOSE,
    close_points,
    comparison_section,
    engine_section,
    errors_by_measured,
    largest_decided,
)
from collwise.studies.reports.comparison_table import compared_places
from collwise.studies.reports.markdown import percent
from collwise.studies.reports.parameters import fitted_pairs
from collwise.studies.reports.sections import Notes, Picture, Section, Step, TextTable, write_sections
from collwise.studies.reports.texts import Texts
from collwise.validation.compare.scores import AllScores
from collwise.validation.libraries.collwise_table import collwise_rules
from collwise.validation.libraries.formats import how_to_use, ways_to_use_openmpi_rules
from collwise.validation.libraries.openmpi_rules import openmpi_rules
from collwise.validation.libraries.openmpi_untuned import ELEMENT_BYTES
from collwise.validation.libraries.sayable import for_consumer
from collwise.validation.select.consumers import COLLWISE, OPENMPI, RULES_VERSIONS, consumers_of, openmpi_consumer
from collwise.validation.select.decisions import (
    DecisionTable,
    all_at_once_text,
    decisions_text,
    wide_steps_texts,
)
from collwise.validation.times.measured import measured_platform, stored_times
from collwise.validation.times.times import State, Times

TEXTS = Texts("report.md.j2")
_TABLE, _DECISIONS = "collwise.table", "decisions.json"
"""The ends of the names of libcollwise's table, and of decisions for commands that take `--decisions`."""
_MOST_SUBSTITUTIONS = 12
_SHORTEST = 8
"""Bytes of the shortest messages that are worth a decision: one number."""
_GAIN_COLUMNS = (
    "collective", "points", "gain, mean", "gain, largest", "slower than the default at", "close choices at",
    "largest gain at",
)  # fmt: skip


def write_rules(every: Sequence[PlatformChoices], folder: Path) -> None:
    """Writes the rules files into a folder. Raises UsageError when it cannot be written."""
    writable_folder(folder)
    for choices in every:
        for one in _rules_versions(choices):
            said, _ = for_consumer(_with_rules(choices, one), openmpi_consumer(one))
            write_text(rules_path(folder, choices, one), openmpi_rules(said, one))
        tables = list(choices.decisions.values())
        write_text(_path(folder, choices, _TABLE), collwise_rules(tables))
        write_text(_path(folder, choices, _DECISIONS), decisions_text(tables))


def _rules_versions(choices: PlatformChoices) -> list[str]:
    """The versions of Open MPI that there are rules for."""
    return [one for one in RULES_VERSIONS if _with_rules(choices, one)]


def _with_rules(choices: PlatformChoices, openmpi_version: str) -> list[DecisionTable]:
    """The tables of collectives that this version of Open MPI has rules for."""
    consumer = f"openmpi-{openmpi_version}"
    return [table for name, table in choices.decisions.items() if consumer in consumers_of(name)]


def write_report(
    every: Sequence[PlatformChoices], folder: Path, sections: Sequence[Sequence[Section]], command: str = ""
) -> Path:
    """Writes report.html, report.md and figures (SVG) beside the rules files; returns the HTML page's path.

    `sections` are those of each choices, `command` the one that made the report. Raises UsageError when the folder
    cannot be written.
    """
    first = next(iter(every[0].compared.values()))
    intro = TEXTS.line("intro", engine=first.right.maker, library=every[0].baseline.title)
    parts = [section for some in sections for section in some]
    parts.append(_made(every, command))
    page, _ = write_sections("Which collective algorithm to use", intro, parts, folder, "report")
    return page


def rules_path(folder: Path, choices: PlatformChoices, openmpi_version: str) -> Path:
    """The path of a platform's rules file in a report's folder."""
    return _path(folder, choices, f"openmpi-{openmpi_version}.rules")


def _path(folder: Path, choices: PlatformChoices, ending: str) -> Path:
    return folder / f"{choices.platform.name}-{ending}"


def measurements(store: Store, choices: PlatformChoices) -> dict[str, Times]:
    """The measured times that the store has of the compared collectives on their platform, by collective."""
    found = {}
    for name in choices.compared:
        try:
            where = measured_platform(store, choices.platform.name)
            found[name] = stored_times(store, "measured", where, name, choices.processes_per_node)
        except UsageError:
            continue  # nothing of it is measured
    return found


def sections_of(choices: PlatformChoices, folder: Path, measured: Mapping[str, Times] | None = None) -> list[Section]:
    """The sections of a platform, with all figures drawn, and with the measured times by collective.

    `folder` is that of the rules.
    """
    measured = measured or {}
    sections = [_first(choices, folder, measured), Section(f"Collectives on {choices.platform.title}")]
    sections += [
        comparison_section(choices, collective, measured.get(collective))
        for collective, scores in choices.compared.items()
        if compared_places(scores)
    ]
    sections += [engine_section(choices, collective) for collective in choices.decided_by_engine]
    return sections if choices.model is None else [*sections, _accuracy(choices)]


# --- What to do first -------------------------------------------------------------------------------------------------


def _first(choices: PlatformChoices, folder: Path, measured: Mapping[str, Times]) -> Section:
    """The rules, how they are installed, what they gain, and how sure that is."""
    gains = {name: choices.gains(name) for name in choices.decisions}
    rows = [_gain_row(choices, name, found) for name, found in gains.items() if found]
    bad = {(i, 4) for i, row in enumerate(rows) if not row[4].startswith("0 of")}
    known = {name: [one.ratio for one in found if np.isfinite(one.ratio)] for name, found in gains.items()}
    ratios = [ratio for found in known.values() for ratio in found]
    library, few = choices.baseline.title, [one for one in choices.substituted if one.too_few]
    gained = TEXTS.line("gained", library=library, points=len(ratios), ratio=geometric_mean(ratios) if ratios else None)
    lost = [name for name, found in known.items() if found and geometric_mean(found) < 0.99]
    return Section(
        f"What to do first on {choices.platform.title}",
        steps=_steps(choices, folder, measured),
        after=[gained],
        tables=[TextTable(_GAIN_COLUMNS, rows, 1, f"What the rules gain over {library}", bad=bad)],
        notes=[
            Notes("What the rules do not cover", _limits(choices, lost, bool(few))),
            Notes("How gains are counted", TEXTS.paragraphs("counted", ratios=ratios, close=CLOSE), folded=True),
            Notes(
                "Where the rules for Open MPI differ from the table of libcollwise",
                TEXTS.paragraphs("few", few=few, element_bytes=ELEMENT_BYTES, most_listed=_MOST_SUBSTITUTIONS),
                folded=True,
            ),
            Notes("Figures of this description that are estimates, not measured", _guessed(choices), folded=True),
        ],
    )


def _steps(choices: PlatformChoices, folder: Path, measured: Mapping[str, Times]) -> list[Step]:
    """The steps by which a cluster's owner puts the rules to use, in order."""
    rules = {one: rules_path(folder, choices, one) for one in _rules_versions(choices)}
    table = _path(folder, choices, _TABLE)
    without = [name for name in choices.decisions if not any(one.startswith(OPENMPI) for one in consumers_of(name))]
    files = {path.name: f"rules for Open MPI {one}" for one, path in rules.items()}
    files[table.name] = TEXTS.line("table", versions=[*rules], without=without)
    ways = ways_to_use_openmpi_rules(next(iter(rules.values()))) if rules else {}
    ways["With libcollwise, which runs our algorithms"] = how_to_use(COLLWISE, table)
    how = {"In an allocation under Slurm": _measuring(choices, _path(folder, choices, _DECISIONS))}
    errors = [abs(errors_by_measured(choices.compared[name].right, found)) for name, found in measured.items()]
    known = np.concatenate([one[np.isfinite(one)] for one in errors]) if errors else np.empty(0)
    median = np.median(known) if known.size else np.nan
    return [
        Step(TEXTS.line("take"), files),
        Step(TEXTS.line("use", per_node=choices.processes_per_node, versions=[*rules]), commands=ways),
        Step(
            TEXTS.line("measure", cases=known.size, measured=[*measured], median=median), commands=how if rules else {}
        ),
    ]


def _measuring(choices: PlatformChoices, decisions: Path) -> str:
    """The command that measures the gain on two nodes, or more if the rules were not decided for as few."""
    per_node = choices.processes_per_node
    decided = sorted({procs for table in choices.decisions.values() for procs in table.decided_procs})
    whole = [procs for procs in decided if procs % per_node == 0 and procs >= 2 * per_node]
    procs = (whole or decided[-1:])[0]
    place = f"--nodes {-(-procs // per_node)} --ntasks-per-node {per_node}"
    how = f'--launcher srun --ppn {per_node} --mpirun-args "--cpu-bind=cores"'
    what = f"gain {shlex.quote(str(decisions.resolve()))} --procs {procs} --no-check"
    return f"salloc --exclusive {place} {program_name()} program {what} {how}"


def _limits(choices: PlatformChoices, lost: Sequence[str], few: bool) -> list[str]:
    """Notes on what the rules do not decide, and on what the times behind them support less.

    `lost` are collectives of which the rules are slower than the untuned library; `few` says whether the rules for
    Open MPI differ since messages may have few elements.
    """
    short: dict[int, list[str]] = {}
    for name in choices.decisions:
        if name != "barrier" and (least := min(choices.decided_sizes[name])) > _SHORTEST:
            short.setdefault(least, []).append(name)
    most = choices.platform.max_procs(choices.processes_per_node)
    decided = (largest_decided(choices.platform, one) for one in choices.decisions.values())
    tables = list(choices.rules.values())
    return TEXTS.paragraphs(
        "limits",
        short=short,
        shortest=_SHORTEST,
        charged=charges_overheads(choices.platform.smpi_options()),
        largest=min(decided, default=most),
        most=most,
        doubtful=[*filter(None, (*wide_steps_texts(tables, are_left=True), all_at_once_text(tables)))],
        lost=lost,
        library=choices.baseline.title,
        per_node=choices.processes_per_node,
        versions=_rules_versions(choices),
        few=few,
        no_barrier="barrier" in choices.compared and "barrier" not in choices.decisions,
    )


def few_elements_line(choices: PlatformChoices) -> str:
    """A line for the terminal on what Open MPI's rules say otherwise for messages of few elements; empty if nothing."""
    few = [one for one in choices.substituted if one.too_few]
    return TEXTS.line("few_in_a_line", few=few, element_bytes=ELEMENT_BYTES)


def _gain_row(choices: PlatformChoices, name: str, gains: Sequence[Gained]) -> tuple[str, ...]:
    known = [one for one in gains if np.isfinite(one.ratio)]
    close = "-"
    scores = choices.compared.get(name) or choices.by_engine[name]
    if name in choices.compared:
        points = close_points(scores.right)
        others = np.array([points[one.i, one.j] for one in known])
        close = f"{int((others < CLOSE).sum())} of {int(np.isfinite(others).sum())}"
    if not known:
        return (name, str(len(gains)), "-", "-", "0 of 0", close, "-")
    largest = max(known, key=lambda one: one.ratio)
    slower = sum(one.ratio < 0.99 for one in known)
    where = (
        f"P = {scores.right.procs[largest.i]}, {format_size(scores.right.message_bytes[largest.j])}: "
        + " for ".join(one.choice.label for one in (largest.rules, largest.default) if one.choice is not None)
    )
    return (
        *(name, str(len(known)), f"x {geometric_mean(one.ratio for one in known):.2f}", f"x {largest.ratio:.2f}"),
        *(f"{slower} of {len(known)}", close, where if largest.ratio > 1.01 else "-"),
    )


def _guessed(choices: PlatformChoices) -> list[str]:
    """The figures of the description that were not measured, as its sources say."""
    if not isinstance(choices.platform, Description):
        return []
    return [one.what for one in choices.platform.sources if "estimated" in one.what or "not measured" in one.what]


# --- How right, and how made ------------------------------------------------------------------------------------------


def _accuracy(choices: PlatformChoices) -> Section:
    """The errors of the model against simulated times, by collective and size."""
    scores = AllScores(choices.compared.values())
    by_size = scores.table(["collective", "message_bytes", "source"])
    errors = {(one.collective, one.message_bytes): one.mean_error for one in by_size.itertuples() if one.cases}
    rows = [
        (
            *(one.collective, str(one.cases), f"{one.mean_error:.1%}", f"{one.worst_error:.1%}"),
            *(percent(one.mean_slowdown), percent(one.worst_slowdown)),
        )
        for one in scores.table().itertuples()
        if one.cases
    ]
    columns = ("collective", "predictions", "mean error", "worst error", "mean slowdown of choices", "worst slowdown")
    title = f"Errors of the model on {choices.platform.title}"
    pictures = []
    if errors:
        picture = collective_maps({"mean error of all algorithms, %": errors}, title, "mean error (%)")
        pictures.append(Picture.of(f"{choices.platform.name}-accuracy", picture, TEXTS.line("errors")))
    return Section(
        f"Model accuracy on {choices.platform.title}",
        [TEXTS.line("accuracy")],
        [TextTable(columns, rows)],
        pictures,
    )


def _made(every: Sequence[PlatformChoices], command: str) -> Section:
    """Versions, options, the command, and the fitted parameters."""
    rows = [
        ("collwise", version("collwise")),
        ("Python", python_platform.python_version()),
        ("untuned library", every[0].baseline.title),
    ]
    tables = []
    for choices in every:
        grid = next(iter(choices.compared.values())).right.grid
        facts = [
            ("nodes", len(choices.platform.hosts)),
            ("processes per node", choices.processes_per_node),
            ("process counts compared", ", ".join(map(str, grid.procs))),
            ("segment sizes", ", ".join(map(format_size, choices.segments))),
            *([] if choices.parameters is None else _facts_of(choices.parameters)),
            *((f"simulation of {name}", _made_by(choices, name)) for name in choices.compared),
        ]
        columns = ("collective", "algorithm", "part", "alpha (s)", "beta (s/byte)", "mean error (%)", "worst (%)")
        title = f"Fitted parameters and residuals on {choices.platform.title}"
        tables.append(TextTable(("", choices.platform.title), facts, 2))
        tables.append(TextTable(columns, _fit_rows(choices), 3, title, folded=True))
    return Section(
        "How it was made", ["The command and the versions:"], [TextTable(("", ""), rows, 2), *tables],
        commands=[command] if command else [],
    )  # fmt: skip


def _made_by(choices: PlatformChoices, collective: str) -> str:
    right = choices.compared[collective].right
    number = int(np.isin(right.state, (State.TIMED, State.FAILED)).sum())
    return f"{right.maker}, configuration {right.facts['configuration'][:12]}, {number} times"


def _facts_of(parameters: ModelParameters | PathParameters) -> list[tuple[str, str]]:
    """What the fit found besides the parameters of algorithms."""

    def line(pair: Hockney) -> str:
        return f"{format_seconds(float(pair.alpha_seconds))} + m x {pair.beta_seconds_per_byte:.3g} s/byte"

    made_by = ("model fitted by", parameters.made_by)
    if isinstance(parameters, PathParameters):
        return [made_by, *((f"{name} messages", line(pair)) for name, pair in parameters.messages.items())]
    gamma = parameters.gamma(np.arange(3, 8), parameters.segment_bytes)
    shown = ", ".join(f"{value:.3f}" for value in gamma)
    return [made_by, ("gamma(3..7)", shown), ("point to point", line(parameters.hockney))]


def _fit_rows(choices: PlatformChoices) -> list[tuple[str, ...]]:
    if choices.parameters is None:
        return []
    return [
        (
            *(*place, f"{pair.alpha_seconds:.3g}", f"{pair.beta_seconds_per_byte:.3g}"),
            *(f"{fitted.mean_residual * 100:.1f}", f"{fitted.worst_residual * 100:.1f}"),
        )
        for model, place, pair, fitted in fitted_pairs(choices.parameters)
        if model in (BY_PARTS, CRITICAL_PATH)
    ]
