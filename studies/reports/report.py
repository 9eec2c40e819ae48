"""The HTML report: one self-contained page with tables and figures, and the Open MPI rules beside it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
import numpy as np
from matplotlib.figure import Figure

from collwise.algorithms.catalogue import Catalogue
from collwise.common.files import writable_folder, write_text
from collwise.common.units import format_seconds, format_size
from collwise.studies.figures import style as draw
from collwise.studies.tuning import Tuning, chooses_segments, summary_line, table_columns, table_row
from collwise.validation.openmpi.rules import openmpi_rules
from collwise.validation.selection.comparison import Comparison, ComparisonResult
from collwise.validation.selection.decision_table import DecisionTable
from collwise.validation.selection.grid import DECISION_SIZES

RULES_VERSIONS = ("4.1", "5.0")
_TITLES = {"bcast": "Broadcast", "gather": "Gather"}


@dataclass(frozen=True)
class _Figure:
    caption: str
    data: str


@dataclass(frozen=True)
class _Section:
    title: str
    summary: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    bad: Sequence[Sequence[bool]]
    figures: Sequence[_Figure]


@dataclass(frozen=True)
class _Cluster:
    title: str
    facts: Sequence[tuple[str, str]]
    sections: Sequence[_Section]
    fits: Sequence[Sequence[str]]
    rules: Sequence[str]


def write_report(tunings: Sequence[Tuning], folder: Path) -> Path:
    """Writes report.html, figures (PNG) and rules files into `folder`; returns the page's path.

    Raises UsageError when the folder cannot be written.
    """
    writable_folder(folder)
    clusters = [_cluster(tuning, folder) for tuning in tunings]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    engine = next(iter(tunings[0].comparisons.values())).sweep.configuration.maker
    page = environment.get_template("report.html").render(clusters=clusters, engine=engine)
    path = folder / "report.html"
    write_text(path, page)
    return path


def rules_path(folder: Path, tuning: Tuning, openmpi_version: str) -> Path:
    """Where the rules of a platform go."""
    return folder / f"{tuning.platform.name}-openmpi-{openmpi_version}.rules"


def _cluster(tuning: Tuning, folder: Path) -> _Cluster:
    rules = []
    for version in RULES_VERSIONS:
        path = rules_path(folder, tuning, version)
        write_text(path, openmpi_rules(list(tuning.decisions.values()), version))
        rules.append(path.name)
    parameters = tuning.parameters
    gamma = parameters.gamma(np.arange(3, 8), parameters.segment_bytes)
    facts = [
        ("Platform", tuning.platform.title),
        ("Nodes", str(len(tuning.platform.hosts))),
        ("Processes per node", str(parameters.processes_per_node)),
        ("Simulated by", parameters.made_by),
        ("gamma(3..7)", ", ".join(f"{value:.3f}" for value in gamma)),
        ("Point to point", f"{format_seconds(float(parameters.hockney.alpha_seconds))} + m x "
                           f"{parameters.hockney.beta_seconds_per_byte:.3g} s/byte"),
    ]  # fmt: skip
    sections = [
        _section(tuning, collective, result, folder) for collective, result in tuning.comparisons.items() if result.rows
    ]
    return _Cluster(tuning.platform.title, facts, sections, _fit_rows(tuning), rules)


def _section(tuning: Tuning, collective: str, result: ComparisonResult, folder: Path) -> _Section:
    stem = f"{tuning.platform.name}-{collective}"
    title = f"{_TITLES.get(collective, collective)} on {tuning.platform.title}, simulated"
    largest = max(row.procs for row in result.rows)
    at_largest = [row for row in result.rows if row.procs == largest]
    drawn = [
        ("picks", draw.picks_by_size(result.rows, title), "Time of each source's pick (figure 5 of the paper)."),
        (
            "algorithms",
            draw.algorithms_by_size(at_largest, f"{title}, P = {largest}"),
            f"Every algorithm at {format_size(tuning.parameters.segment_bytes)} segments: "
            "simulated times (markers) and the model's (lines).",
        ),
        ("map", _map(tuning.decisions[collective], tuning, title), "What the rules choose for every P and m."),
    ]
    pictures = []
    for name, figure, caption in drawn:
        path = draw.save(figure, folder / f"{stem}-{name}.png")
        pictures.append(_Figure(caption, base64.b64encode(path.read_bytes()).decode()))
    return _Section(
        title=_TITLES.get(collective, collective),
        summary=summary_line(result),
        columns=table_columns(result.rows),
        rows=[table_row(row) for row in result.rows],
        bad=[_bad_cells(row) for row in result.rows],
        figures=pictures,
    )


def _bad_cells(row: Comparison) -> list[bool]:
    picks = (
        [row.model, row.openmpi_shipped] if chooses_segments([row]) else [row.model, row.openmpi, row.openmpi_shipped]
    )
    return [False] * (len(table_row(row)) - len(picks)) + [pick.degradation > 0.1 for pick in picks]


def _map(decisions: DecisionTable, tuning: Tuning, title: str) -> Figure:
    counts = np.arange(2.0, tuning.platform.max_procs(tuning.parameters.processes_per_node) + 1)
    sizes = np.array(DECISION_SIZES[decisions.collective], dtype=float)
    chosen = [[decisions.choose(int(p), int(m)).algorithm for m in sizes] for p in counts]
    names = list(Catalogue.load().collective(decisions.collective).selectable)
    winners = np.array([[names.index(name) for name in row] for row in chosen], dtype=float)
    heading = title.replace(", simulated", ", chosen by the model")
    return draw.decision_map(counts, sizes, winners, names, heading)


def _fit_rows(tuning: Tuning) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for collective, fits in tuning.parameters.fits["by_parts"].items():
        for name, fitted in fits.items():
            for part, pair in fitted.parameters.items():
                rows.append(
                    (
                        collective, name, part, f"{pair.alpha_seconds:.3g}", f"{pair.beta_seconds_per_byte:.3g}",
                        f"{fitted.mean_residual * 100:.1f}", f"{fitted.worst_residual * 100:.1f}",
                    )
                )  # fmt: skip
    return rows
