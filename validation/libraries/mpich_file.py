"""Tables for MPICH: its selection file (MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE) and its control variables.

The selection file is a tree of conditions with algorithms as leaves. MPICH reads this file instead of its built-in
tree, and stops at a call for which the file has no leaf. The file written here therefore also contains MPICH's own
decisions (`own_tables`): for collectives without a table, and for calls that a table leaves to MPICH.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from collwise.algorithms.catalogue import Catalogue
from collwise.validation.libraries.mpich_untuned import Tree, own_tables, selected
from collwise.validation.libraries.openmpi_rules import STEP, repeated
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


def settings_of(file: str) -> dict[str, str]:
    """The variables under which MPICH follows a selection file."""
    return {**ENVIRONMENT, FILE_VARIABLE: file}


def selection_file(tables: Sequence[DecisionTable], version: str = VERSIONS[0]) -> str:
    """The text of a selection file that makes MPICH run what the tables choose."""
    tree = dict(own_tables())
    for table in tables:
        name = table.collective
        own = tree[f"collective={name}"]
        intra = own.get("comm_type=intra", own)
        inter = {"comm_type=inter": own["comm_type=inter"]} if "comm_type=inter" in own else {}
        tree[f"collective={name}"] = {"comm_type=intra": _by_procs(table, intra), **inter}
    text = json.dumps(tree, indent=1) + "\n"
    return text if version == VERSIONS[0] else text.replace(*_RENAMED_BARRIER)


# In MPICH 4.1 and later, the dissemination barrier has a radix.
_RENAMED_BARRIER = (
    '"algorithm=MPIR_Barrier_intra_dissemination": {}',
    '"algorithm=MPIR_Barrier_intra_k_dissemination": {"k=2": {}}',
)


def variables(tables: Sequence[DecisionTable], procs: int) -> str:
    """Shell lines that set MPICH's control variables: one algorithm per collective, for calls of any size and any P."""
    lines = ["# One algorithm for every call of a collective; for the choices by size, use MPICH's selection file."]
    lines += [f"export {name}={value}" for name, value in ENVIRONMENT.items()]
    for table in tables:
        ((_, choice),) = table.whole_row(procs)
        if choice != LIBRARY_DECIDES:
            name = table.collective
            said = Catalogue.load().algorithm(name, choice.algorithm).mpich
            lines.append(f"export MPIR_CVAR_{name.upper()}_INTRA_ALGORITHM={said}")
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
            counts = range(low, end) if end is not None else _tail(low)
        for procs, following, _ in spans([(procs, None) for procs in counts]):
            following = following or end
            condition = "comm_size=any" if following is None else f"comm_size<={following - 1}"
            tree[condition] = _by_size(table.collective, row, procs, default)
    return tree


def _tail(low: int) -> Iterable[int]:
    yield from (counts := [*repeated(low, max(low + 1, _TAIL_END_PROCS))])
    yield counts[-1] + max(1, counts[-1] // STEP)


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
