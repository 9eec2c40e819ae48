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
from collwise.studies.figures.maps import method_map
from collwise.studies.figures.picks import algorithms_by_size, picks_by_size
from collwise.studies.reports.comparison_table import chooses_segments, summary_line, table_columns, table_row
from collwise.studies.reports.sections import Picture, Section, TextTable, write_sections
from collwise.validation.openmpi.rules import openmpi_rules
from collwise.validation.selection.comparison import Comparison, ComparisonResult
from collwise.validation.selection.defaults import DECISION_SIZES
from collwise.validation.selection.tuning import Tuning

RULES_VERSIONS = ("4.1", "5.0")
_TITLES = {"bcast": "Broadcast", "gather": "Gather"}
_SHADED_FROM = 0.1
_INTRO = (
    "Times are simulated by {engine}. A choice is an algorithm and, for broadcast, a segment size. The number in "
    "brackets is how much slower than the best choice it is, in percent; more than 10 % is shaded. 'Open MPI 3.1' is "
    "what that version decides untuned, with its own segment sizes; later versions decide otherwise, with algorithms "
    "that are not in this comparison. The slowdowns of its 1 KiB segments are upper bounds: the simulation charges "
    "each eager segment a latency that a real network hides in part."
)
_USE = (
    "The rules are used by: mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE "
    "--mca coll ^han"
)


def write_rules(tunings: Sequence[Tuning], folder: Path) -> None:
    """Writes the rules files into a folder. Raises UsageError when it cannot be written."""
    writable_folder(folder)
    for tuning in tunings:
        for version in RULES_VERSIONS:
            write_text(rules_path(folder, tuning, version), openmpi_rules(list(tuning.decisions.values()), version))


def write_report(tunings: Sequence[Tuning], folder: Path) -> Path:
    """Writes report.html, report.md and figures (PNG) beside the rules files; returns the HTML page's path.

    Raises UsageError when the folder cannot be written.
    """
    engine = next(iter(tunings[0].comparisons.values())).sweep.configuration.maker
    sections = [section for tuning in tunings for section in _sections(tuning, folder)]
    page, _ = write_sections(
        "Which collective algorithm to use", _INTRO.format(engine=engine), sections, folder, "report"
    )
    return page


def rules_path(folder: Path, tuning: Tuning, openmpi_version: str) -> Path:
    """The path of a platform's rules file in a report's folder."""
    return folder / f"{tuning.platform.name}-openmpi-{openmpi_version}.rules"


def _sections(tuning: Tuning, folder: Path) -> Iterator[Section]:
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
    files = [rules_path(folder, tuning, version).name for version in RULES_VERSIONS]
    yield Section(tuning.platform.title, [_USE], tables, files=files)
    for collective, result in tuning.comparisons.items():
        if result.rows:
            yield _comparison(tuning, collective, result)


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
    largest = max(row.procs for row in result.rows)
    at_largest = [row for row in result.rows if row.procs == largest]
    stem = f"{tuning.platform.name}-{collective}"
    pictures = [
        Picture(
            f"{stem}-picks",
            picks_by_size(result.rows, f"{heading}, simulated"),
            "Time of each source's pick, as in figure 5 of Nuriyev & Lastovetsky 2021.",
        ),
        Picture(
            f"{stem}-algorithms",
            algorithms_by_size(at_largest, f"{heading}, simulated, P = {largest}"),
            f"Every algorithm at {format_size(tuning.segment_bytes)} segments: "
            "simulated times (markers) and the model's (lines).",
        ),
        Picture(f"{stem}-map", _map(tuning, collective, heading), "What the rules choose for every P and m."),
    ]
    bad = {
        (number, len(table_row(row)) - picks + position)
        for number, row in enumerate(result.rows)
        for picks, position in _bad_picks(row)
    }
    table = TextTable(table_columns(result.rows), [table_row(row) for row in result.rows], bad=bad)
    return Section(heading, [f"{summary_line(result)}."], [table], pictures)


def _bad_picks(row: Comparison) -> Iterator[tuple[int, int]]:
    """For each pick to be shaded, the number of picks at the end of the table's row and its position among them."""
    common = [] if chooses_segments([row]) else [row.openmpi]
    picks = [row.model, *common, row.openmpi_shipped]
    return ((len(picks), position) for position, pick in enumerate(picks) if pick.slowdown > _SHADED_FROM)


def _map(tuning: Tuning, collective: str, heading: str) -> Figure:
    decisions = tuning.decisions[collective]
    procs = range(2, tuning.platform.max_procs(tuning.parameters.processes_per_node) + 1)
    sizes = DECISION_SIZES[collective]
    chosen = [[decisions.choose(p, m) for m in sizes] for p in procs]
    methods = list(dict.fromkeys(choice for row in chosen for choice in row))
    winners = np.array([[methods.index(choice) for choice in row] for row in chosen])
    return method_map({f"{heading}, chosen by the model": winners}, methods, procs, sizes)


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
