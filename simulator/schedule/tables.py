"""The costs of messages and computation on a network, in the form that the schedule engine's C library expects."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from ctypes import c_double, c_int
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from collwise.platforms import Buffers

Doubles = npt.NDArray[np.float64]
EAGER, RENDEZVOUS, DEFERRED, _, ACKNOWLEDGED = range(5)  # the protocols of simulator/schedule/engine.h
# The types of the arrays that do not hold doubles.
_INTEGER_ARRAYS: Mapping[str, type] = {
    **dict.fromkeys(("node_of", "class_of", "socket_of", "switch_of", "route_links"), np.int32),
    **{"protocol": np.uint8, "route_first": np.int64},
}


_PACKET_FIELDS = ("buffer_bytes", "retransmission_seconds", "packet_bytes", "initial_window_packets")


@dataclass(frozen=True)
class NetworkTables:
    """The costs of messages and computation for the sizes of one schedule; simulator/schedule/engine.h explains each.

    Shapes: `node_of`, `socket_of` (P,); `class_of`, `switch_of` (nodes,); tables by size (sizes,), by class and size
    (classes, sizes), by pair (classes, classes, sizes), by class (classes,) such as `flag_seconds`; `link_rate`
    (links,), `route_first` (switches^2 + 1,), `route_seconds` (switches^2,). Point-to-point models have no `out_rate`;
    networks whose switches never limit a message have no `switch_of`; networks whose sockets do not matter have no
    `socket_of`. If `buffers` is given, messages between nodes consist of packets; otherwise buffers are unlimited.
    """

    node_of: npt.NDArray[np.integer]
    class_of: npt.NDArray[np.integer]
    send_seconds: Doubles
    start_seconds: Doubles
    receive_seconds: Doubles
    reduce_seconds: Doubles
    copy_seconds: Doubles
    allocate_seconds: Doubles
    move_seconds: Doubles
    protocol: npt.NDArray[np.integer]
    handshake_seconds: Doubles
    answer_seconds: Doubles
    latency_seconds: Doubles
    transfer_seconds: Doubles
    gap_seconds: Doubles
    receive_gap_seconds: Doubles
    local_latency_seconds: Doubles
    local_transfer_seconds: Doubles
    flag_seconds: Doubles
    out_rate: Doubles | None = None
    in_rate: Doubles | None = None
    burst_bytes: Doubles | None = None
    load_bytes: Doubles | None = None
    senders_wait_for_arrival: bool = False
    acknowledgement_share: float = 0.0
    send_buffer_bytes: float = 0.0
    queue_bytes: float = 0.0
    memory_rate: float = 0.0
    memory_share_of_ports: float = 0.0
    socket_of: npt.NDArray[np.integer] | None = None
    cross_latency_seconds: Doubles | None = None
    cross_transfer_seconds: Doubles | None = None
    cross_rate: float = 0.0
    without_local_overheads: bool = False
    switch_of: npt.NDArray[np.integer] | None = None
    link_rate: Doubles | None = None
    route_first: npt.NDArray[np.integer] | None = None
    route_links: npt.NDArray[np.integer] | None = None
    route_seconds: Doubles | None = None
    latency_factor: Doubles | None = None
    handshake_factor: Doubles | None = None
    answer_factor: Doubles | None = None
    buffers: Buffers | None = None

    @classmethod
    def of_model(
        cls,
        procs: int,
        sizes: npt.NDArray[np.uint64],
        latency_seconds: float = 0.0,
        seconds_per_byte: float = 0.0,
        overhead_seconds: float = 0.0,
        protocol: int = EAGER,
    ) -> NetworkTables:
        """A point-to-point model of equal processes, one on each node, with one overhead for sends and receives.

        A message takes two overheads, the latency, and the time of its bytes, which is also the gap between messages.
        """
        nothing, overhead = np.zeros((1, len(sizes))), np.full((1, len(sizes)), overhead_seconds)
        transfer = sizes.astype(np.float64)[None] * seconds_per_byte
        return cls(
            node_of=np.arange(procs),
            class_of=np.zeros(procs, dtype=np.int32),
            send_seconds=overhead,
            start_seconds=overhead,
            receive_seconds=overhead,
            reduce_seconds=nothing[0],
            copy_seconds=nothing[0],
            allocate_seconds=nothing[0],
            move_seconds=nothing[0],
            protocol=np.full(len(sizes), protocol),
            handshake_seconds=nothing[None],
            answer_seconds=nothing[None],
            latency_seconds=np.full((1, 1, len(sizes)), latency_seconds),
            transfer_seconds=transfer[None],
            gap_seconds=transfer[None],
            receive_gap_seconds=transfer,
            local_latency_seconds=nothing,
            local_transfer_seconds=nothing,
            flag_seconds=np.zeros(1),
        )

    @property
    def waits_for_receives(self) -> npt.NDArray[np.bool_]:
        """True for each size whose messages leave only after their receives were posted."""
        return np.isin(self.protocol, (RENDEZVOUS, DEFERRED))

    @property
    def shares_nodes(self) -> bool:
        """True if several processes are on one node."""
        return len(np.unique(self.node_of)) < len(self.node_of)

    @cached_property
    def structure(self) -> Network:
        """The C structure, with the arrays that it points to."""
        made = Network()
        made.arrays = []
        for name, kind, *_ in Network._fields_:
            value = getattr(self, name, None)
            if kind is ctypes.c_void_p and value is not None:
                made.arrays.append(np.ascontiguousarray(value, dtype=_INTEGER_ARRAYS.get(name, np.float64)))
                value = address(made.arrays[-1])
            if value is not None:
                setattr(made, name, value)
        made.nodes, made.classes = len(self.class_of), len(self.send_seconds)
        if self.socket_of is not None:
            made.sockets = int(self.socket_of.max()) + 1
        if self.route_first is not None and self.link_rate is not None:
            made.switches, made.links = math.isqrt(len(self.route_first) - 1), len(self.link_rate)
        if self.buffers is not None:
            for name in _PACKET_FIELDS:
                setattr(made, name, getattr(self.buffers, name))
        return made


def _pointers(first: str, last: str) -> list[tuple[str, type]]:
    """The pointers in the C structure for the arrays of NetworkTables from `first` to `last`."""
    names = [field.name for field in fields(NetworkTables)]
    return [(name, ctypes.c_void_p) for name in names[names.index(first) : names.index(last) + 1]]


class Network(ctypes.Structure):
    """The structure schedule_network of simulator/schedule/engine.h, and the arrays that it points to."""

    arrays: list[npt.NDArray[Any]]
    _fields_ = (
        ("nodes", c_int),
        ("classes", c_int),
        *_pointers("node_of", "answer_seconds"),
        ("senders_wait_for_arrival", c_int),
        *_pointers("latency_seconds", "flag_seconds"),
        ("sockets", c_int),
        *_pointers("socket_of", "cross_transfer_seconds"),
        ("cross_rate", c_double),
        *((name, c_double) for name in _PACKET_FIELDS),
        *_pointers("out_rate", "load_bytes"),
        ("acknowledgement_share", c_double),
        ("send_buffer_bytes", c_double),
        ("queue_bytes", c_double),
        ("memory_rate", c_double),
        ("memory_share_of_ports", c_double),
        ("without_local_overheads", c_int),
        ("switches", c_int),
        ("links", c_int),
        *_pointers("switch_of", "answer_factor"),
    )


def address(array: npt.NDArray[Any]) -> int:
    """The address of an array's data; the array must live as long as the address is used."""
    return int(array.__array_interface__["data"][0])
