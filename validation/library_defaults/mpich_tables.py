"""What MPICH decides itself for every collective, as the trees of conditions that its selection file consists of.

`selected` looks a call up in such trees, also in those of an installed MPICH and in a file of ours. The thresholds are
those of MPICH 4.0 to 5.0 (maint/tuning/coll/mpir/generic.json).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
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


def _choice(condition: str, then: Tree, otherwise: Tree) -> Tree:
    """A tree for calls of which a condition holds, 'comm_size=pow2', and one for the others."""
    return {condition: then, condition.replace("<=", "=").replace("<", "=").split("=")[0] + "=any": otherwise}


def _yes_or_no(fact: str, yes: Tree, no: Tree) -> Tree:
    return {f"{fact}=yes": yes, f"{fact}=no": no}


@dataclass(frozen=True)
class _Decisions:
    """The decisions for blocking calls, or for nonblocking ones, which differ in names and in some of the trees."""

    blocking: bool

    def leaf(self, collective: str, algorithm: str) -> Tree:
        """A leaf of an algorithm such as 'intra_ring', 'Iallgather_intra_sched_ring' of a nonblocking call."""
        if self.blocking:
            return {f"algorithm=MPIR_{collective.capitalize()}_{algorithm}": {}}
        kind, name = algorithm.split("_", 1)
        return {f"algorithm=MPIR_I{collective}_{kind}_sched_{name}": {}}

    def kinds(self, collective: str, intra: Tree, inter: str) -> Tree:
        """A tree for communicators of one group, and an algorithm for those of two."""
        return {"comm_type=intra": intra, "comm_type=inter": self.leaf(collective, f"inter_{inter}")}

    def bcast(self) -> Tree:
        """The broadcast; blocking ones of empty messages are decided by whether there is a hierarchy of nodes."""
        smp, short = self.leaf("bcast", "intra_smp"), self.leaf("bcast", "intra_binomial")
        middle = self.leaf("bcast", "intra_scatter_recursive_doubling_allgather")
        ring = self.leaf("bcast", "intra_scatter_ring_allgather")

        def by_size(empty: Tree, shorter: int) -> Tree:
            up_to_short = {**empty, f"avg_msg_size<={_SHORT - shorter}": short}
            return {
                "comm_size<=7": {**empty, "avg_msg_size=any": short} if self.blocking else short,
                "comm_size=pow2": {**up_to_short, f"avg_msg_size<={_LONG - shorter}": middle, "avg_msg_size=any": ring},
                "comm_size=any": {**up_to_short, "avg_msg_size=any": ring},
            }

        if self.blocking:
            return _choice("comm_hierarchy=parent", by_size({"avg_msg_size<=0": smp}, 0), by_size({}, 0))
        return _choice("comm_hierarchy=parent", smp, by_size({}, 1))

    def allgather(self, collective: str) -> Tree:
        """Allgather and allgatherv."""

        def up_to(total: int, name: str) -> Tree:
            short, ring = (self.leaf(collective, f"intra_{one}") for one in (name, "ring"))
            return {f"total_msg_size<={total - 1}": short, "total_msg_size=any": ring}

        return _choice("comm_size=pow2", up_to(_GATHERED, "recursive_doubling"), up_to(_GATHERED_ODD, "brucks"))

    def reduce(self) -> Tree:
        """The reduction; blocking ones of empty messages are decided by whether there is a hierarchy of nodes."""
        binomial = self.leaf("reduce", "intra_binomial")
        smp = _yes_or_no("is_commutative", self.leaf("reduce", "intra_smp"), binomial)
        flat = {
            f"avg_msg_size<={_REDUCED}": binomial,
            "avg_msg_size=any": _for_long(binomial, self.leaf("reduce", "intra_reduce_scatter_gather")),
        }
        return _choice("comm_hierarchy=parent", {"avg_msg_size<=0": smp, **flat} if self.blocking else smp, flat)

    def allreduce(self) -> Tree:
        """The allreduce."""
        doubling = self.leaf("allreduce", "intra_recursive_doubling")
        empty = _yes_or_no("is_commutative", self.leaf("allreduce", "intra_smp"), doubling)
        return {
            **({"avg_msg_size<=0": empty} if self.blocking else {}),
            f"avg_msg_size<={8 if self.blocking else _REDUCED}": doubling,
            "avg_msg_size=any": _for_long(doubling, self.leaf("allreduce", "intra_reduce_scatter_allgather")),
        }

    def reduce_scatter(self, collective: str) -> Tree:
        """Reduce_scatter, whose blocks may differ, and reduce_scatter_block."""
        doubling, halving, pairwise, noncommutative = (
            self.leaf(collective, f"intra_{name}")
            for name in ("recursive_doubling", "recursive_halving", "pairwise", "noncommutative")
        )
        ordered = _choice("comm_size=pow2", noncommutative, doubling)
        if collective == "reduce_scatter":
            ordered = _yes_or_no("is_block_regular", ordered, doubling)
        commutative = {f"total_msg_size<={_GATHERED - 1}": halving, "total_msg_size=any": pairwise}
        return _yes_or_no("is_commutative", commutative, ordered)

    def alltoall(self) -> Tree:
        """Alltoall, blocking or not, which differ in two algorithms and in what is a short message.

        MPICH's file has "comm_size<8" here, which it evaluates as at most 8 below a condition on the call.
        """
        in_place, middle, short_bytes = "inplace", "permuted_sendrecv", 2048
        if self.blocking:
            in_place, middle, short_bytes = "pairwise_sendrecv_replace", "scattered", 256
        replaced, bruck, up_to_32_kib, longer = (
            self.leaf("alltoall", f"intra_{name}") for name in (in_place, "brucks", middle, "pairwise")
        )
        pairwise = {"avg_msg_size<=32768": up_to_32_kib, "avg_msg_size=any": longer}
        by_size = {f"avg_msg_size<={short_bytes}": bruck, **pairwise}
        return _yes_or_no("is_sendbuf_inplace", replaced, {"comm_size<=8": pairwise, "comm_size=any": by_size})

    def alltoallv(self, collective: str) -> Tree:
        """Alltoallv and alltoallw."""
        names = ("pairwise_sendrecv_replace", "scattered") if self.blocking else ("inplace", "blocked")
        return _yes_or_no("is_sendbuf_inplace", *(self.leaf(collective, f"intra_{name}") for name in names))

    def to_one(self, collective: str, short: str, long: str) -> Tree:
        """Gather and scatter: a tree in one group, by size between two."""
        return {
            "comm_type=intra": self.leaf(collective, "intra_binomial"),
            "comm_type=inter": {
                "total_msg_size<=2047": self.leaf(collective, f"inter_{short}"),
                "total_msg_size=any": self.leaf(collective, f"inter_{long}"),
            },
        }

    def scan(self) -> Tree:
        """The scan: blocking ones look at the order of processes on the nodes."""
        smp, doubling = self.leaf("scan", "intra_smp"), self.leaf("scan", "intra_recursive_doubling")
        if self.blocking:
            return _yes_or_no("is_node_consecutive", smp, doubling)
        return _choice("comm_hierarchy=parent", smp, doubling)

    def barrier(self) -> Tree:
        """The barrier."""
        if not self.blocking:
            return self.leaf("barrier", "intra_recursive_doubling")
        smp, dissemination = self.leaf("barrier", "intra_smp"), self.leaf("barrier", "intra_dissemination")
        return _choice("comm_hierarchy=parent", smp, dissemination)

    def trees(self) -> dict[str, Tree]:
        """The trees by collective."""
        blocking, kinds = self.blocking, self.kinds
        exchange = "reduce_exchange_bcast" if blocking else "remote_reduce_local_bcast"
        local_scatter = "remote_reduce_local_scatter" if blocking else "remote_reduce_local_scatterv"
        gathered = ("local_gather_remote_send", "linear") if blocking else ("short", "long")
        return {
            "bcast": kinds("bcast", self.bcast(), "remote_send_local_bcast" if blocking else "flat"),
            "allreduce": kinds("allreduce", self.allreduce(), exchange),
            "allgather": kinds("allgather", self.allgather("allgather"), "local_gather_remote_bcast"),
            "allgatherv": kinds("allgatherv", self.allgather("allgatherv"), "remote_gather_local_bcast"),
            "reduce": kinds("reduce", self.reduce(), "local_reduce_remote_send"),
            **{
                name: kinds(name, self.reduce_scatter(name), local_scatter)
                for name in ("reduce_scatter", "reduce_scatter_block")
            },
            "gather": self.to_one("gather", *gathered),
            "scatter": self.to_one("scatter", "remote_send_local_scatter", "linear"),
            **{name: self.leaf(name, "allcomm_linear") for name in ("gatherv", "scatterv")},
            "scan": self.scan(),
            "exscan": self.leaf("exscan", "intra_recursive_doubling"),
            "barrier": kinds("barrier", self.barrier(), "bcast"),
            "alltoall": kinds("alltoall", self.alltoall(), "pairwise_exchange"),
            **{name: kinds(name, self.alltoallv(name), "pairwise_exchange") for name in ("alltoallv", "alltoallw")},
        }


def _for_long(short: Tree, long: Tree) -> Tree:
    """Reductions of long messages: operations of MPI's own, and an element at least for each process."""
    return _yes_or_no("is_op_built_in", _choice("count<pow2", short, long), short)


@cache
def own_tables() -> dict[str, Tree]:
    """MPICH's decisions, by 'collective=NAME'."""
    trees = _Decisions(blocking=True).trees()
    trees |= {f"i{name}": tree for name, tree in _Decisions(blocking=False).trees().items()}
    for prefix, name, kind in (("", "N", "nb"), ("i", "In", "sched_linear")):
        for shape in ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"):
            trees[f"{prefix}neighbor_{shape}"] = {f"algorithm=MPIR_{name}eighbor_{shape}_allcomm_{kind}": {}}
    return {f"collective={name}": tree for name, tree in trees.items()}


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
