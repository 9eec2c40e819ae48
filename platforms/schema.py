"""Keys of a cluster description in TOML, and the valid values of each."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from collwise.platforms.hosts import MOST_HOSTS
from collwise.platforms.smpi import LARGEST_BYTES


@dataclass(frozen=True)
class Key:
    """A key: a phrase for its valid values, the test of a value, and the conversion to the stored type."""

    valid: str
    fits: Callable[[Any], bool]
    read: Callable[[Any], Any]
    required: bool = True


def is_number(value: object) -> bool:
    """True for finite numbers; TOML also has nan and infinities, and Python counts truth values as numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _whole(least: int, most: int | None = None) -> Key:
    valid = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    return Key(valid, lambda v: _is_whole(v, least) and (most is None or v <= most), int)


def _text(pattern: str, valid: str) -> Key:
    return Key(valid, lambda v: isinstance(v, str) and re.fullmatch(pattern, v, re.DOTALL) is not None, str)


MOST_DIFFERENT_NODES = 1000
"""Limit for heterogeneous clusters, whose platform XML has a route for every two nodes."""

MOST_HOPS = 30
"""The largest number of cables from switch to switch on a route, for which the schedule engine has room."""

_TRUTH = Key("true or false", lambda v: isinstance(v, bool), bool)
_POSITIVE = Key("a number above 0", lambda v: is_number(v) and v > 0, float)
_AMOUNT = Key("a number of at least 0", lambda v: is_number(v) and v >= 0, float)
_SIZE = _whole(0, LARGEST_BYTES)
_SOME_TEXT = _text(r".+", "text")
_HOST_PART = _text(r"[A-Za-z0-9._-]*", "letters, digits, dots, - and _")

# The valid values of keys by the end of their names, which tells their unit.
_BY_UNIT = {
    "bytes_per_second": _POSITIVE,
    "flops": _POSITIVE,
    "seconds": _AMOUNT,
    "seconds_per_byte": _AMOUNT,
    "per_node": _whole(1),
    "bytes": _SIZE,
}


def _keys(names: str, **others: Key) -> dict[str, Key]:
    """Keys by name, in that order; those with a question mark may be missing. `others` have no unit."""
    found = {}
    for word in names.split():
        name = word.rstrip("?")
        key = others.get(name) or next(key for unit, key in _BY_UNIT.items() if name.endswith(unit))
        found[name] = replace(key, required=word == name)
    return found


FACTOR_COLUMNS = _keys("from_bytes factor", factor=_POSITIVE)
OVERHEAD_COLUMNS = _keys("from_bytes base_seconds seconds_per_byte")
SOURCE_COLUMNS = _keys("what where", what=_SOME_TEXT, where=_SOME_TEXT)
TOP = _keys(
    "name title site",
    name=_text(r"[a-z0-9][a-z0-9_-]*", "lower-case letters, digits, - and _"),
    title=_SOME_TEXT,
    site=_text(r"[A-Za-z0-9._-]+", "letters, digits, dots, - and _"),
)
CLUSTER = _keys(
    "nodes host_prefix host_suffix first_host? cpus_per_node cores_per_node memory_domains_per_node? core_flops "
    "processes_per_node? memory_bytes_per_node?",
    nodes=_whole(1, MOST_HOSTS),
    host_prefix=_HOST_PART,
    host_suffix=_HOST_PART,
    first_host=_whole(0, 1_000_000),
)
NETWORK = _keys(
    "link_bytes_per_second link_latency_seconds links_per_node? loopback_bytes_per_second loopback_latency_seconds "
    "between_sockets_bytes_per_second? between_sockets_latency_seconds? memory_bytes_per_second? "
    "backbone_bytes_per_second? backbone_latency_seconds?"
)
_SHARE = Key("a number of at least 1", lambda v: is_number(v) and v >= 1, float)
TOPOLOGY = {
    "one-switch": {},
    "fat-tree": _keys(
        "nodes_per_switch oversubscription? switches_per_pod? pod_oversubscription? hop_latency_seconds?",
        nodes_per_switch=_whole(1),
        oversubscription=_SHARE,
        switches_per_pod=_whole(1),
        pod_oversubscription=_SHARE,
    ),
    "dragonfly": _keys(
        "groups switches_per_group nodes_per_switch local_bytes_per_second global_bytes_per_second "
        "hop_latency_seconds?",
        groups=_whole(1, 1000),
        switches_per_group=_whole(1),
        nodes_per_switch=_whole(1),
    ),
    "torus": _keys(
        "dimensions nodes_per_switch? cable_bytes_per_second? hop_latency_seconds?",
        dimensions=Key(
            f"a list of 1 to 6 whole numbers of at least 1, the halves of which add up to {MOST_HOPS} at most",
            lambda v: (
                isinstance(v, list)
                and 1 <= len(v) <= 6
                and all(_is_whole(n, 1) for n in v)
                and sum(n // 2 for n in v) <= MOST_HOPS
            ),
            tuple,
        ),
        nodes_per_switch=_whole(1),
    ),
}
NODE_FAULT = _keys(
    "node overhead_factor? rate_factor?",
    node=_whole(0, MOST_HOSTS),
    overhead_factor=_POSITIVE,
    rate_factor=_POSITIVE,
)
CABLE_FAULT = _keys(
    "switches rate_factor",
    switches=Key(
        "a list of one switch, or of two with a cable between them, counted from 0",
        lambda v: isinstance(v, list) and 1 <= len({*map(repr, v)}) == len(v) <= 2 and all(_is_whole(n, 0) for n in v),
        tuple,
    ),
    rate_factor=_POSITIVE,
)
NODE_TYPE = _keys(
    "name nodes cpus_per_node cores_per_node core_flops send_base_seconds send_seconds_per_byte receive_base_seconds "
    "receive_seconds_per_byte link_bytes_per_second link_latency_seconds",
    name=TOP["site"],
    nodes=_whole(1, MOST_DIFFERENT_NODES),
)
_NODE_TYPE_NAME = _text(r".+", "the name of a node type")
WIRE = _keys("one other latency_seconds bytes_per_second", one=_NODE_TYPE_NAME, other=_NODE_TYPE_NAME)
HETEROGENEOUS_CLUSTER = {
    key: CLUSTER[key] for key in ("host_prefix", "host_suffix", "first_host", "processes_per_node")
}
HETEROGENEOUS_NETWORK = {key: NETWORK[key] for key in ("loopback_bytes_per_second", "loopback_latency_seconds")}
PORTS = _keys(
    "bytes_per_second latency_seconds handshake_seconds? burst_bytes? header_bytes? acknowledgement_share? "
    "send_buffer_bytes? loopback_latency_seconds? loopback_bytes_per_second?",
    burst_bytes=_AMOUNT,
    header_bytes=_AMOUNT,
    loopback_bytes_per_second=_AMOUNT,
    send_buffer_bytes=_AMOUNT,
    acknowledgement_share=Key("a number from 0 to below 1", lambda v: is_number(v) and 0 <= v < 1, float),
)
BUFFERS = _keys(
    "buffer_bytes? retransmission_seconds? packet_bytes? initial_window_packets?",
    buffer_bytes=_whole(1, LARGEST_BYTES),
    retransmission_seconds=_POSITIVE,
    packet_bytes=_whole(1, LARGEST_BYTES),
    initial_window_packets=_whole(1, 1_000_000),
)
CALIBRATION = _keys(
    "eager_limit_bytes? crosstraffic? reduce_seconds_per_byte? tcp_window? note?",
    crosstraffic=_TRUTH,
    tcp_window=_TRUTH,
    note=_text(r".*", "text"),
)
FACTOR_LISTS = ("latency_factor", "bandwidth_factor")
OVERHEAD_LISTS = ("os", "or", "ois")
