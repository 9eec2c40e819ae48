"""Compares times and choices with reference times (`compare`), and draws results (`figure`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from collwise import arguments
from collwise.arguments import TimesLike
from collwise.common.errors import UsageError, check_name, located, note
from collwise.common.files import read_text
from collwise.decisions import Decisions
from collwise.platforms import HostPlatform
from collwise.validation.compare.deciders import Decider, Rules
from collwise.validation.libraries.baselines import BASELINES, Baseline
from collwise.validation.libraries.openmpi_check import rules_decider

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from collwise.validation.compare.scores import AllScores, Scores
    from collwise.validation.times.times import Times

DeciderLike: TypeAlias = "Decisions | Decider | str | Path"
"""A decider: Decisions, the name of an untuned library, a file of decisions, or a file of rules for Open MPI."""
Compared: TypeAlias = "TimesLike | DeciderLike"
"""Times, or a decider."""


def compare(reference: TimesLike, /, *others: Compared) -> AllScores:
    """Compares times, and the choices of decision files or libraries, with reference times.

    `reference` holds the reference times. `others` are times (files or store:QUERY) or deciders: files of decisions,
    names of untuned libraries (openmpi-4.1), or rules files of Open MPI. The slowdown of a choice is known only if
    `reference` contains the time of this choice; 'collwise simulate --deciders' also times the choices of deciders. The
    slowdown of a library is negative where the library uses a faster algorithm that collwise never chooses. Of times
    simulated with --allocations, the medians over the allocations are compared.

    Returns Scores by collective. `table()` has a row for each source. Its columns are the number of `cases`; the
    median, mean, 90th percentile and maximum of the relative errors of the source's times; the mean of the signed
    errors (`bias`); Kendall's rank correlation of the choices (`tau`); the number of `points` at which the source
    chooses; the number of these points at which it chooses the best; and the mean and worst slowdown of its choices,
    according to the reference times. For rows by other columns, name them: `table(["message_bytes", "source"])`.
    `trusted()` names, for each collective and size, the source whose choices have the smallest slowdown. Raises
    UsageError for arguments that are neither times nor deciders, and if no collective is common to all.

    >>> import collwise
    >>> times = collwise.simulate("gros", "bcast", procs="4,8", sizes="8KiB:64KiB:x8", segments=8192)
    >>> collwise.compare(times, times, "openmpi-4.1").table()[["source", "mean_slowdown"]].shape
    (2, 2)
    """
    from collwise.validation.compare.scores import AllScores, compare as compare_times

    by_name = _typical(reference)
    known = [_known(other) for other in others]
    if not known:
        raise UsageError(f"name what to compare with: times, decisions, rules or one of {', '.join(BASELINES)}")
    common = [name for name in by_name if all(name in item for item in known if isinstance(item, Mapping))]
    if not common:
        raise UsageError(f"no collective of the reference times ({', '.join(by_name)}) is in all other times")

    def scores(name: str) -> Scores:
        given = [item[name] if isinstance(item, Mapping) else item for item in known]
        for baseline in given:
            if isinstance(baseline, Baseline):
                baseline.decide(name, 2, 1)
        return compare_times(by_name[name], *given)

    return AllScores(arguments.possible(common, scores).values())


def _known(other: Compared) -> Mapping[str, Times] | Decider:
    from collwise.validation.times.times import Times

    if isinstance(other, (str, Path)):
        is_times = str(other).startswith(arguments.STORED) or _is_document(Path(other), dict)
        return _typical(other) if is_times else decider(other)
    return _typical(other) if isinstance(other, Times | Mapping) else decider(other)


def _typical(given: TimesLike) -> Mapping[str, Times]:
    """Times by collective; the medians if there are several allocations."""
    from collwise.validation.times.allocations import over_allocations

    return {name: over_allocations(times) for name, times in arguments.times(given).items()}


def decider(given: DeciderLike) -> Decider:
    """The decider that is given or named. Raises UsageError for anything else."""
    if isinstance(given, str | Path):
        word, path = str(given), Path(given)
        if word in BASELINES:
            return BASELINES[word]
        if not path.exists():
            raise UsageError(
                f"'{word}' is neither an untuned library nor a file; valid: {', '.join(BASELINES)}, or a file"
            )
        if not _is_document(path, list):
            with located(f"{path} is neither times nor decisions, and is read as rules for Open MPI"):
                return rules_decider(path)
        return Rules(Decisions.load(path).tables, path.name)
    if isinstance(given, Decisions):
        return Rules(given.tables)
    if not hasattr(given, "choice"):
        raise UsageError(
            f"{type(given).__name__} is neither times nor a decider; expected what `simulate` or `select` returns"
        )
    return given


def _is_document(path: Path, kind: type) -> bool:
    """True if the file has JSON of this kind: a list for decisions, a dict for times."""
    try:
        return isinstance(json.loads(read_text(path)), kind) if path.exists() else False
    except (json.JSONDecodeError, RecursionError):
        return False


def figure(result: Any, /, kind: str | None = None, procs: int | None = None) -> Figure:
    """A picture of times, of scores, of a platform, or of what another function of this module returned.

    Parameters: `result`, what is drawn. `kind`: for scores of one collective 'choices' (the default) or 'slowdowns';
    for scores of several collectives a column of their table, by default 'mean_error'; for other results the name of a
    file that --figures would write, by default the first; for decisions 'PLATFORM-COLLECTIVE'. `procs`, for times: P,
    by default the largest with times.

    Times are drawn over the message size, each algorithm at its best segment size, with their ratios to the best. A
    notebook shows the matplotlib Figure that is returned. Raises UsageError for results without such a picture.

    >>> import collwise
    >>> times = collwise.simulate("gros", "bcast", procs="4,8", sizes="8KiB:64KiB:x8", segments=8192)
    >>> len(collwise.figure(times).axes)
    2
    """
    from collwise.studies.figures import maps
    from collwise.studies.figures.picks import times_figure
    from collwise.studies.figures.platform import platform_figure
    from collwise.studies.present.shown import PRESENTERS, shown
    from collwise.validation.compare.scores import AllScores, Scores
    from collwise.validation.times.times import Times

    if isinstance(result, HostPlatform):
        return platform_figure(result)
    if isinstance(result, AllScores):
        if len(result) > 1 or kind not in (None, *_OF_ONE):
            return maps.score_maps(result, kind or "mean_error")
        (result,) = result.values()
    if isinstance(result, Scores):
        check_name("figure", kind or "choices", _OF_ONE)
        title = f"{result.right.collective} on {result.right.platform}"
        draw = maps.slowdown_figure if kind == "slowdowns" else maps.decision_figure
        return draw(result, title)
    if isinstance(result, Mapping) and all(isinstance(item, Times) for item in result.values()):
        if len(result) != 1:
            raise UsageError(
                f"a figure shows one collective, not {', '.join(result)}; take one, for example times['bcast']"
            )
        (result,) = result.values()
    if isinstance(result, Times):
        if procs is None and len(result.procs) > 1:
            others = ", ".join(map(str, result.procs[:-1]))
            note(f"drawn for P = {max(result.procs)}; figure(times, procs=P) draws P = {others}")
        return times_figure(result, procs if procs is not None else max(result.procs))
    figures = shown(result).figures if type(result).__name__ in PRESENTERS else {}
    if not figures:
        raise UsageError(
            f"{type(result).__name__} cannot be plotted; expected times, scores, a platform, decisions with times, "
            "or what another function returned"
        )
    check_name("figure", kind or next(iter(figures)), figures)
    return figures[kind or next(iter(figures))]()


_OF_ONE = ("choices", "slowdowns")
"""The figures of the scores of one collective."""
