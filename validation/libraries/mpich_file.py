"""Writes tables as MPICH's selection file or control variables, and checks that the installed MPICH follows a file.

The selection file is a tree of conditions with algorithms as leaves. MPICH reads this file instead of its built-in
tree, and stops at a call for which the file has no leaf. The file written here therefore also contains MPICH's own
decisions (`own_tables`): for collectives without a table, and for calls that a table leaves to MPICH.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import CollwiseError, UsageError
from collwise.common.files import read_text
from collwise.simulator.execution.installations import find_installation
from collwise.simulator.execution.interposed import preloadable
from collwise.simulator.execution.launchers import run_program
from collwise.validation.libraries.mpich_untuned import BARRIER, BARRIER_WITH_RADIX, Tree, own_tables, selected
from collwise.validation.libraries.openmpi_check import CallCheck
from collwise.validation.libraries.openmpi_rules import repeated
from collwise.validation.select.decisions import DecisionTable, Row, from_zero, spans
from collwise.validation.times.choice import LIBRARY_DECIDES, Choice

VERSIONS = ("4.0", "4.1")
"""The versions of the file: for MPICH 4.0, and for 4.1 and later, which name a barrier algorithm differently."""
FILE_VARIABLE = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
ENVIRONMENT = {
    # Otherwise the device splits a call on several nodes into parts, and the rules apply to the parts.
    "MPIR_CVAR_DEVICE_COLLECTIVES": "none",
    # Otherwise alltoall's "scattered" has at most 32 messages in flight.
    "MPIR_CVAR_ALLTOALL_THROTTLE": "0",
}
"""Variables under which MPICH's algorithms do what their counterparts in the catalogue do."""

# Collectives for which MPICH compares the total message size.
_TOTAL_COMPARED = ("allgather", "allgatherv", "reduce_scatter", "reduce_scatter_block")
# Among these, the collectives whose total is our message size times the process count.
_MULTIPLIED = ("allgather", "allgatherv", "reduce_scatter_block")
_LARGEST = 2**31 - 1
_TAIL_END_PROCS = 2**16
"""The P up to which the last row of a table is divided into several branches."""


def selection_file(tables: Sequence[DecisionTable], version: str = VERSIONS[0]) -> str:
    """The text of a selection file that makes MPICH run what the tables choose."""
    tree = dict(own_tables())
    for table in tables:
        own = tree[f"collective={table.collective}"]
        inter = {"comm_type=inter": own["comm_type=inter"]} if "comm_type=inter" in own else {}
        intra = _by_procs(table, own.get("comm_type=intra", own))
        tree[f"collective={table.collective}"] = {"comm_type=intra": intra, **inter}
    text = json.dumps(tree, indent=1) + "\n"
    if version == VERSIONS[0]:
        return text
    return text.replace(f'"{BARRIER}": {{}}', f'"{BARRIER_WITH_RADIX}": {{"k=2": {{}}}}')


def variables(tables: Sequence[DecisionTable], procs: int) -> str:
    """Shell lines that set MPICH's control variables: one algorithm per collective, for calls of any size and any P."""
    lines = ["# One algorithm for every call of a collective; for the choices by size, use MPICH's selection file."]
    lines += [f"export {name}={value}" for name, value in ENVIRONMENT.items()]
    for table in tables:
        ((_, choice),) = table.whole_row(procs)
        if choice != LIBRARY_DECIDES:
            said = Catalogue.load().algorithm(table.collective, choice.algorithm).mpich
            lines.append(f"export MPIR_CVAR_{table.collective.upper()}_INTRA_ALGORITHM={said}")
    return "\n".join(lines) + "\n"


def lookup(text: str, collective: str, procs: int, message_bytes: int, **call: bool) -> str:
    """The algorithm that a selection file selects for a call whose elements are bytes (see `selected`)."""
    return selected(json.loads(text), collective, procs, message_bytes, **call)


def _by_procs(table: DecisionTable, default: Tree) -> Tree:
    """Branches by process count, ascending. Below the first row, MPICH decides.

    If MPICH compares the total size, a threshold depends on P, so each P has its own branch. In the last row, which has
    no upper end, a branch covers several P, but so few that a threshold is at most 1/33 too low.
    """
    first = min(table.rules)
    tree: Tree = {f"comm_size<={first - 1}": default} if first > 1 else {}
    for low, end, row in spans(list(table.rules.items())):
        counts: Iterable[int] = [low]
        if table.collective in _MULTIPLIED and len(from_zero(row)) > 1:
            counts = range(low, end) if end is not None else repeated(low, max(low + 1, _TAIL_END_PROCS), beyond=True)
        for procs, following, _ in spans([(procs, None) for procs in counts]):
            following = following or end
            condition = "comm_size=any" if following is None else f"comm_size<={following - 1}"
            tree[condition] = _by_size(table.collective, row, procs, default)
    return tree


def _by_size(name: str, row: Row, procs: int, default: Tree) -> Tree:
    kind = "total_msg_size" if name in _TOTAL_COMPARED else "avg_msg_size"
    factor = procs if name in _MULTIPLIED else 1
    tree: Tree = {}
    for _, end, choice in spans(from_zero(row)):
        below = default if choice == LIBRARY_DECIDES else _leaf(name, choice, default)
        if end is None or end * factor > _LARGEST:
            return below if not tree else {**tree, f"{kind}=any": below}
        tree[f"{kind}<={end * factor - 1}"] = below
    return tree


def _leaf(collective: str, choice: Choice, default: Tree) -> Tree:
    """The algorithm, with branches so that MPICH decides for calls that do not meet the algorithm's conditions."""
    said = Catalogue.load().algorithm(collective, choice.algorithm).mpich
    where = "allcomm" if collective in ("gatherv", "scatterv") else "intra"
    leaf: Tree = {f"algorithm=MPIR_{collective.capitalize()}_{where}_{said}": {}}
    if (collective, said) in _AT_LEAST_AN_ELEMENT_EACH:
        # MPICH decides for operations of the program, and for fewer elements than the largest power of two up to P.
        return {"is_op_built_in=no": default, "is_op_built_in=yes": {"count<pow2": default, "count=any": leaf}}
    for condition, otherwise in _CONDITIONS.get((collective, said), ()):
        leaf = {condition: leaf, otherwise: default}
    return leaf


_AT_LEAST_AN_ELEMENT_EACH = (("reduce", "reduce_scatter_gather"), ("allreduce", "reduce_scatter_allgather"))
# The condition that an algorithm of MPICH sets for a call (src/mpi/coll/coll_algorithms.txt), and its opposite.
_CONDITIONS: Mapping[tuple[str, str], Sequence[tuple[str, str]]] = {
    ("allgather", "recursive_doubling"): [("comm_size=pow2", "comm_size=any")],
    ("allgatherv", "recursive_doubling"): [("comm_size=pow2", "comm_size=any")],
    **{("alltoall", name): [("is_sendbuf_inplace=no", "is_sendbuf_inplace=yes")] for name in
       ("brucks", "pairwise", "scattered")},
    ("alltoallv", "scattered"): [("is_sendbuf_inplace=no", "is_sendbuf_inplace=yes")],
    **{(name, "recursive_halving"): [("is_commutative=yes", "is_commutative=no")] for name in
       ("reduce_scatter", "reduce_scatter_block")},
}  # fmt: skip


Sent = tuple[tuple[tuple[int, int], ...], ...]
"""The messages that each process sent: their sizes, ascending, and the number of each."""

_TIME_LIMIT_SECONDS = 120.0
# Few enough processes for one machine, but enough to distinguish most algorithms, which two processes do not.
_MIN_PROCS, _MAX_PROCS = 3, 8
_MAX_BYTES = 2**20
_THROUGH_UCX = {"MPIR_CVAR_NOLOCAL": "1"}


@dataclass(frozen=True)
class SelectionCheck(CallCheck[Sent]):
    """A call with a selection file, which names `algorithm`; MPICH's control variable forces the demanded messages."""

    algorithm: str

    @property
    def summary(self) -> str:
        """The result in one line."""
        if not self.matches:
            return f"{self.library} did not follow the file: {self.call} did not run {self.algorithm}"
        control = "without it: another algorithm" if self.changes_something else "as it would without it"
        return f"{self.library} accepted the file and ran {self.algorithm} for {self.call} ({control})"


def check_selection(path: Path, calls: Sequence[tuple[str, int, int]]) -> Iterator[SelectionCheck]:
    """Makes calls (collective, P, message bytes) with the installed MPICH, with and without the selection file.

    Raises UsageError if MPICH is missing or does not send through UCX, or if the file cannot be read, and CollwiseError
    if a call fails.
    """
    label = find_installation("mpich").label
    text = read_text(path)
    for call in calls:
        algorithm = lookup(text, *call).split("_intra_")[-1].split("_allcomm_")[-1]
        forced = {f"MPIR_CVAR_{call[0].upper()}_INTRA_ALGORITHM": algorithm}
        settings: list[dict[str, str]] = [{FILE_VARIABLE: str(path.resolve())}, forced, {}]
        observed, demanded, without = (sent(*call, each) for each in settings)
        yield SelectionCheck(*call, label, observed, demanded, without, algorithm)


def sent(collective: str, procs: int, message_bytes: int, settings: Mapping[str, str]) -> Sent:
    """The messages of one call by the installed MPICH with these variables. Raises the errors of `check_selection`."""
    installed = find_installation("mpich")
    counter = installed.program("libcount_messages.so")
    if not counter.exists():
        raise UsageError("the programs for MPICH were built without the counter of messages; build them again")
    with tempfile.TemporaryDirectory(prefix="collwise-") as directory:
        counting = {"LD_PRELOAD": preloadable(counter, Path(directory)), "COLLWISE_COUNTS": f"{directory}/sent"}
        environment = {**_THROUGH_UCX, **ENVIRONMENT, **settings, **counting}
        asked, limit = [collective, str(message_bytes)], _TIME_LIMIT_SECONDS
        run = run_program("mpich", "call", procs, asked, timeout_seconds=limit, environment=environment)
        if run.returncode != 0:
            raise CollwiseError(f"{collective} of {message_bytes} bytes on {procs} processes failed: {run.problem}")
        files = [Path(directory, f"sent.{rank}") for rank in range(procs)]
        if not all(file.exists() for file in files):
            raise UsageError(f"{installed.label} did not load the counter of messages")
        lines = [[line.split() for line in file.read_text(encoding="utf-8").splitlines()] for file in files]
    found = tuple(tuple(sorted((int(size), int(count)) for size, count in each)) for each in lines)
    if not any(found):
        raise UsageError(f"{installed.label} sends no messages through UCX, where they are counted")
    return found


def telling_calls(text: str, tables: Sequence[DecisionTable]) -> list[tuple[str, int, int]]:
    """Calls (collective, P, message bytes) that show whether MPICH follows a selection file made from the tables.

    For each collective, these are up to two calls for which untuned MPICH would run another algorithm. If there is no
    such call, one call with the same algorithm is chosen.
    """
    found = []
    for table in tables:
        points = [
            (table.collective, procs, max(start, 1))
            for procs in sorted({max(procs, _MIN_PROCS) for procs in table.rules if procs <= _MAX_PROCS})
            for start, _ in table.row(procs)
            if start <= _MAX_BYTES
        ]
        telling = [point for point in points if lookup(text, *point) != selected(own_tables(), *point)]
        found += telling[-2:] or points[-1:]
    return found
