"""Keys of a cluster description in TOML, and the valid values of each."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
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


def _number(least: float = 0.0, *, above: bool = False, required: bool = True) -> Key:
    valid = f"a number above {least:g}" if above else f"a number of at least {least:g}"
    return Key(valid, lambda v: is_number(v) and (v > least if above else v >= least), float, required)


def _whole(least: int, most: int | None = None, *, required: bool = True) -> Key:
    valid = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    return Key(
        valid,
        lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= least and (most is None or v <= most),
        int,
        required,
    )


def _text(pattern: str, valid: str, *, required: bool = True) -> Key:
    return Key(valid, lambda v: isinstance(v, str) and re.fullmatch(pattern, v, re.DOTALL) is not None, str, required)


MOST_DIFFERENT_NODES = 1000
"""Limit for heterogeneous clusters, whose platform XML has a route for every two nodes."""

_ANY_TEXT = _text(r".*", "text", required=False)
_HOST_PART = r"[A-Za-z0-9._-]*"
FACTOR_COLUMNS = {"from_bytes": _whole(0, LARGEST_BYTES), "factor": _number(above=True)}
OVERHEAD_COLUMNS = {"from_bytes": _whole(0, LARGEST_BYTES), "base_seconds": _number(), "seconds_per_byte": _number()}
SOURCE_COLUMNS = {"what": _text(r".+", "text"), "where": _text(r".+", "text")}

TOP = {
    "name": _text(r"[a-z0-9][a-z0-9_-]*", "lower-case letters, digits, - and _"),
    "title": _text(r".+", "text"),
    "site": _text(r"[A-Za-z0-9._-]+", "letters, digits, dots, - and _"),
}
CLUSTER = {
    "nodes": _whole(1, MOST_HOSTS),
    "host_prefix": _text(_HOST_PART, "letters, digits, dots, - and _"),
    "host_suffix": _text(_HOST_PART, "letters, digits, dots, - and _"),
    "first_host": _whole(0, 1_000_000, required=False),
    "cpus_per_node": _whole(1),
    "cores_per_node": _whole(1),
    "core_flops": _number(above=True),
    "processes_per_node": _whole(1, required=False),
}
NETWORK = {
    "link_bytes_per_second": _number(above=True),
    "link_latency_seconds": _number(),
    "links_per_node": _whole(1, required=False),
    "loopback_bytes_per_second": _number(above=True),
    "loopback_latency_seconds": _number(),
    "backbone_bytes_per_second": _number(above=True, required=False),
    "backbone_latency_seconds": _number(required=False),
}
NODE_TYPE = {
    "name": _text(_HOST_PART.replace("*", "+"), "letters, digits, dots, - and _"),
    "nodes": _whole(1, MOST_DIFFERENT_NODES),
    "cpus_per_node": _whole(1),
    "cores_per_node": _whole(1),
    "core_flops": _number(above=True),
    "send_base_seconds": _number(),
    "send_seconds_per_byte": _number(),
    "receive_base_seconds": _number(),
    "receive_seconds_per_byte": _number(),
    "link_bytes_per_second": _number(above=True),
    "link_latency_seconds": _number(),
}
WIRE = {
    "one": _text(r".+", "the name of a node type"),
    "other": _text(r".+", "the name of a node type"),
    "latency_seconds": _number(),
    "bytes_per_second": _number(above=True),
}
HETEROGENEOUS_CLUSTER = {
    key: CLUSTER[key] for key in ("host_prefix", "host_suffix", "first_host", "processes_per_node")
}
HETEROGENEOUS_NETWORK = {key: NETWORK[key] for key in ("loopback_bytes_per_second", "loopback_latency_seconds")}
CALIBRATION = {
    "eager_limit_bytes": _whole(0, LARGEST_BYTES, required=False),
    "crosstraffic": Key("true or false", lambda v: isinstance(v, bool), bool, required=False),
    "reduce_seconds_per_byte": _number(required=False),
    "tcp_window": Key("true or false", lambda v: isinstance(v, bool), bool, required=False),
    "note": _ANY_TEXT,
}
FACTOR_LISTS = ("latency_factor", "bandwidth_factor")
OVERHEAD_LISTS = ("os", "or", "ois")
