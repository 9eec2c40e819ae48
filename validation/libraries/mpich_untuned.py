"""The decisions of MPICH 4 for every collective, and the look-up of calls in such decisions.

Decisions are trees of conditions, in the format of MPICH's selection files. MPICH's own decisions are in mpich.json,
with the thresholds of MPICH 4.0 to 5.0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from collwise.algorithms.catalogue import elements
from collwise.common.errors import UsageError
from collwise.validation.times.choice import Choice, Decision

Tree = dict[str, Any]

TABLE_PATH = Path(__file__).with_name("mpich.json")
BARRIER, BARRIER_WITH_RADIX = (f"algorithm=MPIR_Barrier_intra_{name}" for name in ("dissemination", "k_dissemination"))
"""The leaf for the dissemination barrier in tables of MPICH 4.0, and that of later tables (above {"k=2": {}})."""

_EXCHANGES_AT_A_TIME = 32

# The catalogue's counterparts of MPICH's algorithms, if the names differ. None: the catalogue has no counterpart.
_COUNTERPARTS: dict[tuple[str, str], Choice | None] = {
    ("gatherv", "linear"): Choice("linear_nonblocking"),
    ("scatterv", "linear"): Choice("linear_nonblocking"),
    ("barrier", "dissemination"): Choice("bruck"),
    ("bcast", "scatter_recursive_doubling_allgather"): Choice("scatter_allgather"),
    ("reduce", "reduce_scatter_gather"): Choice("rabenseifner"),
    ("allreduce", "reduce_scatter_allgather"): Choice("rabenseifner"),
    ("allgather", "brucks"): Choice("bruck"),
    ("allgatherv", "brucks"): Choice("bruck"),
    ("allgatherv", "recursive_doubling"): None,
    ("alltoall", "brucks"): Choice("bruck"),
    ("reduce_scatter", "pairwise"): None,
    ("reduce_scatter_block", "pairwise"): None,
}


def decide(collective: str, procs: int, message_bytes: int) -> Decision:
    """The decision for a commutative built-in operation and equal blocks, with one process on each node."""
    name = mpichs_algorithm(own_tables(), collective, procs, message_bytes)
    if name != "scattered":
        return Decision(name, _COUNTERPARTS.get((collective, name), Choice(name)))
    if procs - 1 <= _EXCHANGES_AT_A_TIME:
        return Decision(name, Choice("linear"))
    # MPICH divides more exchanges into groups. Our limit on simultaneous exchanges comes nearest to that.
    limited = Choice("linear_sync", parameter=_EXCHANGES_AT_A_TIME)
    return Decision(name, limited if collective == "alltoall" else None)


def mpichs_algorithm(tables: Mapping[str, Any], collective: str, procs: int, message_bytes: int) -> str:
    """The algorithm that the tables select for a call with one process on each node, by MPICH's name."""
    found = selected(tables, collective, procs, message_bytes, elements(message_bytes))
    name = found.removeprefix(f"MPIR_{collective.capitalize()}_")
    # With one process on each node, "intra_smp" amounts to recursive doubling.
    return "recursive_doubling" if name == "intra_smp" else re.sub("^(intra|allcomm)_", "", name)


@cache
def own_tables() -> dict[str, Tree]:
    """MPICH's decisions, by 'collective=NAME'.

    For alltoall, MPICH's file has the condition "comm_size<8" below a condition on the call's arguments. MPICH
    therefore evaluates it as "at most 8".
    """
    tables: dict[str, Tree] = json.loads(TABLE_PATH.read_text(encoding="utf-8"))
    return tables


# Conditions on what is known only at the call, not from the communicator.
_KNOWN_AT_THE_CALL = ("is_sendbuf", "is_commutative", "is_op", "avg_msg_size", "total_msg_size", "count")
# Collectives that have one block, or whose message size is the total of all blocks.
_ONE_BLOCK = ("bcast", "reduce", "allreduce", "reduce_scatter", "scan", "exscan")


def selected(
    tables: Mapping[str, Any], collective: str, procs: int, message_bytes: int, count: int | None = None, **call: bool
) -> str:
    """The algorithm that selection tables give a call, as MPICH looks it up: 'MPIR_Bcast_intra_binomial'.

    `count` is the number of elements, by default the number of bytes. `call` may set `inplace` (default: False),
    `commutative` and `built_in` for the operation (default: True), and `parent`, true for a hierarchy of nodes
    (default: False, which stands for one process on each node).
    """
    facts = {
        "collective": collective,
        "comm_type": "intra",
        "comm_hierarchy": "parent" if call.get("parent", False) else "flat",
        "is_commutative": "yes" if call.get("commutative", True) else "no",
        "is_op_built_in": "yes" if call.get("built_in", True) else "no",
        "is_sendbuf_inplace": "yes" if call.get("inplace", False) else "no",
        "is_block_regular": "yes",
        "is_node_consecutive": "yes",
    }
    numbers = {
        "comm_size": procs,
        "avg_msg_size": message_bytes,
        "total_msg_size": message_bytes * (1 if collective in _ONE_BLOCK else procs),
        "count": message_bytes if count is None else count,
    }
    tree, at_the_call = tables, False
    while tree:
        condition = next((each for each in tree if _holds(each, numbers, facts, at_the_call)), None)
        if condition is None:
            break
        if condition.startswith("algorithm="):
            return condition.removeprefix("algorithm=")
        at_the_call |= condition.startswith(_KNOWN_AT_THE_CALL)
        tree = tree[condition]
    raise UsageError(f"no algorithm for {collective} on {procs} processes with {message_bytes} bytes")


def _holds(condition: str, numbers: Mapping[str, int], facts: Mapping[str, str], at_the_call: bool) -> bool:
    """True if a condition such as 'comm_size<8', 'comm_size=pow2', 'count<pow2' or 'is_commutative=yes' holds.

    MPICH evaluates conditions on the communicator alone when the communicator is created. If 'comm_size<8' is below a
    condition on the arguments of a call, MPICH 4.0 evaluates it at the call, as 'at most 8'.
    """
    name, operator, value = _parts(condition)
    if name == "algorithm" or value == "any":
        return True
    if name in facts:
        return facts[name] == value
    number = numbers[name]
    bound = 1 << (numbers["comm_size"].bit_length() - 1) if value == "pow2" else int(value)
    if at_the_call and operator == "<" and name == "comm_size":
        operator = "<="
    return number < bound if operator == "<" else number <= bound if operator == "<=" else number == bound


@cache
def _parts(condition: str) -> tuple[str, str, str]:
    match = re.fullmatch(r"(\w+)(<=|<|=)(.*)", condition)
    if match is None:
        raise UsageError(f"malformed condition '{condition}' in selection tables")
    return match[1], match[2], match[3]
