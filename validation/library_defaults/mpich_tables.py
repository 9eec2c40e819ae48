"""What MPICH decides itself for every collective, as the trees of conditions that its selection file consists of.

`selected` looks a call up in such trees, also in those of an installed MPICH and in a file of ours. The thresholds are
those of MPICH 4.0 to 5.0 (maint/tuning/coll/mpir/generic.json).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from collwise.common.errors import UsageError

Tree = dict[str, Any]

_SHORT, _LONG = 12288, 524288
"""Broadcasts: the longest short message, and the longest one of middle length."""
_GATHERED, _GATHERED_ODD = 524288, 81920
"""Allgather: the totals from which a ring is used, on a power of two of processes and on others."""
_REDUCED = 2048
"""Reductions: the longest short message."""


def _leaf(name: str) -> Tree:
    return {f"algorithm=MPIR_{name}": {}}


def _choice(condition: str, then: Tree, otherwise: Tree) -> Tree:
    """A tree for calls of which a condition holds, 'comm_size=pow2', and one for the others."""
    return {condition: then, condition.replace("<=", "=").replace("<", "=").split("=")[0] + "=any": otherwise}


def _yes_or_no(fact: str, yes: Tree, no: Tree) -> Tree:
    return {f"{fact}=yes": yes, f"{fact}=no": no}


def _kinds(intra: Tree, inter: Tree) -> Tree:
    """Trees for communicators of one group, and of two."""
    return {"comm_type=intra": intra, "comm_type=inter": inter}


def _bcast(parent: bool) -> Tree:
    """The broadcast, where the communicator has a hierarchy of nodes, and elsewhere: empty messages differ."""
    empty = {"avg_msg_size<=0": _leaf("Bcast_intra_smp")} if parent else {}
    short, ring = _leaf("Bcast_intra_binomial"), _leaf("Bcast_intra_scatter_ring_allgather")
    middle = _leaf("Bcast_intra_scatter_recursive_doubling_allgather")
    up_to_short = {**empty, f"avg_msg_size<={_SHORT}": short}
    return {
        "comm_size<=7": {**empty, "avg_msg_size=any": short},
        "comm_size=pow2": {**up_to_short, f"avg_msg_size<={_LONG}": middle, "avg_msg_size=any": ring},
        "comm_size=any": {**up_to_short, "avg_msg_size=any": ring},
    }


def _ibcast() -> Tree:
    short, ring = _leaf("Ibcast_intra_sched_binomial"), _leaf("Ibcast_intra_sched_scatter_ring_allgather")
    middle = _leaf("Ibcast_intra_sched_scatter_recursive_doubling_allgather")
    up_to_short = {f"avg_msg_size<={_SHORT - 1}": short}
    flat = {
        "comm_size<=7": short,
        "comm_size=pow2": {**up_to_short, f"avg_msg_size<={_LONG - 1}": middle, "avg_msg_size=any": ring},
        "comm_size=any": {**up_to_short, "avg_msg_size=any": ring},
    }
    return _choice("comm_hierarchy=parent", _leaf("Ibcast_intra_sched_smp"), flat)


def _allgather(prefix: str) -> Tree:
    ring = _leaf(f"{prefix}ring")

    def up_to(total: int, name: str) -> Tree:
        return {f"total_msg_size<={total - 1}": _leaf(prefix + name), "total_msg_size=any": ring}

    return _choice("comm_size=pow2", up_to(_GATHERED, "recursive_doubling"), up_to(_GATHERED_ODD, "brucks"))


def _for_long(short: Tree, long: Tree) -> Tree:
    """Reductions of long messages: operations of MPI's own, and an element at least for each process."""
    return _yes_or_no("is_op_built_in", _choice("count<pow2", short, long), short)


def _reduce(parent: bool) -> Tree:
    binomial = _leaf("Reduce_intra_binomial")
    empty = _yes_or_no("is_commutative", _leaf("Reduce_intra_smp"), binomial)
    return {
        **({"avg_msg_size<=0": empty} if parent else {}),
        f"avg_msg_size<={_REDUCED}": binomial,
        "avg_msg_size=any": _for_long(binomial, _leaf("Reduce_intra_reduce_scatter_gather")),
    }


def _ireduce() -> Tree:
    binomial = _leaf("Ireduce_intra_sched_binomial")
    return _choice(
        "comm_hierarchy=parent",
        _yes_or_no("is_commutative", _leaf("Ireduce_intra_sched_smp"), binomial),
        {
            f"avg_msg_size<={_REDUCED}": binomial,
            "avg_msg_size=any": _for_long(binomial, _leaf("Ireduce_intra_sched_reduce_scatter_gather")),
        },
    )


def _allreduce(prefix: str, short_bytes: int) -> Tree:
    doubling = _leaf(f"{prefix}recursive_doubling")
    return {
        f"avg_msg_size<={short_bytes}": doubling,
        "avg_msg_size=any": _for_long(doubling, _leaf(f"{prefix}reduce_scatter_allgather")),
    }


def _reduce_scatter(prefix: str, regular: bool) -> Tree:
    doubling = _leaf(f"{prefix}recursive_doubling")
    ordered = _choice("comm_size=pow2", _leaf(f"{prefix}noncommutative"), doubling)
    return _yes_or_no(
        "is_commutative",
        {
            f"total_msg_size<={_GATHERED - 1}": _leaf(f"{prefix}recursive_halving"),
            "total_msg_size=any": _leaf(f"{prefix}pairwise"),
        },
        ordered if regular else _yes_or_no("is_block_regular", ordered, doubling),
    )


def _alltoall(prefix: str, in_place: str, middle: str, short_bytes: int) -> Tree:
    """Alltoall, blocking or not, which differ in two algorithms and in what is a short message.

    MPICH's file has "comm_size<8" here, which it evaluates as at most 8 below a condition on the call.
    """
    pairwise = {"avg_msg_size<=32768": _leaf(prefix + middle), "avg_msg_size=any": _leaf(f"{prefix}pairwise")}
    bruck = {f"avg_msg_size<={short_bytes}": _leaf(f"{prefix}brucks"), **pairwise}
    return _yes_or_no(
        "is_sendbuf_inplace", _leaf(prefix + in_place), {"comm_size<=8": pairwise, "comm_size=any": bruck}
    )


def _to_one(name: str, prefix: str, short: str, long: str) -> Tree:
    """Gather and scatter: a tree in one group, by size between two."""
    return _kinds(
        _leaf(f"{name}_intra_{prefix}binomial"),
        {
            "total_msg_size<=2047": _leaf(f"{name}_inter_{prefix}{short}"),
            "total_msg_size=any": _leaf(f"{name}_inter_{prefix}{long}"),
        },
    )


@cache
def own_tables() -> dict[str, Tree]:
    """MPICH's decisions, by 'collective=NAME'."""
    allreduce = {
        "avg_msg_size<=0": _yes_or_no(
            "is_commutative", _leaf("Allreduce_intra_smp"), _leaf("Allreduce_intra_recursive_doubling")
        ),
        **_allreduce("Allreduce_intra_", 8),
    }
    blocking = {
        "bcast": _kinds(
            _choice("comm_hierarchy=parent", _bcast(parent=True), _bcast(parent=False)),
            _leaf("Bcast_inter_remote_send_local_bcast"),
        ),
        "allreduce": _kinds(allreduce, _leaf("Allreduce_inter_reduce_exchange_bcast")),
        "allgather": _kinds(_allgather("Allgather_intra_"), _leaf("Allgather_inter_local_gather_remote_bcast")),
        "allgatherv": _kinds(_allgather("Allgatherv_intra_"), _leaf("Allgatherv_inter_remote_gather_local_bcast")),
        "reduce": _kinds(
            _choice("comm_hierarchy=parent", _reduce(parent=True), _reduce(parent=False)),
            _leaf("Reduce_inter_local_reduce_remote_send"),
        ),
        "reduce_scatter": _kinds(
            _reduce_scatter("Reduce_scatter_intra_", regular=False),
            _leaf("Reduce_scatter_inter_remote_reduce_local_scatter"),
        ),
        "reduce_scatter_block": _kinds(
            _reduce_scatter("Reduce_scatter_block_intra_", regular=True),
            _leaf("Reduce_scatter_block_inter_remote_reduce_local_scatter"),
        ),
        "gather": _to_one("Gather", "", "local_gather_remote_send", "linear"),
        "scatter": _to_one("Scatter", "", "remote_send_local_scatter", "linear"),
        "gatherv": _leaf("Gatherv_allcomm_linear"),
        "scatterv": _leaf("Scatterv_allcomm_linear"),
        "scan": _yes_or_no("is_node_consecutive", _leaf("Scan_intra_smp"), _leaf("Scan_intra_recursive_doubling")),
        "exscan": _leaf("Exscan_intra_recursive_doubling"),
        "barrier": _kinds(
            _choice("comm_hierarchy=parent", _leaf("Barrier_intra_smp"), _leaf("Barrier_intra_dissemination")),
            _leaf("Barrier_inter_bcast"),
        ),
        "alltoall": _kinds(
            _alltoall("Alltoall_intra_", "pairwise_sendrecv_replace", "scattered", 256),
            _leaf("Alltoall_inter_pairwise_exchange"),
        ),
        **{
            f"alltoall{letter}": _kinds(
                _yes_or_no(
                    "is_sendbuf_inplace",
                    _leaf(f"Alltoall{letter}_intra_pairwise_sendrecv_replace"),
                    _leaf(f"Alltoall{letter}_intra_scattered"),
                ),
                _leaf(f"Alltoall{letter}_inter_pairwise_exchange"),
            )
            for letter in "vw"
        },
    }
    nonblocking = {
        "ibcast": _kinds(_ibcast(), _leaf("Ibcast_inter_sched_flat")),
        "iallreduce": _kinds(
            _allreduce("Iallreduce_intra_sched_", _REDUCED), _leaf("Iallreduce_inter_sched_remote_reduce_local_bcast")
        ),
        "iallgather": _kinds(
            _allgather("Iallgather_intra_sched_"), _leaf("Iallgather_inter_sched_local_gather_remote_bcast")
        ),
        "iallgatherv": _kinds(
            _allgather("Iallgatherv_intra_sched_"), _leaf("Iallgatherv_inter_sched_remote_gather_local_bcast")
        ),
        "ireduce": _kinds(_ireduce(), _leaf("Ireduce_inter_sched_local_reduce_remote_send")),
        "ireduce_scatter": _kinds(
            _reduce_scatter("Ireduce_scatter_intra_sched_", regular=False),
            _leaf("Ireduce_scatter_inter_sched_remote_reduce_local_scatterv"),
        ),
        "ireduce_scatter_block": _kinds(
            _reduce_scatter("Ireduce_scatter_block_intra_sched_", regular=True),
            _leaf("Ireduce_scatter_block_inter_sched_remote_reduce_local_scatterv"),
        ),
        "igather": _to_one("Igather", "sched_", "short", "long"),
        "iscatter": _to_one("Iscatter", "sched_", "remote_send_local_scatter", "linear"),
        "igatherv": _leaf("Igatherv_allcomm_sched_linear"),
        "iscatterv": _leaf("Iscatterv_allcomm_sched_linear"),
        "iscan": _choice(
            "comm_hierarchy=parent", _leaf("Iscan_intra_sched_smp"), _leaf("Iscan_intra_sched_recursive_doubling")
        ),
        "iexscan": _leaf("Iexscan_intra_sched_recursive_doubling"),
        "ibarrier": _kinds(_leaf("Ibarrier_intra_sched_recursive_doubling"), _leaf("Ibarrier_inter_sched_bcast")),
        "ialltoall": _kinds(
            _alltoall("Ialltoall_intra_sched_", "inplace", "permuted_sendrecv", 2048),
            _leaf("Ialltoall_inter_sched_pairwise_exchange"),
        ),
        **{
            f"ialltoall{letter}": _kinds(
                _yes_or_no(
                    "is_sendbuf_inplace",
                    _leaf(f"Ialltoall{letter}_intra_sched_inplace"),
                    _leaf(f"Ialltoall{letter}_intra_sched_blocked"),
                ),
                _leaf(f"Ialltoall{letter}_inter_sched_pairwise_exchange"),
            )
            for letter in "vw"
        },
    }
    shapes = ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw")
    neighbours = {
        f"{letter}neighbor_{shape}": _leaf(f"{name}eighbor_{shape}_allcomm_{kind}")
        for letter, name, kind in (("", "N", "nb"), ("i", "In", "sched_linear"))
        for shape in shapes
    }
    return {f"collective={name}": tree for name, tree in {**blocking, **nonblocking, **neighbours}.items()}


# Conditions on what only the call tells, not the communicator.
_KNOWN_AT_THE_CALL = ("is_sendbuf", "is_commutative", "is_op", "avg_msg_size", "total_msg_size", "count")
# Collectives whose message size is that of all blocks together, or that have one block.
_ONE_BLOCK = ("bcast", "reduce", "allreduce", "reduce_scatter", "scan", "exscan")


def selected(
    tables: Mapping[str, Any], collective: str, procs: int, message_bytes: int, count: int | None = None, **call: bool
) -> str:
    """The algorithm that selection tables give a call, as MPICH looks it up: 'MPIR_Bcast_intra_binomial'.

    `count` is the number of elements, by default of bytes. `call` may say that it is `inplace`, `commutative` or with a
    `built_in` operation, and that there is a hierarchy of nodes, `parent`; by default there is one process on each.
    Raises UsageError where the tables have no algorithm for the call, and MPICH stops.
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
    """Whether a condition such as 'comm_size<8', 'comm_size=pow2', 'count<pow2' or 'is_commutative=yes' holds.

    Conditions on the communicator alone are decided when it is made. MPICH 4.0 takes 'comm_size<8' for 'at most 8' if
    it decides this at the call, below a condition on its arguments.
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
