"""The report of `demo` and `report`: tables and figures on one HTML page, and the Open MPI rules beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from collwise.common.files import writable_folder, write_text
from collwise.common.units import format_seconds, format_size
from collwise.models.critical_path import PathParameters
from collwise.models.hockney import Hockney
from collwise.models.implementation_aware.parameters import ModelParameters
from collwise.models.registry import BY_PARTS
from collwise.platforms import HostPlatform
from collwise.platforms.smpi import charges_overheads
from collwise.studies.figures.maps import method_map
from collwise.studies.figures.picks import algorithms_by_engine, algorithms_by_size, picks_by_procs, picks_by_size
from collwise.studies.reports.comparison_table import chooses_segments, summary_line, table_columns, table_row
from collwise.studies.reports.engine_table import agreement_line, engine_columns, engine_rows, library_line
from collwise.studies.reports.sections import Picture, Section, TextTable, write_sections
from collwise.validation.openmpi.rules import openmpi_rules
from collwise.validation.selection.comparison import Comparison, ComparisonResult
from collwise.validation.selection.consumers import OPENMPI, consumers_of
from collwise.validation.selection.decision_table import DecisionTable
from collwise.validation.selection.defaults import DECISION_SIZES
from collwise.validation.selection.engine_choices import EngineChoices
from collwise.validation.selection.tuning import Tuning

RULES_VERSIONS = ("4.1", "5.0")
_TITLES = {"bcast": "Broadcast", "gather": "Gather", "allreduce": "Allreduce", "alltoall": "Alltoall"}
_SHADED_FROM = 0.1
_INTRO = (
    "Times are simulated by {engine}. A choice is an algorithm and, where that cuts messages, a segment size. The "
    "number in brackets is how much slower than the best choice it is, in percent; more than 10 % is shaded. "
    "'{baseline}' is what that library decides untuned, with the parameters that it ships."
)
_BY_ENGINE = (
    "Times and choices are the schedule engine's, for messages of {least} and more: {overheads} Neither it nor SMPI "
    "simulates switches that drop packets, so that algorithms in which all processes send to one at a time look better "
    "than they may be. As a check, SMPI timed every algorithm with segments of {segment} on {procs} processes. The "
    "last two columns have its time of the best algorithm, with the difference from the engine's in percent, and the "
    "slowdown of this algorithm by SMPI's times."
)
_FREE = "this platform has no overheads, so that shorter ones cannot be decided, and small segments seem too cheap."
_CHARGED = "shorter ones are not compared."
_USE = (
    "The rules are used by: mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE "
    "--mca coll ^han"
)


def write_rules(tunings: Sequence[Tuning], folder: Path) -> None:
    """Writes the rules files into a folder. Raises UsageError when it cannot be written."""
    writable_folder(folder)
    for tuning in tunings:
        for version in RULES_VERSIONS:
            tables = _with_rules(tuning, version)
            if tables:
                write_text(rules_path(folder, tuning, version), openmpi_rules(tables, version))


def _with_rules(tuning: Tuning, openmpi_version: str) -> list[DecisionTable]:
    """The tables of collectives that this version of Open MPI has rules for."""
    consumer = f"openmpi-{openmpi_version}"
    return [table for name, table in tuning.decisions.items() if consumer in consumers_of(name)]


def write_report(tunings: Sequence[Tuning], folder: Path, sections: Sequence[Sequence[Section]]) -> Path:
    """Writes report.html, report.md and figures (PNG) beside the rules files; returns the HTML page's path.

    `sections` are those of each tuning. Raises UsageError when the folder cannot be written.
    """
    first = next(iter(tunings[0].comparisons.values()))
    intro = _INTRO.format(engine=first.sweep.configuration.maker, baseline=first.baseline.title)
    every = [section for some in sections for section in some]
    page, _ = write_sections("Which collective algorithm to use", intro, every, folder, "report")
    return page


def rules_path(folder: Path, tuning: Tuning, openmpi_version: str) -> Path:
    """The path of a platform's rules file in a report's folder."""
    return folder / f"{tuning.platform.name}-openmpi-{openmpi_version}.rules"


def sections_of(tuning: Tuning) -> list[Section]:
    """The sections of a tuning's platform, with all figures drawn."""
    return list(_sections(tuning))


def _sections(tuning: Tuning) -> Iterator[Section]:
    parameters = tuning.parameters
    facts = [
        ("nodes", len(tuning.platform.hosts)),
        ("processes per node", parameters.processes_per_node),
        ("simulated by", parameters.made_by),
        *_facts_of(parameters),
    ]
    columns = ("collective", "algorithm", "part", "alpha (s)", "beta (s/byte)", "mean error (%)", "worst (%)")
    tables = [
        TextTable(("", tuning.platform.title), facts),
        TextTable(columns, _fit_rows(tuning), 3, "Fitted parameters and residuals", folded=True),
    ]
    files = [rules_path(Path(), tuning, version).name for version in RULES_VERSIONS if _with_rules(tuning, version)]
    without = [name for name in tuning.decisions if not any(one.startswith(OPENMPI) for one in consumers_of(name))]
    lines = [_USE] if files else []
    if without:
        lines.append(f"Open MPI has no rules for {', '.join(without)}; 'collwise select --for collwise' makes a table.")
    yield Section(tuning.platform.title, lines, tables, files=files)
    for collective, result in tuning.comparisons.items():
        if result.rows:
            yield _comparison(tuning, collective, result)
    for collective, choices in tuning.by_engine.items():
        if choices.decisions is not None:
            yield _engine_section(tuning, collective, choices, choices.decisions)


def _facts_of(parameters: ModelParameters | PathParameters) -> list[tuple[str, str]]:
    """What the fit found besides the parameters of algorithms."""

    def line(pair: Hockney) -> str:
        return f"{format_seconds(float(pair.alpha_seconds))} + m x {pair.beta_seconds_per_byte:.3g} s/byte"

    if isinstance(parameters, PathParameters):
        return [(f"{name} messages", line(pair)) for name, pair in parameters.messages.items()]
    gamma = parameters.gamma(np.arange(3, 8), parameters.segment_bytes)
    shown = ", ".join(f"{value:.3f}" for value in gamma)
    return [("gamma(3..7)", shown), ("point to point", line(parameters.hockney))]


def _comparison(tuning: Tuning, collective: str, result: ComparisonResult) -> Section:
    heading = f"{_TITLES.get(collective, collective)} on {tuning.platform.title}"
    stem = f"{tuning.platform.name}-{collective}"
    if collective == "barrier":
        picture = picks_by_procs(result, f"{heading}, simulated")
        pictures = [Picture.of(f"{stem}-picks", picture, "Time of each source's pick.")]
    else:
        pictures = _pictures(tuning, collective, result, heading)
    bad = {
        (number, len(table_row(row)) - picks + position)
        for number, row in enumerate(result.rows)
        for picks, position in _bad_picks(row)
    }
    table = TextTable(table_columns(result), [table_row(row) for row in result.rows], bad=bad)
    lines = [f"{summary_line(result)}."]
    if collective in tuning.by_engine:
        lines.append(f"{agreement_line(tuning.by_engine[collective])}.")
    return Section(heading, lines, [table], pictures)


def _pictures(tuning: Tuning, collective: str, result: ComparisonResult, heading: str) -> list[Picture]:
    """The figures over the message size."""
    largest = max(row.procs for row in result.rows)
    at_largest = [row for row in result.rows if row.procs == largest]
    stem = f"{tuning.platform.name}-{collective}"
    return [
        Picture.of(
            f"{stem}-picks",
            picks_by_size(result, f"{heading}, simulated"),
            "Time of each source's pick, as in figure 5 of Nuriyev & Lastovetsky 2021.",
        ),
        Picture.of(
            f"{stem}-algorithms",
            algorithms_by_size(at_largest, f"{heading}, simulated, P = {largest}"),
            f"Every algorithm at {format_size(tuning.segment_bytes)} segments: "
            "simulated times (markers) and the model's (lines).",
        ),
        Picture.of(
            f"{stem}-map",
            _map(tuning.platform, tuning.decisions[collective], DECISION_SIZES[collective], heading),
            f"What the rules choose for every P and m, by {tuning.decisions[collective].made_by}.",
        ),
    ]


def _engine_section(tuning: Tuning, collective: str, choices: EngineChoices, decisions: DecisionTable) -> Section:
    platform, grid = tuning.platform, choices.grid
    heading = f"{_TITLES.get(collective, collective)} on {platform.title}"
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
            algorithms_by_engine(choices, checked[-1], f"{heading}, P = {checked[-1]}"),
            f"Every algorithm at {format_size(min(grid.segments))} segments: the schedule engine's times (lines) and "
            "SMPI's (markers).",
        ),
        Picture.of(
            f"{stem}-map",
            _map(platform, decisions, grid.message_bytes, heading),
            "What the rules choose for every P and m by the schedule engine, among the algorithms that all versions of "
            "Open MPI have; between the process counts of the table the lower one holds.",
        ),
    ]
    lines = [f"{line}." for line in (library_line(choices), agreement_line(choices)) if line]
    return Section(heading, [intro, *lines], [TextTable(engine_columns(choices), engine_rows(choices))], pictures)


def _bad_picks(row: Comparison) -> Iterator[tuple[int, int]]:
    """For each pick to be shaded, the number of picks at the end of the table's row and its position among them."""
    common = [] if chooses_segments([row]) or row.listed is None else [row.listed]
    picks = [row.model, *common, row.baseline]
    return ((len(picks), position) for position, pick in enumerate(picks) if pick.slowdown > _SHADED_FROM)


def _map(platform: HostPlatform, decisions: DecisionTable, sizes: Sequence[int], heading: str) -> Figure:
    procs = range(min(decisions.rules), platform.max_procs(decisions.processes_per_node) + 1)
    chosen = [[decisions.choose(p, m) for m in sizes] for p in procs]
    methods = list(dict.fromkeys(choice for row in chosen for choice in row))
    winners = np.array([[methods.index(choice) for choice in row] for row in chosen])
    return method_map({heading: winners}, methods, procs, sizes)


def _fit_rows(tuning: Tuning) -> list[tuple[str, ...]]:
    parameters = tuning.parameters
    found = parameters.fits if isinstance(parameters, PathParameters) else parameters.fits[BY_PARTS]
    return [
        (
            *(collective, name, part, f"{pair.alpha_seconds:.3g}", f"{pair.beta_seconds_per_byte:.3g}"),
            *(f"{fitted.mean_residual * 100:.1f}", f"{fitted.worst_residual * 100:.1f}"),
        )
        for collective, fits in found.items()
        for name, fitted in fits.items()
        for part, pair in fitted.parameters.items()
    ]
