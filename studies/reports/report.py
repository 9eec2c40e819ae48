"""The report of `demo` and `report`: what to do first, and why, on one HTML page, and the rules beside it."""

from __future__ import annotations

import platform as python_platform
import shlex
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import geometric_mean

import numpy as np

from collwise.common.errors import UsageError
from collwise.common.files import writable_folder, write_text
from collwise.common.program import program_name
from collwise.common.units import counted, format_seconds, format_size
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
    both_timed,
    close_points,
    comparison_section,
    engine_section,
    largest_decided,
)
from collwise.studies.reports.comparison_table import compared_places
from collwise.studies.reports.parameters import fitted_pairs
from collwise.studies.reports.sections import Notes, Picture, Section, Step, TextTable, write_sections
from collwise.validation.compare.scores import AllScores
from collwise.validation.exports.formats import for_openmpi, how_to_use, ways_to_use_openmpi_rules
from collwise.validation.openmpi.least_elements import ELEMENT_BYTES
from collwise.validation.openmpi.rules import openmpi_rules
from collwise.validation.select.collwise_rules import collwise_rules
from collwise.validation.select.consumers import COLLWISE, OPENMPI, RULES_VERSIONS, consumers_of
from collwise.validation.select.decisions import (
    DecisionTable,
    all_at_once_text,
    decisions_text,
    wide_steps_texts,
)
from collwise.validation.times.grid import choice_of
from collwise.validation.times.measured import measured_platform, stored_times
from collwise.validation.times.times import State, Times

_INTRO = (
    "Times are simulated ({engine}). A choice is an algorithm and, if it cuts messages into segments, their size. In "
    "brackets is its slowdown: by how many percent it is slower than the fastest choice, shaded from 10 % on. "
    "'{baseline}' is that library untuned, with the parameters that it ships."
)
_TAKE = "Copy the file for your MPI library to the cluster:"
_USE = "Run your program with it, in one of these ways. P, PROGRAM and the paths stand for yours."
_OWN_FILE = " The commands name the file for Open MPI {}; {} takes its own."
_MEASURE = "Measure the gain on the cluster ('collwise gain'), or times of the algorithms ('collwise measure')."
_LOST = (
    "Leave {} out of the rules: there untuned {} is faster on average, by algorithms that some consumer of these "
    "rules does not have. 'collwise select --for' decides for one consumer, among all algorithms that it has."
)
_EXPRESSIBLE = "; it has the algorithms that all of these files can name ('collwise select --for collwise' takes all)"
_HCOLL = (
    "On InfiniBand untuned Open MPI may run its component hcoll, with which the rules were not compared: with them it "
    "may be slower than untuned. Measure both."
)
_HAN = (
    "With several processes on a node untuned Open MPI 5.0 runs its component han, which neither the gains nor the "
    "rules for 5.0 take into account: with these it may be slower than untuned. Measure both."
)
_DIFFERS = (
    "Where messages may have too few elements, the rules for Open MPI name other algorithms than the table of "
    "libcollwise: see below."
)
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
        for openmpi_version in RULES_VERSIONS:
            tables = _with_rules(choices, openmpi_version)
            if tables:
                said = for_openmpi(tables, openmpi_version)[0]
                write_text(rules_path(folder, choices, openmpi_version), openmpi_rules(said, openmpi_version))
        tables = list(choices.decisions.values())
        write_text(table_path(folder, choices), collwise_rules(tables))
        write_text(decisions_path(folder, choices), decisions_text(tables))


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
    intro = _INTRO.format(engine=first.right.maker, baseline=every[0].baseline.title)
    parts = [section for some in sections for section in some]
    parts.append(_made(every, command))
    page, _ = write_sections("Which collective algorithm to use", intro, parts, folder, "report")
    return page


def rules_path(folder: Path, choices: PlatformChoices, openmpi_version: str) -> Path:
    """The path of a platform's rules file in a report's folder."""
    return folder / f"{choices.platform.name}-openmpi-{openmpi_version}.rules"


def table_path(folder: Path, choices: PlatformChoices) -> Path:
    """The path of a platform's table for libcollwise in a report's folder."""
    return folder / f"{choices.platform.name}-collwise.table"


def decisions_path(folder: Path, choices: PlatformChoices) -> Path:
    """The path of a platform's decisions in a report's folder, for commands that take `--decisions`."""
    return folder / f"{choices.platform.name}-decisions.json"


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
    lost = [name for name, found in known.items() if found and geometric_mean(found) < 0.99]
    few = _few(choices)
    several = choices.processes_per_node > 1 and _with_rules(choices, "5.0")
    limits = [
        *_short_messages(choices),
        *_beyond(choices),
        *_doubtful(choices),
        *([_LOST.format(", ".join(lost), choices.baseline.title)] if lost else []),
        *([_HAN] if several else []),
        *([_HCOLL] if _with_rules(choices, "4.1") else []),
        *([_DIFFERS] if few else []),
        *([] if charges_overheads(choices.platform.smpi_options()) else [_free(choices)]),
    ]
    return Section(
        f"What to do first on {choices.platform.title}",
        steps=_steps(choices, folder, measured),
        after=[_gained(choices, ratios)],
        tables=[TextTable(_GAIN_COLUMNS, rows, 1, f"What the rules gain over {choices.baseline.title}", bad=bad)],
        notes=[
            Notes("What the rules do not cover", limits),
            Notes("How gains are counted", _counted(ratios), folded=True),
            Notes("Where the rules for Open MPI differ from the table of libcollwise", few, folded=True),
            Notes("Figures of this description that are estimates, not measured", _guessed(choices), folded=True),
        ],
    )


def _steps(choices: PlatformChoices, folder: Path, measured: Mapping[str, Times]) -> list[Step]:
    """The steps by which a cluster's owner puts the rules to use, in order."""
    rules = {one: rules_path(folder, choices, one) for one in RULES_VERSIONS if _with_rules(choices, one)}
    table = table_path(folder, choices)
    files = {path.name: f"rules for Open MPI {one}" for one, path in rules.items()}
    without = [name for name in choices.decisions if not any(one.startswith(OPENMPI) for one in consumers_of(name))]
    only = f", also for {', '.join(without)}, of which Open MPI has no rules" if without and rules else ""
    files[table.name] = f"a table for libcollwise, under any MPI library{only}{_EXPRESSIBLE if rules else ''}"
    (shown, path), *others = rules.items() or [("", None)]
    use = (
        _USE
        + _placed(choices.processes_per_node)
        + (_OWN_FILE.format(shown, " and ".join(one for one, _ in others)) if others else "")
    )
    ways = {} if path is None else ways_to_use_openmpi_rules(path)
    ways["With libcollwise, which runs our algorithms"] = how_to_use(COLLWISE, table)
    how = {"In an allocation under Slurm": _measuring(choices, decisions_path(folder, choices))}
    return [
        Step(_TAKE, files),
        Step(use, commands=ways),
        Step(f"{_MEASURE} {_sure(choices, measured)}", commands=how if rules else {}),
    ]


def _measuring(choices: PlatformChoices, decisions: Path) -> str:
    """The command that measures the gain on two nodes, or more if the rules were not decided for as few."""
    per_node = choices.processes_per_node
    decided = sorted({procs for table in choices.decisions.values() for procs in table.decided_procs})
    whole = [procs for procs in decided if procs % per_node == 0 and procs >= 2 * per_node]
    procs = (whole or decided[-1:])[0]
    place = f"--nodes {-(-procs // per_node)} --ntasks-per-node {per_node}"
    how = f'--launcher srun --ppn {per_node} --mpirun-args "--cpu-bind=cores"'
    what = f"--decisions {shlex.quote(str(decisions.resolve()))} --procs {procs} --no-check"
    return f"salloc --exclusive {place} {program_name()} gain {how} {what}"


def _placed(processes_per_node: int) -> str:
    if processes_per_node == 1:
        return " The files are for one process on each node."
    return (
        f" The files are for {processes_per_node} processes on each node, bound to cores, ranks in blocks: give mpirun "
        f"--map-by ppr:{processes_per_node}:node --bind-to core, srun --ntasks-per-node={processes_per_node} "
        "--cpu-bind=cores."
    )


def _short_messages(choices: PlatformChoices) -> list[str]:
    """A sentence on the messages that are shorter than those decided, if there are any."""
    least = {name: min(choices.decided_sizes[name]) for name in choices.decisions if name != "barrier"}
    missing = {name: size for name, size in least.items() if size > _SHORTEST}
    if not missing:
        return []
    by_size: dict[int, list[str]] = {}
    for name, size in missing.items():
        by_size.setdefault(size, []).append(name)
    since = "; ".join(f"{', '.join(names)} from {format_size(size)} on" for size, names in sorted(by_size.items()))
    how = (
        f"a report with smaller --sizes, such as {_SHORTEST}:1MiB:x2, decides them, too."
        if charges_overheads(choices.platform.smpi_options())
        else "without overheads in the description these cannot be decided."
    )
    return [f"Shorter messages are left to the MPI library's own decision: the rules decide {since}; {how}"]


def _free(choices: PlatformChoices) -> str:
    """A sentence on what the times lack on a platform whose messages cost processors nothing."""
    undecided = "barrier" in choices.compared and "barrier" not in choices.decisions
    without = " The barrier therefore has no rules." if undecided else ""
    return (
        "The description of this platform has no overheads (os, or, ois), so that short messages and small segments "
        f"cost too little, and algorithms that send many of them look too good.{without} "
        "'collwise platforms show --overheads' adds estimates to a description."
    )


def _beyond(choices: PlatformChoices) -> list[str]:
    """A sentence on the process counts for which the rules only repeat what is chosen for fewer processes, if any."""
    most = choices.platform.max_procs(choices.processes_per_node)
    known = {largest_decided(choices.platform, one) for one in choices.decisions.values()}
    if not known or min(known) == most:
        return []
    return [
        f"The rules were decided for up to {min(known)} processes. For more, up to the {most} of the platform, they "
        f"repeat the choices for {min(known)}, which no times support; a report with larger --procs decides there, too."
    ]


def few_elements_line(choices: PlatformChoices) -> str:
    """A line for the terminal on what Open MPI's rules say otherwise for messages of few elements; empty if nothing."""
    few = [one for one in choices.substituted if one.too_few]
    if not few:
        return ""
    names = ", ".join(dict.fromkeys(one.collective for one in few))
    return (
        f"the rules for Open MPI differ from libcollwise's table by {counted(len(few), 'choice')} of {names}, since "
        f"messages may have too few elements of {ELEMENT_BYTES} bytes: {few[0]}"
        + ("; the report lists all" if len(few) > 1 else "")
    )


def _few(choices: PlatformChoices) -> list[str]:
    """The differences of the rules for Open MPI from the table of libcollwise, since messages may have few elements."""
    few = [str(one) for one in choices.substituted if one.too_few]
    if not few:
        return []
    why = (
        "Open MPI replaces some algorithms where a message has too few elements, so that its rules name others for "
        f"messages that may have too few of {ELEMENT_BYTES} bytes."
    )
    more = [f"And {len(few) - _MOST_SUBSTITUTIONS} more."] if len(few) > _MOST_SUBSTITUTIONS else []
    return [why, *few[:_MOST_SUBSTITUTIONS], *more]


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


def _gained(choices: PlatformChoices, ratios: Sequence[float]) -> str:
    if not ratios:
        return f"What is gained over {choices.baseline.title} is not known: none of its choices was timed."
    return (
        f"By simulated times, a call takes {geometric_mean(ratios):.2f} times as long under untuned "
        f"{choices.baseline.title} as with the rules for Open MPI, on the geometric mean of {len(ratios)} points."
    )


def _counted(ratios: Sequence[float]) -> list[str]:
    """Notes on reading the table of gains."""
    if not ratios:
        return []
    return [
        "A point is a collective, a process count and a message size; counted are those at which both the rules' and "
        "the library's choice have times. A gain of x 2 halves the time.",
        f"The default is over 10 % slower than the rules at {sum(one > 1.1 for one in ratios) or 'none'} of the "
        f"{len(ratios)} points, and over 1 % faster at {sum(one < 0.99 for one in ratios) or 'none'}.",
        f"A choice is close where the best other algorithm is less than {CLOSE * 100:.0f} % slower.",
    ]


def _doubtful(choices: PlatformChoices) -> Iterator[str]:
    """Sentences on rules that the times support less than others."""
    tables = list(choices.rules.values())
    for text in filter(None, (*wide_steps_texts(tables, are_left=True), all_at_once_text(tables))):
        yield f"{text[0].upper()}{text[1:]}."


def _guessed(choices: PlatformChoices) -> list[str]:
    """The figures of the description that were not measured, as its sources say."""
    if not isinstance(choices.platform, Description):
        return []
    return [one.what for one in choices.platform.sources if "estimated" in one.what or "not measured" in one.what]


def _sure(choices: PlatformChoices, measured: Mapping[str, Times]) -> str:
    """How far the simulated times are known to be right."""
    errors = [
        abs(
            float(right.seconds.values[a, i, j]) / found.seconds_of(choice_of(case), case.procs, case.message_bytes) - 1
        )
        for name, found in measured.items()
        for right in (choices.compared[name].right,)
        for case, a, i, j in both_timed(right, found)
    ]
    if errors:
        return (
            f"So far, simulated times of {len(errors)} cases of {', '.join(measured)} differ from measured ones by "
            f"{np.median(errors) * 100:.1f} % in the median: smaller gains are uncertain."
        )
    return (
        "So far nothing was measured on this platform: gains are as accurate as the simulation, and those below 10 %, "
        "say, uncertain. A new report has measured times beside the simulated ones."
    )


# --- How right, and how made ------------------------------------------------------------------------------------------


def _accuracy(choices: PlatformChoices) -> Section:
    """The errors of the model against simulated times, by collective and size."""
    by_size = AllScores(choices.compared.values()).table(["collective", "message_bytes", "source"])
    known = by_size[by_size["cases"] > 0]
    errors = dict(zip(zip(known.collective, known.message_bytes, strict=True), known.mean_error, strict=True))
    rows: list[tuple[str, ...]] = []
    for name, scores in choices.compared.items():
        for title in scores.times:
            if (found := scores.errors_of(title)) is not None:
                slower = scores.summary(title)
                costs = (f"{slower.mean * 100:z.1f} %", f"{slower.worst * 100:z.1f} %")
                rows.append((name, str(found.count), f"{found.mean:.1%}", f"{abs(found.worst):.1%}", *costs))
    columns = ("collective", "predictions", "mean error", "worst error", "mean slowdown of choices", "worst slowdown")
    title = f"Errors of the model on {choices.platform.title}"
    pictures = []
    if errors:
        picture = collective_maps({"mean error of all algorithms, %": errors}, title, "mean error (%)")
        caption = "Mean error of the model's times against simulated ones, in percent, by collective and message size."
        pictures.append(Picture.of(f"{choices.platform.name}-accuracy", picture, caption))
    return Section(
        f"Model accuracy on {choices.platform.title}",
        [
            "Relative errors of predicted against simulated times, over all algorithms and segment sizes, and what the "
            "model's choices cost by simulated times. Choices can be good although times are wrong."
        ],
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
