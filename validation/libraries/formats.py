"""The formats in which decision tables are exported, by name: how each is written, and how it is used."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from collwise.common.errors import UsageError
from collwise.common.program import program_name
from collwise.simulator.execution.launchers import parameter_variables
from collwise.validation.libraries import mpich_file, pgmpi, variables
from collwise.validation.libraries.collwise_table import collwise_rules
from collwise.validation.libraries.han_rules import han_rules
from collwise.validation.libraries.openmpi_rules import (
    JSON_VERSION,
    json_rules,
    openmpi_rules,
    settings_of_rules,
    warnings_of,
)
from collwise.validation.libraries.sayable import Substitution, for_consumer
from collwise.validation.select.consumers import (
    COLLWISE,
    OPENMPI,
    PGMPI,
    SMPI,
    leaves_calls,
    openmpi_consumer,
    openmpi_version,
    series,
)
from collwise.validation.select.decisions import DecisionTable, check_one_table_each
from collwise.validation.times.choice import LIBRARY_DECIDES

HAN = "han"
"""The name of the format of HAN's rules, which can express every algorithm that is made of tasks."""


@dataclass(frozen=True)
class Format:
    """A format: the consumer whose algorithms it names, how it is used and how it is written.

    In the command `use`, {file} stands for the file's name, {collwise} for the name of our program, and P and PROGRAM
    for the user's process count and program. `write` makes the file's text from tables. `holds_for` names a further
    argument of `write`: `procs`, the process count that the file is for, or `version`, the version of the library.
    `by_size` is true if the format distinguishes message sizes.
    """

    name: str
    title: str
    consumer: str
    use: str
    write: Callable[..., str]
    holds_for: str = ""
    by_size: bool = True

    @property
    def one_procs(self) -> bool:
        """True if a file of this format holds for one process count only."""
        return self.holds_for == "procs"


def _openmpi(tables: Sequence[DecisionTable], version: str) -> str:
    return json_rules(tables) if series(version) == JSON_VERSION else openmpi_rules(tables, version)


def _profile(tables: Sequence[DecisionTable], procs: int) -> str:
    return pgmpi.profile_text(pgmpi.profile_of(tables, procs))


_SETTINGS = settings_of_rules("{file}")
_MPIRUN = f"mpirun {' '.join(f'--mca {name} {value}' for name, value in _SETTINGS.items())} -n P PROGRAM"
_EXPORTED = "\n".join(f"export {name}={value}" for name, value in parameter_variables(_SETTINGS).items())
_PARAMETERS = "\n".join(f"{name} = {value}" for name, value in _SETTINGS.items())
_JSON_TITLE = "Open MPI's dynamic rules in JSON, from 6.0 on"
_COLLWISE = "{collwise} program run --library openmpi --procs P --table {file} -- PROGRAM"
_WITH_FILE = (*mpich_file.ENVIRONMENT.items(), (mpich_file.FILE_VARIABLE, "{file}"))
_MPICH = " ".join([*(f"{name}={value}" for name, value in _WITH_FILE), "mpirun -n P PROGRAM"])
_HAN = (
    "mpirun --mca coll_han_dynamic_rules_filename {file} "
    "$(sed -n 's/^#   \\(.*\\) = /--mca \\1 /p' {file}) -n P PROGRAM"
)
_SMPIRUN = "smpirun $(cat {file}) -platform PLATFORM -np P PROGRAM"
_PRF = "PGMPI_PARAMS=--ppath=$(dirname {file}) mpirun -n P PROGRAM"
_SOURCE = "source {file} && mpirun -n P PROGRAM"
FORMATS = {
    item.name: item
    for item in (
        Format(OPENMPI, "Open MPI's classic dynamic rules", OPENMPI, _MPIRUN, _openmpi, "version"),
        Format("openmpi-json", _JSON_TITLE, openmpi_consumer(JSON_VERSION), _MPIRUN, _openmpi, "version"),
        Format(COLLWISE, "the table of collwise program run", COLLWISE, _COLLWISE, collwise_rules),
        Format(HAN, "rules of Open MPI's component HAN", HAN, _HAN, han_rules, "version"),
        Format("mpich", "MPICH's selection file (JSON)", "mpich", _MPICH, mpich_file.selection_file, "version"),
        Format("mpich-variables", "MPICH's control variables", "mpich", _SOURCE, mpich_file.variables, "procs", False),
        Format("intel", "Intel MPI's I_MPI_ADJUST variables", "intel", _SOURCE, variables.intel),
        Format("mvapich2", "MVAPICH2's tuning variables", "mvapich2", _SOURCE, variables.mvapich2, "procs"),
        Format("ucc", "UCC's UCC_TL_UCP_TUNE", "ucc", _SOURCE, variables.ucc),
        Format(SMPI, "options of SMPI", SMPI, _SMPIRUN, variables.smpi, "procs", False),
        Format("prf", "profiles of PGMPITuneLib", PGMPI, _PRF, _profile, "procs"),
    )
}


def how_to_use(format_name: str, file: Path) -> str:
    """The command that uses a file in the format, from any folder; P and PROGRAM are left to the user."""
    return FORMATS[format_name].use.format(file=shlex.quote(str(file.resolve())), collwise=program_name())


def ways_to_use_openmpi_rules(file: Path) -> dict[str, str]:
    """Commands and a parameter file's lines that make Open MPI use a rules file; the keys say when each applies."""
    path = file.resolve()
    return {
        "With mpirun": how_to_use(OPENMPI, file),
        "With srun, or any other launcher that passes environment variables on":
            f"{_EXPORTED.format(file=shlex.quote(str(path)))}\nsrun --mpi=pmix -n P PROGRAM",
        "For all your runs, as lines of $HOME/.openmpi/mca-params.conf": _PARAMETERS.format(file=path),
    }  # fmt: skip


@dataclass(frozen=True)
class Exported:
    """The text of a file, the choices that its format cannot express, and warnings about its use, a line each."""

    text: str
    substitutions: tuple[Substitution, ...]
    warnings: tuple[str, ...] = ()


def exported(
    tables: Sequence[DecisionTable], format_name: str, *, version: str = "", procs: int | None = None
) -> Exported:
    """Writes tables in a format.

    If the format is for one process count and the tables have several, `procs` selects one. `version` is the version of
    Open MPI ('4.1') or MPICH ('4.0'), for their formats.
    """
    known = FORMATS[format_name]
    consumer = openmpi_consumer(version) if known.consumer == OPENMPI else known.consumer
    check_one_table_each(tables, by_node=consumer in (COLLWISE, HAN))
    versions = [version] if version and known.holds_for else []
    if consumer in (COLLWISE, HAN):
        return Exported(known.write(tables, *versions), ())
    if empty := next((table.collective for table in tables if not any(table.rules.values())), None):
        raise UsageError(f"the {empty} decision table is empty")
    said, replaced = for_consumer(tables, consumer, known.by_size)
    if leaves_calls(consumer):
        version = openmpi_version(consumer) or version
        return Exported(known.write(said, version), replaced, tuple(warnings_of(said, version)))
    if all(choice == LIBRARY_DECIDES for table in said for choice in table.choices):
        raise UsageError(
            f"{known.title} cannot express any of these choices; make them with "
            f"'collwise select --for {known.consumer}'"
        )
    if not known.one_procs:
        return Exported(known.write(said, *versions), replaced)
    counts = {count for table in said for count in table.rules}
    if procs is None and len(counts) > 1:
        raise UsageError(
            f"{known.title} cover one process count, and the tables have {len(counts)}; name one with --procs P"
        )
    wanted = counts.pop() if procs is None else procs
    rows = {(table.collective, max((p for p in table.rules if p <= wanted), default=0)) for table in said}
    used = tuple(substitution for substitution in replaced if (substitution.collective, substitution.procs) in rows)
    return Exported(known.write(said, wanted), used)
