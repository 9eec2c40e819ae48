"""The report of `tune`: what the rules gain and how sure that is, the file to take, then each collective."""

from __future__ import annotations

import platform as python_platform
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import click
import numpy as np
from matplotlib.figure import Figure

from collwise.common.program import program_name
from collwise.common.units import format_size, typed_sizes
from collwise.models.piecewise import Array
from collwise.platforms import known
from collwise.platforms.description import Description
from collwise.platforms.hosts import PlacedPlatform, unplaced
from collwise.platforms.smpi import charges_overheads
from collwise.studies.cli.output import own_command
from collwise.studies.figures.maps import collective_maps
from collwise.studies.present import scores as scores_presented
from collwise.studies.present.shown import Table
from collwise.studies.reports.markdown import Texts, percent
from collwise.studies.reports.sections import Notes, Picture, Section, Step, write_sections
from collwise.studies.reports.sureness import Gains, sure_facts, sure_points, sure_sentences
from collwise.tuning import RULES, Tuned
from collwise.validation.compare.scores import Scores, compare
from collwise.validation.libraries.formats import FORMATS, how_to_use, ways_to_use_openmpi_rules
from collwise.validation.libraries.openmpi_rules import warnings_of
from collwise.validation.libraries.openmpi_untuned import ELEMENT_BYTES
from collwise.validation.libraries.sayable import told
from collwise.validation.measurement.confidence import CLOSE, SURE
from collwise.validation.select.consumers import COLLWISE, OPENMPI, openmpi_version
from collwise.validation.times.defaults import sizes_of

TEXTS = Texts("tuning.md.j2")
CHECKED = tomllib.loads(Path(__file__).with_name("checked.toml").read_text(encoding="utf-8"))
"""The errors of simulated times, and the slowdown of choices by simulated times, according to measured times."""
MACHINES = tomllib.loads(Path(__file__).with_name("machines.toml").read_text(encoding="utf-8"))
"""The errors of predictions on supercomputers that others measured, and the time lost by choices, by machine."""
ELSEWHERE, WHERE_SURE = "Checked elsewhere", "Where choices are sure"
_GAIN = "untuned / rules"
_COLUMNS = ("collective", "points", _GAIN, "range", "slower at", "sure at", "where most is gained")
_FIGURES = ("decisions", "close")
_SLOWER = 0.99
_FEW_SIZES = 6
_MAX_SUBSTITUTIONS = 20


def title_of(tuned: Tuned) -> str:
    """A title such as 'Gros, Grid'5000 Nancy: rules for Open MPI 5.0, 2 processes on each node'."""
    where = tuned.name if tuned.platform is None else tuned.platform.title
    per_node = "one process" if tuned.per_node == 1 else f"{tuned.per_node} processes"
    return f"{where}: rules for {_library(tuned)}, {per_node} on each node"


def gain_table(tuned: Tuned) -> Table:
    """A row for each collective: gain over the untuned library, counts of slower and sure points, largest gain."""
    columns = ["component tuned / rules" if _disables_han(tuned) and column == _GAIN else column for column in _COLUMNS]
    return Table(title_of(tuned), columns, [_gain_row(tuned, name) for name in tuned.scores])


def checked_tables(tuned: Tuned) -> list[Table]:
    """The errors of simulated times elsewhere, and what choices lost there; none if this cluster's errors are known."""
    if _errors(tuned).size or not _is_simulated(tuned):
        return []
    way = "robust" if tuned.decisions.robust else "predicted"
    rows = [(CHECKED["bed"], *(percent(CHECKED[name]) for name in ("median_error", "mean_slowdown", "untuned")))]
    rows += [
        (name, *(f"{100 * one[key]:.0f} %" for key in ("median_error", way, "untuned")))
        for name, one in MACHINES.items()
    ]
    choices = "robust choices lose" if tuned.decisions.robust else "choices lose"
    return [Table(ELSEWHERE, ("measured on", "median error", choices, "untuned library loses"), rows)]


def _is_simulated(tuned: Tuned) -> bool:
    return all(times.source == "simulated" for times in tuned.times.values())


def gain_figure(tuned: Tuned) -> Figure:
    """A map by collective and size of how much slower the untuned library is, in percent, averaged over P."""
    gained = {}
    for name, scores in tuned.scores.items():
        for size, gains in zip(scores.right.message_bytes, tuned.gains(name).T, strict=True):
            if (known := gains[np.isfinite(gains)]).size:
                gained[name, size] = geometric_mean(known) - 1
    means = {name: geometric_mean(known) for name in tuned.scores if (known := _known(tuned, name))}
    most = max(means, key=lambda name: means[name])
    ratio = geometric_mean(_known(tuned))
    library = _compared(tuned) if _han(tuned) else f"{_compared(tuned)} untuned"
    title = f"{library} takes x {ratio:.2f} the time of the rules on {tuned.name}"
    title += f", most for {most}: x {means[most]:.2f}" if len(means) > 1 else ""
    return collective_maps({"": gained}, title, "slower than by the rules (%)")


def points(tuned: Tuned) -> Iterator[dict[str, Any]]:
    """A row for each point that the rules decide: the choices of the rules and of the untuned library, with seconds.

    `sure` is None where a point has no outlook.
    """
    for name, scores in tuned.scores.items():
        gains, sure = tuned.gains(name), _sure_points(tuned, name)
        for i, j in scores.places(RULES):
            rules, p, size = scores.pick(RULES, i, j), scores.right.procs[i], scores.right.message_bytes[j]
            row: dict[str, Any] = {"collective": name, "procs": p, "message_bytes": size}
            row |= {"algorithm": rules.name, "segment_bytes": rules.choice.segment_bytes if rules.choice else 0}
            row |= {"seconds": rules.seconds, "slowdown": rules.slowdown, "sure": sure.get((p, size))}
            if tuned.baseline is not None:
                untuned = scores.pick(tuned.baseline.title, i, j)
                row |= {"untuned": untuned.label, "untuned_seconds": untuned.seconds, "gain": float(gains[i, j])}
            yield row


def gains_of(tuned: Tuned) -> Gains:
    """The gains at the points that the rules decide; empty if the untuned library's decisions are not known."""
    found: dict[tuple[str, int, int], float] = {}
    for name, scores in tuned.scores.items() if tuned.baseline is not None else ():
        gains = tuned.gains(name)
        for i, j in scores.places(RULES):
            found[name, scores.right.procs[i], scores.right.message_bytes[j]] = float(gains[i, j])
    return found


def sentences(tuned: Tuned) -> list[str]:
    """Sentences on the gain, on how sure it is, and on what would change the choices."""
    return [line for block in ("result", "sure", "changes") for line in _said(tuned, block)]


def assumptions(tuned: Tuned) -> list[str]:
    """Sentences on an assumed rate of memory, on which gains and choices depend; empty if no rate is assumed."""
    return _said(tuned, "memory")


def one_point(tuned: Tuned) -> list[str]:
    """Sentences on the only point that the rules decide; empty if there are several or none."""
    places = [(name, *place) for name, scores in tuned.scores.items() for place in scores.places(RULES)]
    if len(places) != 1:
        return []
    ((name, i, j),) = places
    scores = tuned.scores[name]
    said = TEXTS.paragraphs(
        "one_point",
        where=f"{name}, P = {scores.right.procs[i]}, {format_size(scores.right.message_bytes[j])}",
        rules=scores.pick(RULES, i, j),
        untuned=None if tuned.baseline is None else scores.pick(tuned.baseline.title, i, j),
        library=_compared(tuned),
        consumer=_library(tuned),
        han=_han(tuned),
        sure=sure_facts(tuned.said, gains_of(tuned), tuned.unsettled),
        fitted=tuned.is_fitted,
        close=f"{100 * CLOSE:g}",
        limit=f"{100 * SURE:g}",
    )
    return [title_of(tuned), *assumptions(tuned), *said, *_said(tuned, "changes")]


def han_caveat(tuned: Tuned) -> str:
    """The condition on which to take the file, if the rules disable a component that the library runs by default."""
    if not _disables_han(tuned):
        return ""
    return " if programs are faster with it than with Open MPI's component han, which it disables"


def _said(tuned: Tuned, block: str) -> list[str]:
    every = _known(tuned)
    errors = _errors(tuned)
    return TEXTS.paragraphs(
        block,
        library=None if tuned.baseline is None else tuned.baseline.title,
        compared=_compared(tuned),
        consumer=_library(tuned),
        points=len(every),
        ratio=geometric_mean(every) if every else None,
        han=_han(tuned),
        changing=None if tuned.platform is None else changing(tuned),
        memory=tuned.assumed_memory,
        measuring=measuring(tuned),
        openmpi=tuned.consumer.startswith(OPENMPI),
        simulated=_is_simulated(tuned),
        elsewhere=ELSEWHERE,
        where_sure=WHERE_SURE if tuned.folder else "",
        cases=errors.size,
        measured=[*tuned.measured],
        drawn=tuned.over_allocations,
        sure=_sure(tuned),
        fitted=tuned.is_fitted,
        slower=sum(value < _SLOWER for value in every),
        robust=tuned.decisions.robust,
        median=np.median(errors) if errors.size else np.nan,
    )


def _sure(tuned: Tuned) -> list[str]:
    """Sentences on how sure the choices are; the last two sentences give the expected loss."""
    found = sure_sentences(tuned.said, gains_of(tuned), _compared(tuned), tuned.unsettled)
    return [f"{line[0].upper()}{line[1:]}." for line in found]


def _sizes(tuned: Tuned) -> list[int]:
    return sorted({size for times in tuned.times.values() for size in times.message_bytes})


def measuring(tuned: Tuned) -> str:
    """The command that measures the gain on two nodes, or on more if the rules were not decided for two."""
    per_node = tuned.per_node
    decided = sorted({procs for times in tuned.times.values() for procs in times.procs})
    whole = [procs for procs in decided if procs % per_node == 0 and procs >= 2 * per_node]
    procs = (whole or decided[-1:])[0]
    place = f"--nodes {-(-procs // per_node)} --ntasks-per-node {per_node}"
    how = f'--launcher srun --ppn {per_node} --mpirun-args "--cpu-bind=cores"'
    file = "DECISIONS" if tuned.folder is None else shlex.quote(str(tuned.file("-decisions.json").resolve()))
    sizes = _sizes(tuned)
    measured = sizes if len(sizes) <= _FEW_SIZES else [*sizes[::2], *sizes[-1:]]
    grid = f"--procs {procs} --sizes {typed_sizes(sorted({*measured}))}"
    return f"salloc --exclusive {place} {program_name()} program gain {file} {grid} --no-check {how}"


def write_report(tuned: Tuned) -> Path:
    """Writes NAME.html, NAME.md and figures (SVG) beside the rules; returns the path of the page."""
    first, *_ = tuned.times.values()
    intro = TEXTS.line("intro", source=first.source, maker=first.maker)
    sections = [_gained(tuned), _use(tuned), *(_collective(scores) for scores in tuned.scores.values()), _made(tuned)]
    assert tuned.folder is not None
    page, _ = write_sections(title_of(tuned), intro, sections, tuned.folder, tuned.name)
    return page


def _library(tuned: Tuned) -> str:
    version = openmpi_version(tuned.consumer)
    return f"Open MPI {version}" if version else "any MPI library" if tuned.consumer == COLLWISE else tuned.consumer


def _compared(tuned: Tuned) -> str:
    """The title of the compared library, which names its code if the library would run other code."""
    if tuned.baseline is None:
        return ""
    if not _han(tuned):
        return tuned.baseline.title
    if _disables_han(tuned):
        return f"the component tuned of {tuned.baseline.title}"
    return f"the choice of {tuned.baseline.title} for one process on each node"


def _disables_han(tuned: Tuned) -> bool:
    """True if the library would run its component han without the rules."""
    return bool(_han(tuned)) and tuned.baseline is not None and tuned.baseline.name.startswith(OPENMPI)


def _han(tuned: Tuned) -> str:
    """The text on other code that the library runs with several processes on a node; empty if it runs none."""
    return "" if tuned.baseline is None else tuned.baseline.otherwise(tuned.per_node)


def changing(tuned: Tuned) -> str:
    """The command that shows whether the choices stay the same if the cluster changes.

    If a rate of memory is assumed, this is a sweep over it at the point where most may be lost. The command is empty if
    the cluster has no description, or if no option can repeat the placement of ranks.
    """
    places = ""
    if isinstance(tuned.platform, PlacedPlatform) and not (places := getattr(tuned.platform, "options", "")):
        return ""
    is_written = tuned.name not in known() and tuned.folder is not None
    platform = tuned.file(".toml") if is_written else tuned.name
    if is_written and not tuned.file(".toml").exists():
        return ""
    if tuned.assumed_memory:
        name, p, size = _riskiest(tuned)
        point = f"--platform {platform} --collective {name} --procs {p} --sizes {typed_sizes([size])}"
        chosen = f"--ppn {tuned.per_node}{places} --for {tuned.consumer}"
        return f"{program_name()} whatif sweep {point} {chosen} --factors memory=x0.5:x5"
    procs = ",".join(map(str, next(iter(tuned.times.values())).procs))
    are_usual = all(times.message_bytes == sizes_of(times.collective) for times in tuned.times.values())
    sizes = "" if are_usual else f" --sizes {typed_sizes(_sizes(tuned))}"
    points = (
        f"--platform {platform} --collective {','.join(tuned.times)} --procs {procs}{sizes} --ppn {tuned.per_node}"
        f"{places}"
    )
    rules = "" if tuned.folder is None else f" --decisions {shlex.quote(str(tuned.file('-decisions.json')))}"
    return f"{program_name()} whatif change {points} --for {tuned.consumer}{rules} --change bandwidth=x0.5"


def _riskiest(tuned: Tuned) -> tuple[str, int, int]:
    """The collective, P and size at which the choice may lose most; the largest if nothing is known of losses."""
    facts = sure_facts(tuned.said)
    if facts is not None:
        worst = facts["worst"]
        return worst["collective"], worst["procs"], worst["message_bytes"]
    times = next(iter(tuned.times.values()))
    return times.collective, times.procs[-1], times.message_bytes[-1]


def _known(tuned: Tuned, *names: str) -> list[float]:
    """The known gains of the collectives with these names; without names, the known gains of all collectives."""
    return [float(item) for name in names or tuned.scores for item in tuned.gains(name).flat if np.isfinite(item)]


def _sure_points(tuned: Tuned, name: str) -> dict[tuple[int, int], bool]:
    """True for points at which the choice for a collective is sure, by P and message size."""
    return next((sure_points(table, tuned.unsettled) for table in tuned.said if table.collective == name), {})


def _sure_table(tuned: Tuned) -> Table:
    """The message sizes at which the choice is sure and at which it is not, for each collective and P."""
    rows = []
    for name in tuned.scores:
        found = _sure_points(tuned, name)
        for p in sorted({procs for procs, _ in found}):
            sizes = (
                [format_size(m) for (procs, m), sure in found.items() if (procs, sure) == (p, is_sure)]
                for is_sure in (True, False)
            )
            rows.append((name, p, *(", ".join(some) or "-" for some in sizes)))
    return Table(WHERE_SURE, ("collective", "P", "sure", "not sure"), rows, 2, folded=True)


def _gain_row(tuned: Tuned, name: str) -> tuple[str, ...]:
    scores, gains = tuned.scores[name], tuned.gains(name)
    known = gains[np.isfinite(gains)]
    found = _sure_points(tuned, name)
    sure = f"{sum(found.values())} of {len(found)}" if found else "-"
    decided = len(scores.places(RULES))
    if tuned.baseline is None or not known.size:
        return (name, str(decided), "-", "-", "-", sure, "-")
    i, j = np.unravel_index(int(np.nanargmax(gains)), gains.shape)
    picks = (scores.pick(RULES, int(i), int(j)), scores.pick(tuned.baseline.title, int(i), int(j)))
    where = f"P = {scores.right.procs[i]}, {format_size(scores.right.message_bytes[j])}: " + " for ".join(
        pick.label for pick in picks
    )
    return (
        *(name, str(known.size), f"x {geometric_mean(known):.2f}"),
        f"x {' to '.join(dict.fromkeys(f'{gain:.2f}' for gain in (known.min(), known.max())))}",
        *(f"{int((known < _SLOWER).sum())} of {known.size}", sure, where if known.max() > 1 / _SLOWER else "-"),
    )


def _errors(tuned: Tuned) -> Array:
    """The absolute relative errors of the times against measured times of the same cluster."""
    scores = (compare(times, tuned.times[name]) for name, times in tuned.measured.items())
    errors = [abs(error.values) for score in scores for error in score.errors.values()]
    return np.concatenate([item[np.isfinite(item)] for item in errors]) if errors else np.empty(0)


def _gained(tuned: Tuned) -> Section:
    """The section on the gain: sentences, a row for each collective, and the map."""
    table, library = gain_table(tuned), _compared(tuned)
    bad = {(i, 4) for i, row in enumerate(table.rows) if str(row[4])[0] not in "0-"}
    known = _known(tuned)
    pictures = [Picture.of("gains", gain_figure(tuned), TEXTS.line("gains", library=library))] if known else []
    where = _sure_table(tuned)
    tables = [Table("", table.columns, table.rows, 1, bad=bad), *([where] if where.rows else [])]
    tables += [replace(item, folded=True) for item in checked_tables(tuned)]
    first, *how = _said(tuned, "result")
    path = tuned.rules.path
    assert path is not None
    return Section(
        "What the rules gain",
        [*assumptions(tuned), first, *_sure(tuned)[-2:]],
        tables,
        pictures,
        files={path.name: f"the file to take{han_caveat(tuned)}, rules for {_library(tuned)}"},
        notes=[
            Notes(
                "How sure this is",
                [*how, *(line for block in ("sure", "changes") for line in _said(tuned, block))],
                folded=True,
            ),
            Notes(
                "How gains are counted",
                TEXTS.paragraphs("counted", limit=1 - _SLOWER, close=CLOSE, sure=SURE),
                folded=True,
            ),
        ],
    )


def _use(tuned: Tuned) -> Section:
    """The section on the use of the file, with warnings first."""
    few, version = (
        told((one for one in tuned.replaced if one.too_few), tuned.decisions.tables),
        openmpi_version(tuned.consumer),
    )
    return Section(
        "How to use them",
        paragraphs=[f"{name[0].upper()}{name[1:]}" for name in (warnings_of(tuned.said, version) if version else [])],
        steps=_steps(tuned),
        notes=[
            Notes("What the rules do not cover", _limits(tuned), folded=True),
            Notes(
                "Choices that differ between the rules and the table of libcollwise",
                TEXTS.paragraphs("few", few=few, element_bytes=ELEMENT_BYTES, max_listed=_MAX_SUBSTITUTIONS),
                folded=True,
            ),
            Notes("Figures of this description that are estimates, not measured", _guessed(tuned), folded=True),
        ],
    )


def _steps(tuned: Tuned) -> list[Step]:
    """The steps by which a cluster's owner puts the rules to use, in order."""
    path = tuned.rules.path
    assert path is not None
    files = {path.name: f"rules for {_library(tuned)}"}
    ways = {"With the rules": how_to_use(tuned.rules.format_name, path)}
    if openmpi_version(tuned.consumer):
        ways = ways_to_use_openmpi_rules(path)
    if tuned.consumer != COLLWISE:
        table = tuned.file("-libcollwise.table")
        files[table.name] = (
            f"choices among the algorithms that {_library(tuned)} has: a table for libcollwise under any MPI library; "
            "'collwise tune --for collwise' chooses among all algorithms of libcollwise"
        )
        ways["With libcollwise, which runs our algorithms"] = how_to_use(COLLWISE, table)
    gain = {"In an allocation under Slurm": measuring(tuned)} if tuned.consumer.startswith(OPENMPI) else {}
    return [
        Step(TEXTS.line("take"), files),
        Step(TEXTS.line("use", per_node=tuned.per_node), commands=ways),
        Step(TEXTS.line("measure"), commands=gain),
    ]


def _limits(tuned: Tuned) -> list[str]:
    """Notes on calls that the rules do not decide, and on decisions that the times hardly support."""
    most = None if tuned.platform is None else tuned.platform.max_procs(tuned.per_node)
    lost = [name for name in tuned.scores if (known := _known(tuned, name)) and geometric_mean(known) < _SLOWER]
    charged = tuned.platform is None or charges_overheads(tuned.platform.smpi_options())
    undecided = [
        f"{name} below {format_size(least)}"
        for name, times in tuned.times.items()
        if (least := int(times.facts.get("trusted_from", 0))) > min(times.message_bytes)
    ]
    return TEXTS.paragraphs(
        "limits",
        undecided=undecided,
        charged=charged,
        largest=min(max(times.procs) for times in tuned.times.values()),
        most=most,
        lost=lost,
        library="" if tuned.baseline is None else tuned.baseline.title,
        openmpi=openmpi_version(tuned.consumer),
        one_procs=FORMATS[tuned.rules.format_name].one_procs,
    )


def _guessed(tuned: Tuned) -> list[str]:
    """The figures of the description that were not measured, according to its sources."""
    described = None if tuned.platform is None else unplaced(tuned.platform)
    sources = described.sources if isinstance(described, Description) else ()
    return [source.what for source in sources if "estimated" in source.what or "not measured" in source.what]


def _collective(scores: Scores) -> Section:
    """The points and the figures of a collective, as `compare` shows them."""
    found = scores_presented.of_one(scores)
    prefix = f"{scores.right.platform}-"
    pictures = [
        Picture.of(stem.removeprefix(prefix), draw(), TEXTS.line(kind))
        for stem, draw in found.figures.items()
        if (kind := stem.rpartition("-")[2]) in _FIGURES
    ]
    tables = [
        Table(part.title, part.columns, part.rows, 3, folded=True) for part in found.parts if isinstance(part, Table)
    ]
    lines = [part for part in found.parts if isinstance(part, str)]
    return Section(scores.right.collective, lines, tables, pictures, folded=True)


def _made(tuned: Tuned) -> Section:
    """The section on versions, the command, and the origin of the times."""
    rows = [("collwise", version("collwise")), ("Python", python_platform.python_version())]
    rows += [
        (f"times of {name}", f"{times.title}, {times.facts.get('configuration', '')[:12]}")
        for name, times in tuned.times.items()
    ]
    return Section(
        "How it was made",
        [],
        [Table("", ("", ""), rows, 2)],
        folded=True,
        commands=[own_command()] if click.get_current_context(silent=True) else [],
    )
