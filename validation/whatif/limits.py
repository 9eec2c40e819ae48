"""The limits of a choice, as shares of its critical path, in the terms of LogGP."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from collwise.platforms import HostPlatform
from collwise.simulator.schedule.critical_path import path_parts
from collwise.simulator.schedule.library import Schedule
from collwise.simulator.schedule.networks import network_tables
from collwise.simulator.schedule.shared import proportions_for
from collwise.simulator.timing import Case

LIMITS: Mapping[str, tuple[str, ...]] = {
    "latency": ("latency", "handshake", "answers"),
    "overhead": ("send overhead", "receive overhead", "copies", "fresh memory"),
    "gap at node ports": ("waiting for ports", "waiting for ports and time-outs"),
    "gap in memory": ("waiting for memory",),
    "gap between sockets": ("waiting between sockets",),
    "gap on uplinks": ("waiting for uplinks",),
    "bandwidth": ("transfer",),
    "reduction": ("reduction",),
}
"""The limits, and the parts of the critical path (simulator/schedule/critical_path.py) that each consists of.

A message that takes longer than alone waits for what other messages use: that is the gap between messages, at the ports
of nodes, in the memory of a node, on the path between its sockets, or on links between switches.
"""


def limits_of(platform: HostPlatform, case: Case) -> dict[str, float]:
    """The share of each limit in the critical path of a case, by the schedule engine. They add up to 1."""
    node_of = platform.places(case.procs, case.processes_per_node)
    tables_of = partial(network_tables, platform, case.procs, case.processes_per_node)
    schedule = Schedule(case, node_of, proportions=proportions_for(case, tables_of))
    _, parts = path_parts(schedule, tables_of(schedule.sizes), every=False)
    share = parts.share.to_dict()
    return {limit: float(sum(share.get(name, 0.0) for name in names)) for limit, names in LIMITS.items()}


def main_limit(shares: Mapping[str, float]) -> str:
    """The limit with the largest share."""
    return max(shares, key=lambda limit: shares[limit])
