"""What times and choices are worth by other times: `compare`; and times as a picture: `figure`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from collwise.common.errors import UsageError
from collwise.decisions import Decisions
from collwise.validation.compare.deciders import Decider, Rules
from collwise.validation.compare.scores import AllScores
from collwise.validation.compare.scores import compare as compare_times
from collwise.validation.libraries.baselines import BASELINES
from collwise.validation.times.times import Times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Compared = Times | Mapping[str, Times] | Decisions | Decider | str | Path
"""Times of one or several collectives; or what decides: Decisions, the name of an untuned library, a decisions file."""


def compare(right: Times | Mapping[str, Times], /, *others: Compared) -> AllScores:
    """What other times are worth, and what choices cost, where the times of `right` are the right ones.

    Parameters: `right`, times of a collective, or of several as `simulate`, `measure`, `predict` and `stored` return
    them; `others`, such times, or what decides: Decisions, the path of a file of decisions, the name of an untuned
    library ('openmpi-4.1'), or the best of other times (`times["bcast"].decider()`).

    Returns Scores by collective. `table()` has for each source the number of `cases`, the median, mean, 90th percentile
    and largest of the relative errors of its times, and their mean with its sign (`bias`); `tau`, Kendall's rank
    correlation of the choices; and, over the `points` at which the source chooses, how often that is the best choice,
    and the mean and worst slowdown of its choices by the right times. `table(["message_bytes", "source"])` has rows by
    other columns. `trusted()` names the source whose choices cost least, by collective and size. Raises UsageError for
    what is neither times nor a decider, and where no collective is common to all.

    >>> import collwise
    >>> times = collwise.simulate("gros", "bcast", procs="4,8", sizes="8KiB:64KiB:x8", segments=8192)
    >>> collwise.compare(times, times, "openmpi-4.1").table()[["source", "mean_slowdown"]].shape
    (2, 2)
    """
    by_name = {right.collective: right} if isinstance(right, Times) else dict(right)
    known = [_known(one) for one in others]
    common = [name for name in by_name if all(name in one for one in known if isinstance(one, Mapping))]
    if not common:
        raise UsageError(f"no collective of the right times ({', '.join(by_name)}) is one of all other times")
    return AllScores(
        compare_times(by_name[name], *(one[name] if isinstance(one, Mapping) else one for one in known))
        for name in common
    )


def _known(other: Compared) -> Mapping[str, Times] | Decider:
    if isinstance(other, str) and other in BASELINES:
        return BASELINES[other]
    if isinstance(other, (str, Path)):
        if not Path(other).exists():
            raise UsageError(f"'{other}' is no untuned library and no file; valid: {', '.join(BASELINES)}, or a file")
        other = Decisions.load(other)
    if isinstance(other, Decisions):
        return Rules(other.tables)
    if isinstance(other, Times):
        return {other.collective: other}
    if isinstance(other, Mapping) or hasattr(other, "choice"):
        return other
    raise UsageError(
        f"{type(other).__name__} is neither times nor a decider; valid: what `simulate` or `select` returns"
    )


def figure(times: Times | Mapping[str, Times], /, procs: int | None = None) -> Figure:
    """The times of every algorithm over the message size, and their ratios to the best, on P processes.

    Parameters: `times`, of one collective; `procs`, P, by default the largest one that has times.

    Each algorithm is drawn at its best segment size. Returns a matplotlib Figure. Raises UsageError for times of
    several collectives, and for a P without times.

    >>> import collwise
    >>> times = collwise.simulate("gros", "bcast", procs="4,8", sizes="8KiB:64KiB:x8", segments=8192)
    >>> len(collwise.figure(times).axes)
    2
    """
    from collwise.studies.figures.times import times_figure

    if not isinstance(times, Times):
        if len(times) != 1:
            raise UsageError(f"a figure is of one collective; these are {', '.join(times)}: take one, times['bcast']")
        (times,) = times.values()
    return times_figure(times, procs if procs is not None else max(times.procs))
