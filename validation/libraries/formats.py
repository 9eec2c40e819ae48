"""The formats in which decision tables are exported, by name: what each can say, and how it is used."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from collwise.common.errors import UsageError
from collwise.common.program import program_name
from collwise.simulator.execution.mpirun import parameter_variables
from collwise.validation.libraries import mpich_file, pgmpi, variables
from collwise.validation.libraries.collwise_table import collwise_rules
from collwise.validation.libraries.few_elements import divided, needs_elements
from collwise.validation.libraries.least_elements import least_bytes
from collwise.validation.libraries.mpich_file import selection_file
from collwise.validation.libraries.openmpi_file import settings_of_rules
from collwise.validation.libraries.openmpi_rules import (
    JSON_VERSION,
    inexpressible,
    json_rules,
    openmpi_rules,
    warnings_of,
)
from collwise.validation.libraries.openmpi_untuned import FIXED
from collwise.validation.libraries.over_untuned import with_untuned
from collwise.validation.libraries.sayable import CanSay, Expressed, Substitution, expressed
from collwise.validation.select.consumers import (
    COLLWISE,
    OPENMPI,
    PGMPI,
    SMPI,
    can_say,
    needs_one_choice,
    sees_sizes,
    series,
)
from collwise.validation.select.decisions import (
    DecisionTable,
    check_one_table_each,
    left_to_library,
    without_repeated_rows,
)
from collwise.validation.times.choice import Choice

OPENMPI_JSON, MPICH_VARIABLES = "openmpi-json", "mpich-variables"


@dataclass(frozen=True)
class Format:
    """A format: the consumer whose algorithms it names, and what it cannot say.

    `by_size`: it sees message sizes; `one_procs`: it holds for one process count. `use` is how the file is used: a
    whole command, in which {file} stands for its name, {collwise} for ours, and P and PROGRAM for the user's own.
    """

    name: str
    title: str
    consumer: str
    use: str
    by_size: bool = True
    one_procs: bool = False


_SETTINGS = settings_of_rules("{file}")
_MPIRUN = f"mpirun {' '.join(f'--mca {name} {value}' for name, value in _SETTINGS.items())} -n P PROGRAM"
_EXPORTED = "\n".join(f"export {name}={value}" for name, value in parameter_variables(_SETTINGS).items())
_PARAMETERS = "\n".join(f"{name} = {value}" for name, value in _SETTINGS.items())
_COLLWISE = "{collwise} program run --library openmpi --procs P --table {file} -- PROGRAM"
_SMPIRUN = "smpirun $(cat {file}) -platform PLATFORM -np P PROGRAM"
_PRF = "PGMPI_PARAMS=--ppath=$(dirname {file}) mpirun -n P PROGRAM"
_SOURCE = "source {file} && mpirun -n P PROGRAM"
FORMATS = {
    one.name: one
    for one in (
        Format(OPENMPI, "Open MPI's classic dynamic rules", OPENMPI, _MPIRUN),
        Format(OPENMPI_JSON, "Open MPI's dynamic rules in JSON, from 6.0 on", "openmpi-6.0", _MPIRUN),
        Format(COLLWISE, "the table of collwise program run", COLLWISE, _COLLWISE),
        Format(
            "mpich",
            "MPICH's selection file (JSON)",
            "mpich",
            " ".join(f"{name}={value}" for name, value in mpich_file.ENVIRONMENT.items())
            + f" {mpich_file.FILE_VARIABLE}={{file}} mpirun -n P PROGRAM",
        ),
        Format(MPICH_VARIABLES, "MPICH's control variables", "mpich", _SOURCE, by_size=False, one_procs=True),
        Format("intel", "Intel MPI's I_MPI_ADJUST variables", "intel", _SOURCE),
        Format("mvapich2", "MVAPICH2's tuning variables", "mvapich2", _SOURCE, one_procs=True),
        Format("ucc", "UCC's UCC_TL_UCP_TUNE", "ucc", _SOURCE),
        Format(SMPI, "options of SMPI", SMPI, _SMPIRUN, by_size=False, one_procs=True),
        Format("prf", "a profile of PGMPITuneLib", PGMPI, _PRF, one_procs=True),
    )
}


def how_to_use(format_name: str, file: Path) -> str:
    """The command that uses a file in the format from any folder; P and PROGRAM stand for the user's own."""
    return FORMATS[format_name].use.format(file=shlex.quote(str(file.resolve())), collwise=program_name())


def ways_to_use_openmpi_rules(file: Path) -> dict[str, str]:
    """The ways to use a rules file: when each is the right one, and its commands, or lines of a file."""
    path = file.resolve()
    return {
        "With mpirun": how_to_use(OPENMPI, file),
        "With srun, or any other launcher that passes environment variables on":
            f"{_EXPORTED.format(file=shlex.quote(str(path)))}\nsrun --mpi=pmix -n P PROGRAM",
        "For all your runs, as lines of $HOME/.openmpi/mca-params.conf": _PARAMETERS.format(file=path),
    }  # fmt: skip


@dataclass(frozen=True)
class Exported:
    """The text of a file, the choices that its format could not say, and warnings of its use, a line each."""

    text: str
    substitutions: tuple[Substitution, ...]
    warnings: tuple[str, ...] = ()


def exported(
    tables: Sequence[DecisionTable],
    format_name: str,
    *,
    version: str = "",
    procs: int | None = None,
) -> Exported:
    """Tables in a format; for those of one process count, `procs` says which where a table has several.

    `version` is that of Open MPI ('4.1') or MPICH ('4.0'), for their formats. Raises UsageError for what cannot be
    written.
    """
    known = FORMATS[format_name]
    check_one_table_each(tables)
    if known.name == COLLWISE:
        return Exported(collwise_rules(tables), ())
    if known.name in (OPENMPI, OPENMPI_JSON):
        return _for_openmpi(tables, JSON_VERSION if known.name == OPENMPI_JSON else version)
    said = [
        expressed(
            table,
            partial(can_say, known.consumer, table.collective),
            known.by_size and sees_sizes(known.consumer, table.collective),
        )
        for table in tables
    ]
    if all(choice is None for one in said for row in one.rows.values() for _, choice in row):
        raise UsageError(
            f"{known.title} cannot express any of these choices; make them with "
            f"'collwise select --for {known.consumer}'"
        )
    write = _WRITERS[known.name]
    text = write(said, procs if not known.one_procs else _one_count(said, procs, known.title), version)
    return Exported(
        text, tuple(one for each in said for one in each.substitutions if _is_used(one, each, known, procs))
    )


_Write = Callable[[Sequence[Expressed], int | None, str], str]
_WRITERS: dict[str, _Write] = {
    "mpich": lambda said, _, version: selection_file(said, version or mpich_file.VERSIONS[0]),
    MPICH_VARIABLES: lambda said, procs, _: mpich_file.variables(said, procs or 1),
    "intel": lambda said, procs, _: variables.intel(said),
    "mvapich2": lambda said, procs, _: variables.mvapich2(said, procs or 1),
    "ucc": lambda said, procs, _: variables.ucc(said),
    SMPI: lambda said, procs, _: variables.smpi(said, procs or 1),
    "prf": lambda said, procs, _: pgmpi.profile_text(pgmpi.profile_of(said, procs or 1)),
}


def _for_openmpi(tables: Sequence[DecisionTable], version: str) -> Exported:
    """Rules of Open MPI, classic or, for the version that reads them, in JSON."""
    said, replaced = for_openmpi(tables, version)
    json_wanted = series(version) == JSON_VERSION
    text = json_rules(said) if json_wanted else openmpi_rules(said, version)
    return Exported(text, replaced, tuple(warnings_of(said, version)))


def for_openmpi(
    tables: Sequence[DecisionTable], openmpi_version: str
) -> tuple[list[DecisionTable], tuple[Substitution, ...]]:
    """Tables that rules of an Open MPI version can say: what they cannot is replaced where times of others are known.

    A table is left as it is where they are not. An algorithm that needs a number of elements is not named where large
    elements are fewer (`few_elements`); where no times are known, the choice before it stays, or Open MPI decides. It
    decides (LIBRARY_DECIDES) as well for process counts between those with times, where the choices are for less than a
    quarter of the processes (`left_to_library`), and where its own decision is known, timed and faster.
    """
    version = series(openmpi_version)
    kept: list[DecisionTable] = []
    replaced: list[Substitution] = []
    for table in tables:
        said, substitutions = _sayable(with_untuned(table, FIXED.get(version)), version)
        kept.append(left_to_library(said, not needs_one_choice(table.collective, f"openmpi-{version}"), table))
        replaced += substitutions
    return kept, tuple(replaced)


def _sayable(table: DecisionTable, version: str) -> tuple[DecisionTable, list[Substitution]]:
    """A table in choices that rules of a version can say, where that is possible, and what was replaced."""

    def says(choice: Choice) -> bool:
        return not choice.limit_bytes and not inexpressible(table.collective, choice, version)

    by_size = sees_sizes(f"openmpi-{version}", table.collective)
    fits = all(map(says, table.choices)) and (by_size or max(map(len, table.rules.values())) == 1)
    if (fits and not needs_elements(table)) or not (fits or table.times):
        return table, []
    said = _with_enough_elements(table, says, by_size)
    if not fits and any(choice is None for row in said.rows.values() for start, choice in row if start):
        return table, []
    expressible = (
        (count, tuple((start, choice) for start, choice in steps if choice is not None))
        for count, steps in said.rows.items()
    )
    rules = without_repeated_rows(expressible, table.rules)
    return replace(table, rules=rules), [one for one in said.substitutions if one.procs in rules]


def _with_enough_elements(table: DecisionTable, says: CanSay, by_size: bool) -> Expressed:
    """The table in choices that Open MPI can be asked for, each where it has enough elements."""
    if not by_size:
        return expressed(table, says, by_size)
    cut, largest = divided(table)

    def too_few(procs: int, start: int, choice: Choice) -> bool:
        return start < least_bytes(table.collective, choice.algorithm, largest[procs])

    return expressed(cut, says, by_size, too_few)


def _one_count(said: Sequence[Expressed], procs: int | None, title: str) -> int:
    counts = {count for one in said for count in one.rows}
    if procs is None and len(counts) > 1:
        raise UsageError(
            f"{title} hold for one process count, and the tables have {len(counts)}; say for which: --procs P"
        )
    return procs if procs is not None else counts.pop()


def _is_used(one: Substitution, said: Expressed, known: Format, procs: int | None) -> bool:
    """Whether a substitution is in the row that a format of one process count writes."""
    if not known.one_procs or procs is None:
        return True
    return one.procs == max(count for count in said.rows if count <= procs)
