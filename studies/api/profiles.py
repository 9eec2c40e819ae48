"""Profiles of programs: `profile` reads one and says what other algorithms would save, `achieved` what they did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from collwise import arguments
from collwise.arguments import Numbers, PlatformLike
from collwise.common.errors import UsageError, warn
from collwise.common.units import counted
from collwise.simulator.execution.profiles import Profile, differing_calls, profile_of_runs, read_profile
from collwise.simulator.sweeps.context import SimulationContext
from collwise.validation.library_defaults.baselines import baseline as baseline_of
from collwise.validation.select.decisions import decisions_from
from collwise.validation.times.defaults import SEGMENTS_TEXT
from collwise.validation.whatif.workload import BEST_BEFORE, Savings, Workload, achieved_between, rules_of, savings


@dataclass(frozen=True, repr=False)
class ProfileResult:
    """The answer of `profile`: `profile` has the run's calls, `savings` what is known of them, None if nobody asked."""

    profile: Profile
    savings: Savings | None

    def frame(self) -> pd.DataFrame:
        """A row per collective, communicator and size, the most time first.

        Columns: those of the report (docs/interposing.md); `share` of the run's time; and if savings were asked for,
        `default` and `tuned`, the algorithms, `default_seconds` and `tuned_seconds` of one call, and `saving_seconds`
        of all calls with the half-width of its confidence interval; nan where nothing is known.
        """
        known = {} if self.savings is None else {one.row: one for one in self.savings.rows}
        rows = []
        for row in sorted(self.profile.rows, key=lambda row: -row.seconds * row.processes):
            spent = row.seconds * row.processes / self.profile.processes
            share = spent / self.profile.seconds if self.profile.seconds else 0.0
            found: dict[str, object] = {**vars(row), "share": share}
            if self.savings is not None:
                one = known.get(row)
                found |= {
                    "default": one.default.label if one else "-",
                    "tuned": one.tuned.label if one else "-",
                    "default_seconds": one.default_seconds if one else float("nan"),
                    "tuned_seconds": one.tuned_seconds if one else float("nan"),
                    "saving_seconds": one.saving_seconds if one else float("nan"),
                    "saving_half_width_seconds": one.saving_half_width if one else float("nan"),
                }
            rows.append(found)
        return pd.DataFrame(rows)

    @property
    def saving_seconds(self) -> float:
        """What a tuned table would save, by the mean process; nan if that was not asked."""
        return float("nan") if self.savings is None else self.savings.saving_seconds(self.profile.processes)

    @property
    def saving_half_width(self) -> float:
        """The half-width of its confidence interval, by those of measured times; nan where these are not known."""
        return float("nan") if self.savings is None else self.savings.saving_half_width(self.profile.processes)

    def rules(self) -> str:
        """A table for libcollwise with the tuned choices. Raises UsageError if savings were not asked for."""
        if self.savings is None:
            raise UsageError("rules need the savings: give a platform or decisions")
        return rules_of(self.savings)

    def __repr__(self) -> str:
        return f"<ProfileResult {len(self.profile.rows)} rows, {self.profile.collective_seconds:.3g} s in collectives>"


def profile(
    report: str | Path | Sequence[str | Path],
    platform: PlatformLike | None = None,
    *,
    decisions: str | Path | None = None,
    baseline: str | None = None,
    segments: Numbers = SEGMENTS_TEXT,
    ppn: int | None = None,
    context: SimulationContext | None = None,
) -> ProfileResult:
    """Which collectives of a program matter, and what other algorithms would save.

    Parameters: `report`, the report of libcollwise in JSON (`collwise profile -o`, or COLLWISE_REPORT=FILE.json), or
    those of several runs, whose times are then medians; where the times of algorithms come from, either `platform`,
    see `platform`, which is simulated, or `decisions`, a file of `collwise select`, whose own times count; `baseline`,
    the library whose decisions run untuned, by default the installed Open MPI; `segments`, the segment sizes that tuned
    choices may have; `ppn`, processes per node on the platform, by default as they were in the run; `context`, see
    `session`, by default one of the schedule engine.

    Returns a ProfileResult. Raises UsageError for wrong arguments and files.

    >>> import collwise
    >>> row = '{"collective": "bcast", "communicator": "MPI_COMM_WORLD", "ranks": "0-15", "processes": 16, '
    >>> row += '"processes_per_node": 1, "mpis_own": "no rule", "least_bytes": 1048576, "most_bytes": 2097151, '
    >>> row += '"mean_bytes": 1048576, "calls": 100, "seconds": 0.4, "shortest_seconds": 0.3, "longest_seconds": 0.5}'
    >>> text = '{"collwise_report": 1, "processes": 16, "seconds": 2.0, "rows": [' + row + "]}"
    >>> _ = open("report.json", "w").write(text)
    >>> found = collwise.profile("report.json", "gros")
    >>> 0 < found.saving_seconds < 0.4
    True
    """
    if platform is not None and decisions is not None:
        raise UsageError("give either a platform or decisions")
    read = _profile_of(report)
    if ppn is not None:
        read = replace(read, rows=tuple(replace(row, processes_per_node=ppn) for row in read.rows))
    library = baseline_of(baseline)
    called = Workload.of(read.rows)
    if decisions is not None:
        tables = decisions_from(Path(decisions))
        return ProfileResult(read, savings(called, tables, lambda calls, _: calls.untuned(library)))
    if platform is None:
        return ProfileResult(read, None)
    where = arguments.platform(platform)
    with arguments.opened(context, "schedule") as simulations:
        times = called.simulated(where, simulations, library, arguments.sizes(segments))
    found = savings(called, times, lambda calls, best: calls.untuned(library) or (best, BEST_BEFORE))
    return ProfileResult(read, replace(found, made_by=f"{where.title}, {found.made_by}"))


def _profile_of(report: str | Path | Sequence[str | Path]) -> Profile:
    reports = [report] if isinstance(report, str | Path) else report
    profiles = [read_profile(Path(one)) for one in reports]
    whole = profile_of_runs(profiles)
    differing, kinds = max(differing_calls(whole, one) for one in profiles)
    if differing:
        warn(f"the runs of {_names(report)} differ in the number of {differing} of {counted(kinds, 'kind')} of calls")
    return whole


def _names(report: str | Path | Sequence[str | Path]) -> str:
    return str(report) if isinstance(report, str | Path) else ", ".join(map(str, report))


def achieved(before: str | Path | Sequence[str | Path], after: str | Path | Sequence[str | Path]) -> pd.DataFrame:
    """What a tuned run saved: the calls that two reports of a program have in common.

    Parameters: `before` and `after`, reports of libcollwise in JSON, each of one run or of several.

    Returns a DataFrame with a row per collective, communicator and size: `ran_before` and `ran`, what ran in the two
    runs, `changed`, whether that is another algorithm, `seconds_before` and `seconds_after` of the mean process, and
    `saving_seconds`; the frame's `attrs` have the numbers of runs. Warns where the runs made different calls.
    Raises UsageError for other files.

    >>> import collwise
    >>> row = '{"collective": "bcast", "communicator": "MPI_COMM_WORLD", "ranks": "0-15", "processes": 16, '
    >>> row += '"processes_per_node": 1, "mpis_own": "no rule", "least_bytes": 1048576, "most_bytes": 2097151, '
    >>> row += '"mean_bytes": 1048576, "calls": 100, "seconds": %s, "shortest_seconds": 0.3, "longest_seconds": 0.5}'
    >>> text = '{"collwise_report": 1, "processes": 16, "seconds": 2.0, "rows": [' + row + "]}"
    >>> for name, seconds in (("before.json", 0.4), ("after.json", 0.3)):
    ...     _ = open(name, "w").write(text % seconds)
    >>> collwise.achieved("before.json", "after.json").saving_seconds.round(3).tolist()
    [0.1]
    """
    first, second = _profile_of(before), _profile_of(after)
    rows = achieved_between(first, second)
    differing, kinds = differing_calls(first, second)
    if differing or first.processes != second.processes:
        warn(
            f"{_names(before)} and {_names(after)} differ in the number of {differing} of {counted(kinds, 'kind')} of "
            "calls (collective, communicator, size): they seem to be of different programs, inputs or process counts, "
            "and what is saved between such runs means nothing"
        )
    frame = pd.DataFrame(
        {
            "collective": one.row.collective,
            "communicator": one.row.where,
            "processes": one.row.processes,
            "least_bytes": one.row.least_bytes,
            "calls": one.row.calls,
            "ran_before": one.row.ran,
            "ran": one.ran,
            "changed": one.changed,
            "seconds_before": one.seconds_before,
            "seconds_after": one.seconds_after,
            "saving_seconds": one.saving_seconds,
        }
        for one in rows
    )
    frame.attrs = {"runs_before": len(first.run_seconds) or 1, "runs_after": len(second.run_seconds) or 1}
    return frame
