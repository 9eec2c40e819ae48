"""The critical path of a schedule: how often each parameter lies on it, and which parameter dominates."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from collwise.simulator.schedule import library
from collwise.simulator.schedule.library import Schedule, Trace
from collwise.simulator.schedule.tables import Doubles, NetworkTables

if TYPE_CHECKING:
    import pandas as pd

# The parts of the time that messages wait, by the resource that a message waited for last.
_WAITING = {
    library.PORT: "waiting for ports",
    library.MEMORY: "waiting for memory",
    library.SOCKETS: "waiting between sockets",
    library.LINK: "waiting for uplinks",
}


def path_parts(schedule: Schedule, network: NetworkTables, every: bool = True) -> tuple[Trace, pd.DataFrame]:
    """The trace on a network, and its critical path by parts.

    The rows are the parts of the time. `count` says how often the part is on the path, `bytes` is the total size of its
    messages and operations, `seconds` is their time, and `share` is its share of the whole time. If the part were twice
    as slow, the whole would take `seconds` longer, provided that the path stays the same. The time of a message beyond
    its own latency and transfer is waiting: for resources that other messages use, or for packets that switches lost.
    If `every` is false, processes that behave like another process may be missing from the trace.
    """
    import pandas as pd

    # If this is true, a message that is alone on the network takes the same time between any two nodes.
    is_even = len(np.unique(network.class_of)) == 1 and network.switch_of is None and network.socket_of is None
    trace = schedule.trace(network, of_period=is_even and not every)
    path = trace.path
    spent, sizes = path["spent"], trace.sizes[path["size"]].astype(np.float64)
    sizes = np.where(spent == library.SEEING, 0.0, sizes)
    seconds = path["end_seconds"] - path["begin_seconds"]
    alone = _alone(network, path)
    is_message = np.isin(spent, (library.ON_WAY, library.LEAVING))
    is_gap = np.isin(spent, (library.IN_GAP, library.TAKING_IN))
    latency = np.where(spent == library.ON_WAY, np.minimum(alone["latency"], seconds), 0.0)
    on_ports = np.where(is_message, np.minimum(alone["transfer"], seconds - latency), 0.0)
    transfer = np.where(is_gap, seconds, on_ports)
    handshake = np.where(is_message, np.minimum(alone["handshake"], seconds - latency - transfer), 0.0)
    waiting = np.where(is_message, seconds - latency - transfer - handshake, 0.0)
    waiting = np.where(waiting > 1e-9 * seconds, waiting, 0.0)
    waits = dict(_WAITING)
    if network.buffers is not None:
        waits[library.PORT] += " and time-outs"

    def of(activity: int) -> Doubles:
        return np.where(spent == activity, seconds, 0.0)

    columns = {
        "send overhead": of(library.SENDING),
        "latency": latency,
        "handshake": handshake,
        "answers": of(library.ANSWERING),
        "transfer": transfer,
        **{name: np.where(path["waits_for"] == what, waiting, 0.0) for what, name in waits.items()},
        "receive overhead": of(library.RECEIVING),
        "reduction": of(library.REDUCING),
        "copies": of(library.COPYING),
        "fresh memory": of(library.ALLOCATING),
        "copies by shared memory": of(library.MOVING),
        "flags": of(library.SEEING),
    }
    rows = [(int((part > 0).sum()), int(sizes[part > 0].sum()), float(part.sum())) for part in columns.values()]
    parts = pd.DataFrame(rows, index=pd.Index(columns, name="part"), columns=["count", "bytes", "seconds"])
    parts["share"] = parts.seconds / max(float(seconds.sum()), 1e-300)
    return trace, parts


def _alone(network: NetworkTables, path: np.ndarray) -> dict[str, np.ndarray]:
    """Each message's latency, transfer and handshake (0 if it has none) if nothing else used its ports."""
    source, destination = network.node_of[path["process"]], network.node_of[path["peer"]]
    one, other, size = network.class_of[source], network.class_of[destination], path["size"]
    local = path["is_local"].astype(bool)
    waits = network.waits_for_receives[size] & ~local
    latency, handshake = network.latency_seconds[one, other, size], network.handshake_seconds[one, other, size]
    if network.switch_of is not None:
        assert network.route_seconds is not None
        assert network.latency_factor is not None
        assert network.handshake_factor is not None
        switches = math.isqrt(len(network.route_seconds))
        on_route = network.route_seconds[network.switch_of[source] * switches + network.switch_of[destination]]
        latency = latency + on_route * network.latency_factor[size]
        handshake = handshake + on_route * network.handshake_factor[size]
    local_latency, local_transfer = network.local_latency_seconds[one, size], network.local_transfer_seconds[one, size]
    if network.socket_of is not None:
        assert network.cross_latency_seconds is not None
        assert network.cross_transfer_seconds is not None
        crosses = network.socket_of[path["process"]] != network.socket_of[path["peer"]]
        local_latency = np.where(crosses, network.cross_latency_seconds[one, size], local_latency)
        local_transfer = np.where(crosses, network.cross_transfer_seconds[one, size], local_transfer)
    return {
        "latency": np.where(local, local_latency, latency),
        "transfer": np.where(local, local_transfer, network.transfer_seconds[one, other, size]),
        "handshake": np.where(waits, handshake, 0.0),
    }
