"""Performance guidelines of MPI libraries and of decisions: `guidelines`, `measured_guidelines`, `check_decisions`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from collwise import arguments
from collwise.arguments import DecisionsLike, Names, Numbers, PlatformLike
from collwise.common.errors import CollwiseError, UsageError, check_name, note
from collwise.common.files import note_replaced, write_text
from collwise.simulator.execution.launchers import LocalMachine
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import SCHEDULE, SMPI_SELECTORS, SimulationContext
from collwise.simulator.sweeps.method import Method, Precision
from collwise.validation.guidelines.checks import COLLECTIVES, RankTest, Share
from collwise.validation.libraries.baselines import BASELINES

if TYPE_CHECKING:
    import pandas as pd

    from collwise.validation.guidelines.library import Library
    from collwise.validation.guidelines.own_algorithms import OwnChecked
    from collwise.validation.guidelines.workflow import GuidelinesResult
    from collwise.validation.select.decisions import DecisionTable

SIZES_TEXT = "8:128KiB:x4"
"""The message sizes that are checked by default."""
RULES = ("rank", "share")
"""The rules that decide on violations: a rank test over launches, and a share by which medians must differ."""
USUAL = Method(precision=Precision(20, 20), launches=10)
"""The default method of measuring libraries."""
_PLAYED = ("openmpi-4.1", "mpich-4")
"""The libraries whose collectives the schedule engine simulates by default."""


class Guidelines(dict[str, "GuidelinesResult"]):
    """The results of `guidelines`: times, violations and repairs of each library, by name.

    `problem` is the error of the first library that has no results.
    """

    problem: CollwiseError | None = None

    def frame(self) -> pd.DataFrame:
        """A row per comparison, before and after repair; `violated` says which are violations."""
        import pandas as pd

        from collwise.studies.present.guidelines import comparison_records

        return pd.DataFrame([record for result in self.values() for record in comparison_records(result)])

    def save(self, folder: str | Path) -> list[Path]:
        """Writes tables for libcollwise (NAME.rules) and profiles for PGMPITuneLib, if there are violations."""
        from collwise.validation.guidelines.workflow import profiles
        from collwise.validation.libraries.pgmpi import profile_text

        texts: dict[Path, str] = {}
        for name, found in self.items():
            if found.tuned is not None:
                texts[Path(folder, f"{name}.rules")] = found.tuned.rules
            for profile in profiles(found.ranges):
                texts[Path(folder, f"{name}-{profile.function}-{profile.procs}.prf")] = profile_text(profile)
        note_replaced(next((path for path in texts if path.is_file()), Path(folder)))
        for path, text in texts.items():
            write_text(path, text)
        return [*texts]


def guidelines(
    platform: PlatformLike,
    libraries: Names | None = None,
    collective: Names = "all",
    procs: Numbers = 4,
    sizes: Numbers = SIZES_TEXT,
    *,
    share: float = 1.0,
    repair: bool = True,
    ppn: int | None = None,
    context: SimulationContext | None = None,
) -> Guidelines:
    """Checks performance guidelines of simulated libraries.

    The method is that of Hunold & Carpen-Amarie 2018. A collective must not be slower than a mock-up of other
    collectives (GL1 to GL22), than itself on a larger message (monotony), or than several calls on parts of the message
    (split-robustness). The fastest mock-up repairs a violation; the benchmark then runs again under libcollwise. The
    libraries are SMPI's selectors: ompi, mpich, mvapich2, impi. With --engine schedule they are the untuned libraries,
    such as openmpi-4.1 and mpich-4, for up to thousands of processes.

    Returns Guidelines, by library.

    >>> import collwise
    >>> checked = collwise.guidelines("gros", "ompi", "scan", procs=4, sizes="8,64")
    >>> checked.frame().guideline.unique().tolist()
    ['GL20', 'monotony', 'split-robustness']
    """
    from collwise.validation.guidelines.library import recorded_library, simulated_library

    where, by, found = arguments.platform(platform), Share(share / 100), Guidelines()
    with arguments.opened(context) as simulations:
        plays = simulations.engine is SCHEDULE
        names = arguments.names(libraries) if libraries is not None else _PLAYED if plays else SMPI_SELECTORS
        for name in names:
            check_name("library", name, [*SMPI_SELECTORS, *BASELINES])
            if plays and name not in BASELINES:
                valid = ", ".join(BASELINES)
                raise UsageError(f"{name} is one of SMPI's selectors; with --engine schedule, choose one of {valid}")
        for name in names:
            if name in BASELINES:
                under_test = recorded_library(where, simulations, BASELINES[name], ppn or 0)
            else:
                under_test = simulated_library(where, simulations, name, ppn or 0)
            try:
                found |= _checked(under_test, by, collective, procs, sizes, repair)
            except UsageError:
                raise
            except CollwiseError as problem:
                found.problem = found.problem or problem
    return found


def measured_guidelines(
    target: str | ExecutionTarget = "openmpi",
    collective: Names = "all",
    procs: Numbers = 4,
    sizes: Numbers = SIZES_TEXT,
    *,
    rule: str = "rank",
    share: float | None = None,
    alpha: float = 0.05,
    correction: str = "bh",
    method: Method = USUAL,
    repair: bool = True,
    store: str | Path | None = None,
    on_launch: Callable[[int, int], None] = lambda done, of: note(f"{done} of {of} launches"),
) -> Guidelines:
    """Checks a real library against performance guidelines.

    It checks what 'collwise guidelines simulate' checks, and repairs violations. It runs on this machine, hosts, a
    batch job's nodes or a test bed. The medians of several launches are compared.

    Returns Guidelines.

    >>> import collwise
    >>> from collwise.simulator.sweeps.method import Method, Precision
    >>> quick = Method(precision=Precision(2, 2), launches=2)
    >>> checked = collwise.measured_guidelines("openmpi", "gather", procs=2, sizes=8, rule="share", method=quick)
    >>> checked.frame().guideline.unique().tolist()
    ['GL11', 'GL12', 'GL13']
    """
    from collwise.validation.guidelines.library import measured_library

    check_name("rule", rule, RULES)
    if method.launches < 2:
        raise UsageError(f"--launches {method.launches}: at least 2 are needed, since medians of launches are compared")
    if rule == "rank":
        criterion: Share = RankTest((share or 0) / 100, alpha, correction)
    else:
        criterion = Share() if share is None else Share(share / 100)
    where = LocalMachine(target) if isinstance(target, str) else target
    with Store(arguments.store_path(store)) as opened:
        once = replace(method, launches=1)
        if method.nrep is not None:
            once = replace(once, precision=replace(method.precision, min_repetitions=1))
        under_test = measured_library(where, opened, once, method.launches, on_launch)
        return _checked(under_test, criterion, collective, procs, sizes, repair)


def _checked(
    library: Library, criterion: Share, collective: Names, procs: Numbers, sizes: Numbers, repair: bool
) -> Guidelines:
    from collwise.validation.guidelines.workflow import Plan, run

    plan = Plan(
        dict.fromkeys(_with_guidelines(collective), arguments.sizes(sizes)),
        arguments.counts(procs),
        criterion,
        repair=repair,
    )
    return Guidelines({library.name: run(library, plan)})


def check_decisions(
    decisions: DecisionsLike,
    /,
    platform: PlatformLike,
    collective: Names = "all",
    procs: Numbers | None = None,
    sizes: Numbers | None = None,
    *,
    share: float = 1.0,
    context: SimulationContext | None = None,
) -> OwnChecked:
    """Checks the choices of `decisions` against all guidelines.

    It simulates the choices, and lists combinations of collectives that are faster than a choice.

    Returns the violations, and the combinations of collectives that are faster than a choice.

    >>> import collwise
    >>> chosen = collwise.select(collwise.simulate("gros", "allreduce", procs=4, sizes="8KiB"))
    >>> found = collwise.check_decisions(chosen, "gros", sizes="8KiB")
    >>> sorted(one.guideline for one in found.checked.comparisons)
    ['GL5', 'GL6', 'GL7']
    """
    from collwise.validation.guidelines.own_algorithms import check_tables

    where = arguments.platform(platform)
    tables = {table.collective: table for table in arguments.decisions(decisions).tables}
    names = [name for name in _with_guidelines(collective) if name in tables]
    if not names:
        raise UsageError(f"none of the tables is of a collective with guidelines; valid: {', '.join(COLLECTIVES)}")
    asked = None if sizes is None else arguments.sizes(sizes)
    if procs is None:
        counts = tuple(sorted({count for table in tables.values() for count in table.decided_procs if count > 1}))
    else:
        counts = arguments.counts(procs)
    by_table = {name: asked or _sizes(tables[name]) for name in names}
    with arguments.opened(context) as simulations:
        return check_tables(tables, where, counts, by_table, simulations, share / 100)


def _sizes(table: DecisionTable) -> Sequence[int]:
    """The message sizes from which a table was made; if these are unknown, the sizes at which its rules start."""
    if table.times is not None:
        return table.times.message_bytes
    return sorted({start for row in table.rules.values() for start, _ in row if start > 0})


def _with_guidelines(given: Names) -> tuple[str, ...]:
    """Names of collectives with guidelines; 'all' stands for every one. Raises UsageError for any other."""
    names = arguments.collectives(given)
    if names == arguments.collectives("all"):
        return COLLECTIVES
    for name in names:
        if name not in COLLECTIVES:
            raise UsageError(f"{name} has no guidelines; valid: all, {', '.join(COLLECTIVES)}")
    return names
