"""Performance guidelines of an MPI library or of a decision table: `guidelines`, `check_decisions`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from collwise import arguments
from collwise.arguments import Names, Numbers, PlatformLike
from collwise.common.errors import UsageError, check_name
from collwise.common.files import write_text
from collwise.simulator.sweeps.context import SMPI_SELECTORS, SimulationContext
from collwise.validation.libraries.baselines import BASELINES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from collwise.simulator.execution.targets import ExecutionTarget
    from collwise.simulator.sweeps.method import Method
    from collwise.validation.guidelines.criteria import RankTest, Share
    from collwise.validation.guidelines.library import Library
    from collwise.validation.guidelines.own_algorithms import OwnChecked
    from collwise.validation.guidelines.workflow import GuidelinesResult
    from collwise.validation.select.decisions import DecisionTable

SIZES_TEXT = "8:128KiB:x4"
"""The message sizes that are checked by default."""
SIMULATED_SHARE = 0.01
"""The share by which the other must be faster where times are exact."""


@dataclass(frozen=True, repr=False)
class LibraryGuidelines:
    """The answer of `guidelines`: `result` has all times; `frame`, `summary`, `figure` and `write` show them."""

    result: GuidelinesResult

    def frame(self) -> pd.DataFrame:
        """A row per comparison, before and after repair; `violated` says which are violations."""
        import pandas as pd  # the help needs no DataFrames

        from collwise.studies.reports.guidelines import comparison_records

        return pd.DataFrame(comparison_records(self.result))

    def summary(self) -> list[str]:
        """Sentences: violations before and after, the largest gain, and what was left out."""
        from collwise.studies.reports.guidelines import summary_lines

        return list(summary_lines(self.result))

    def figure(self, procs: int | None = None) -> Figure:
        """Default, mock-ups and tuned by message size, for one process count, by default the largest."""
        from collwise.studies.figures.guidelines import guidelines_figure

        return guidelines_figure(self.result, procs or max(self.result.plan.procs))

    def write(self, folder: Path | str) -> list[Path]:
        """Writes the table for libcollwise (NAME.rules) and PGMPITuneLib's profiles; none where nothing is violated."""
        from collwise.validation.guidelines.repair import profiles
        from collwise.validation.libraries.pgmpi import profile_text

        found = self.result
        stem = found.library.name
        texts: dict[str, str] = {}
        if found.tuned is not None:
            texts[f"{stem}.rules"] = found.tuned.rules
        for profile in profiles(found.ranges):
            texts[f"{stem}-{profile.function}-{profile.procs}.prf"] = profile_text(profile)
        for name, text in texts.items():
            write_text(Path(folder) / name, text)
        return [Path(folder) / name for name in texts]

    def __repr__(self) -> str:
        return f"<LibraryGuidelines {self.result.library.title}: {'; '.join(self.summary()[:2])}>"


@dataclass(frozen=True)
class Rule:
    """How violations are decided.

    `name` is 'rank', a rank test over launches, or 'share', a share of medians of medians; without one it is the rank
    test where times are measured, and 'share' where they are exact. `share` is the least share by which the other must
    be faster, by default 10 % for measured times by 'share', 1 % for exact ones, and 0 with the rank test.
    """

    name: str | None = None
    share: float | None = None
    alpha: float = 0.05
    correction: str = "bh"

    def criterion(self, exact: bool) -> RankTest | Share:
        """The criterion for exact or measured times. Raises UsageError for values that make no sense."""
        from collwise.validation.guidelines.criteria import RankTest, Share

        name = self.name or ("share" if exact else "rank")
        check_name("rule", name, RULES)
        if name == "rank":
            if exact:
                raise UsageError("--rule rank: simulated times are exact; valid here: share")
            return RankTest(self.share or 0.0, self.alpha, self.correction)
        usual = SIMULATED_SHARE if exact else Share().share
        return Share(usual if self.share is None else self.share)


RULES = ("rank", "share")


@dataclass(frozen=True)
class Measuring:
    """How a real library is measured: the method, and the number of launches, whose medians are compared.

    `on_launch` gets the number of finished launches and that of all.
    """

    method: Method | None = None
    launches: int = 10
    on_launch: Callable[[int, int], None] = lambda done, of: None


def guidelines(
    library: str | ExecutionTarget = "openmpi",
    collective: Names = "all",
    procs: Numbers = 4,
    sizes: Numbers = SIZES_TEXT,
    *,
    platform: PlatformLike | None = None,
    ppn: int | None = None,
    rule: Rule | None = None,
    repair: bool = True,
    measuring: Measuring | None = None,
    context: SimulationContext | None = None,
) -> LibraryGuidelines:
    """Checks the performance guidelines of an MPI library, repairs violations by mock-ups, and checks it again.

    Parameters: `library`, with a `platform` one of SMPI's selectors, 'ompi', 'mpich', 'mvapich2' or 'impi', simulated
    there, or the baseline 'openmpi-4.1', 'openmpi-5.0' or 'mpich-4', whose decisions the schedule engine plays there;
    else 'openmpi' or 'mpich' on this machine, or an execution target; `collective`, names of collectives that
    have guidelines, or 'all'; `procs`, process counts; `sizes`, message sizes in bytes; `ppn`, processes per node in
    simulation; `rule`, what counts as a violation; `repair`,
    whether to measure again with the repairs; `measuring`, how a real library is measured; `context`, see `session`.

    Returns the times, the violations before and after, and what repairs them, as LibraryGuidelines. What the store has
    is not made again. Raises UsageError for wrong arguments and where the library is missing, CollwiseError when it
    does not run.

    >>> import collwise
    >>> checked = collwise.guidelines("ompi", "scan", procs=4, sizes="8,64", platform="gros")
    >>> checked.frame().guideline.unique().tolist()
    ['GL20', 'monotony', 'split-robustness']
    """
    from collwise.validation.guidelines.checks import KINDS
    from collwise.validation.guidelines.workflow import Plan, run

    names = checked_collectives(collective)
    message_bytes = arguments.sizes(sizes)
    with arguments.opened(context) as simulations:
        under_test = _library(library, platform, ppn, measuring or Measuring(), simulations)
        criterion = (rule or Rule()).criterion(under_test.exact)
        plan = Plan(dict.fromkeys(names, message_bytes), arguments.counts(procs), criterion, KINDS, repair)
        return LibraryGuidelines(run(under_test, plan))


def _library(
    library: str | ExecutionTarget,
    platform: PlatformLike | None,
    ppn: int | None,
    measuring: Measuring,
    context: SimulationContext,
) -> Library:
    from collwise.simulator.execution.local_machine import LocalMachine
    from collwise.simulator.sweeps.method import Method, Precision
    from collwise.validation.guidelines.library import measured_library, recorded_library, simulated_library

    if platform is not None:
        where, name = arguments.platform(platform), str(library)
        if name in BASELINES:
            return recorded_library(where, context, BASELINES[name], ppn or 0)
        check_name("selector of SMPI or baseline", name, [*SMPI_SELECTORS, *BASELINES])
        return simulated_library(where, context, name, ppn or 0)
    if library in BASELINES or (library in SMPI_SELECTORS and library != "mpich"):
        raise UsageError(f"{library} is simulated, which needs a platform (--platform NAME|FILE)")
    target = LocalMachine(library) if isinstance(library, str) else library
    method = measuring.method or Method(precision=Precision(20, 20))
    return measured_library(target, context.store, method, measuring.launches, measuring.on_launch)


def check_decisions(
    decisions: Sequence[DecisionTable],
    platform: PlatformLike,
    procs: Numbers | None = None,
    sizes: Numbers | None = None,
    *,
    collectives: Names = "all",
    tolerance: float = SIMULATED_SHARE,
    context: SimulationContext | None = None,
) -> OwnChecked:
    """Checks the choices of decision tables against all guidelines, by simulation.

    Parameters: `decisions`, the tables (`Decisions.load(path).tables`); `platform`; `procs` and `sizes`, the points, by
    default those that the tables were made from, else the starts of their rows; `collectives`, those whose choices are
    checked; `tolerance`, the share by which a combination must be faster; `context`, see `session`.

    Returns the violations, and the combinations of collectives that are faster than a choice. Raises UsageError for
    tables without a collective that has guidelines, and CollwiseError when a simulation fails.

    >>> import collwise
    >>> chosen = collwise.select(collwise.simulate("gros", "allreduce", procs=4, sizes="8KiB"))
    >>> found = collwise.check_decisions(chosen.tables, "gros", sizes="8KiB")
    >>> sorted(one.guideline for one in found.checked.comparisons)
    ['GL5', 'GL6', 'GL7']
    """
    from collwise.validation.guidelines.guideline import COLLECTIVES
    from collwise.validation.guidelines.own_algorithms import check_tables

    where = arguments.platform(platform)
    tables = {table.collective: table for table in decisions}
    names = [name for name in checked_collectives(collectives) if name in tables]
    if not names:
        raise UsageError(f"no table of a collective with guidelines; valid: {', '.join(COLLECTIVES)}")
    asked = None if sizes is None else arguments.sizes(sizes)
    if procs is None:
        counts = tuple(sorted({count for table in tables.values() for count in table.decided_procs if count > 1}))
    else:
        counts = arguments.counts(procs)
    by_table = {name: asked or _sizes(tables[name]) for name in names}
    with arguments.opened(context) as simulations:
        return check_tables(tables, where, counts, by_table, simulations, tolerance)


def _sizes(table: DecisionTable) -> tuple[int, ...]:
    """The message sizes that a table was made from, else those that its rows start at."""
    if table.times is not None:
        return table.times.message_bytes
    return tuple(sorted({start for row in table.rules.values() for start, _ in row if start > 0}))


def checked_collectives(given: Names) -> tuple[str, ...]:
    """Names of collectives with guidelines; 'all' stands for every one. Raises UsageError for another one."""
    from collwise.validation.guidelines.guideline import COLLECTIVES

    names = COLLECTIVES if given == "all" else arguments.collectives(given)
    for name in names:
        if name not in COLLECTIVES:
            raise UsageError(f"{name} has no guidelines; valid: all, {', '.join(COLLECTIVES)}")
    return tuple(names)
