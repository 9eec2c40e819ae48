"""Tables as environment variables and options: Intel MPI, MVAPICH2, UCC and SMPI.

docs/exports.md says what each library's variables can and cannot express, with the sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.common.units import counted
from collwise.validation.libraries.openmpi_rules import repeated
from collwise.validation.select.decisions import DecisionTable, from_zero, spans
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice

_LARGEST = 2**31 - 1

# For these, Intel MPI compares the total size of all blocks, while our message size is the mean size of a block.
_INTEL_TOTALS = ("allgatherv",)


def intel(tables: Sequence[DecisionTable]) -> str:
    """Shell lines that set I_MPI_ADJUST_COLLECTIVE="id:l-m@p-q;...", for l to m bytes on p to q processes."""
    lines = ["# Sizes are bytes of a block or message; 0 lets Intel MPI decide."]
    for table in tables:
        name = table.collective
        presets: dict[str, list[str]] = {}
        for said, (first, last), (start, end) in _ranges(table, "intel", name in _INTEL_TOTALS):
            upper = _LARGEST if end is None else min(end, _LARGEST)
            presets.setdefault(said, []).append(f"{start}-{upper}@{first}-{last}")
        if presets:
            value = ";".join(f"{preset}:{','.join(conditions)}" for preset, conditions in presets.items())
            lines.append(f'export I_MPI_ADJUST_{name.upper()}="{value}"')
    return "\n".join(lines) + "\n"


def _ranges(
    table: DecisionTable, library: str, compares_totals: bool
) -> Iterator[tuple[str, tuple[int, int], tuple[int, int | None]]]:
    """The library's name of each choice, with its first and last process count and message size (None: no end)."""
    for low, end_procs, row in spans(list(table.rules.items())):
        high = None if end_procs is None else end_procs - 1
        multiplied = compares_totals and len(from_zero(row)) > 1
        for first, last in _each(low, high) if multiplied else [(low, _LARGEST if high is None else high)]:
            factor = first if multiplied else 1
            for start, end, choice in spans(row):
                if choice != LIBRARY_DECIDES:
                    sizes = start * factor, None if end is None else end * factor - 1
                    yield _name_in(library, table.collective, choice), (first, last), sizes


def _each(low: int, high: int | None) -> Iterator[tuple[int, int]]:
    """Ranges of process counts, so short that a threshold that depends on P is at most 1/33 too low."""
    last = low + 16 if high is None else high
    firsts = list(repeated(low, last + 1))
    yield from zip(firsts, [*(first - 1 for first in firsts[1:]), last], strict=True)
    # In the last row one range has all larger counts.
    if high is None:
        yield last + 1, _LARGEST


# MVAPICH2's tuning variable for each collective.
_MVAPICH2 = {
    "alltoall": "MV2_ALLTOALL_TUNING",
    "reduce_scatter": "MV2_INTER_RED_SCAT_TUNING",
    **{
        name: f"MV2_INTER_{name.upper()}_TUNING"
        for name in ("bcast", "gather", "scatter", "allgather", "allgatherv", "reduce", "allreduce")
    },
}
_MAX_RANGES = 32


def mvapich2(tables: Sequence[DecisionTable], procs: int) -> str:
    """Shell lines that set MV2_INTER_COLLECTIVE_TUNING="id:l-m,id:m-+" for a job of P processes.

    MVAPICH2's variables cannot depend on P, and cannot leave some sizes to MVAPICH2. So the first choice begins at 0.
    """
    lines = [f"# For jobs of {procs} processes.", "export MV2_USE_INDEXED_TUNING=0"]
    for table in tables:
        name = table.collective
        steps = [(start, choice) for start, choice in table.whole_row(procs) if choice != LIBRARY_DECIDES]
        if not steps or name not in _MVAPICH2:
            continue
        if len(steps) > _MAX_RANGES:
            raise UsageError(f"{name}: {len(steps)} ranges of sizes; MVAPICH2 takes at most {_MAX_RANGES}")
        ranges = [
            f"{_name_in('mvapich2', name, choice)}:{low}-{'+' if high is None else high - 1}"
            for low, high, choice in spans([(0, steps[0][1]), *steps[1:]])
        ]
        value = ",".join(ranges) if len(ranges) > 1 else _name_in("mvapich2", name, steps[0][1])
        lines.append(f'export {_MVAPICH2[name]}="{value}"')
    return "\n".join(lines) + "\n"


# UCC's names of collectives that differ from ours.
_UCC = {"reduce_scatter": "reduce_scatterv", "reduce_scatter_block": "reduce_scatter"}
# UCC compares the bytes of all blocks together.
_UCC_TOTALS = ("gather", "allgather", "allgatherv", "alltoall")
_UCC_OPTIONS = {
    ("bcast", "knomial"): "UCC_TL_UCP_BCAST_KN_RADIX=4",
    ("bcast", "sag_knomial"): "UCC_TL_UCP_BCAST_SAG_KN_RADIX=2",
    ("gather", "knomial"): "UCC_TL_UCP_GATHER_KN_RADIX=2",
    ("allgather", "knomial"): "UCC_TL_UCP_ALLGATHER_KN_RADIX=2",
    ("alltoall", "pairwise"): "UCC_TL_UCP_ALLTOALL_PAIRWISE_NUM_POSTS=1",
    ("alltoallv", "pairwise"): "UCC_TL_UCP_ALLTOALLV_PAIRWISE_NUM_POSTS=1",
    ("barrier", "knomial"): "UCC_TL_UCP_BARRIER_KN_RADIX=2",
    ("reduce", "knomial"): "UCC_TL_UCP_REDUCE_KN_RADIX=4",
    ("reduce", "srg"): "UCC_TL_UCP_REDUCE_SRG_KN_RADIX=2",
    ("allreduce", "knomial"): "UCC_TL_UCP_ALLREDUCE_KN_RADIX=2",
    ("allreduce", "sra_knomial"): "UCC_TL_UCP_ALLREDUCE_SRA_KN_RADIX=2",
}


def ucc(tables: Sequence[DecisionTable]) -> str:
    """Shell lines that set UCC_TL_UCP_TUNE: tokens of collective, sizes, team sizes, score and algorithm."""
    tokens: list[str] = []
    options: dict[str, None] = {}
    for table in tables:
        name = table.collective
        for said, (first, last), (start, end) in _ranges(table, "ucc", name in _UCC_TOTALS):
            if option := _UCC_OPTIONS.get((name, said)):
                options[option] = None
            sizes = f"{start}-{'inf' if end is None else end}"
            team = f"[{first}-{'inf' if last == _LARGEST else last}]"
            tokens.append(f"{_UCC.get(name, name)}:{sizes}:{team}:inf:@{said}")
    lines = ["# mpirun --mca coll_ucc_enable 1 --mca coll_ucc_priority 100 makes Open MPI use UCC."]
    lines += [f"export {option}" for option in options]
    return "\n".join([*lines, f"export UCC_TL_UCP_TUNE='{'#'.join(tokens)}'"]) + "\n"


def ucc_summary(tables: Sequence[DecisionTable], text: str) -> str:
    """A line on what a file for UCC expresses of the tables, and what it cannot express."""
    value = text.partition("UCC_TL_UCP_TUNE='")[2]
    tokens = [token for token in value.split("#") if ":" in token]
    named = {token.partition(":")[0] for token in tokens}
    names = [table.collective for table in tables]
    said = [name for name in names if _UCC.get(name, name) in named]
    parts = [f"{counted(len(tokens), 'token')} for {', '.join(said)}, by size and process count; no segment sizes"]
    if "_RADIX=" in text:
        parts.append("one radix of trees for all calls")
    if totals := [name for name in said if name in _UCC_TOTALS]:
        parts.append(f"UCC compares total sizes of {', '.join(totals)}: from P = 64 on, choices switch up to 3 % early")
    if others := [name for name in names if name not in said]:
        parts.append(f"UCC decides {', '.join(others)} itself")
    return f"UCC: {'; '.join(parts)}"


def smpi(tables: Sequence[DecisionTable], procs: int) -> str:
    """Options of smpirun, one per line: one algorithm for every call of a collective."""
    lines = []
    for table in tables:
        ((_, choice),) = table.whole_row(procs)
        if choice != LIBRARY_DECIDES:
            algorithm = Catalogue.load().algorithm(table.collective, choice.algorithm)
            lines.append(f"--cfg=smpi/{table.collective}:{algorithm.smpi}")
    return "\n".join(lines) + "\n"


def _name_in(library: str, collective: str, choice: Choice) -> str:
    return Catalogue.load().algorithm(collective, choice.algorithm).name_in(library)
