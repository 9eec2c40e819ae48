"""Writing of cluster descriptions as TOML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import tomli_w

from collwise.common.errors import UsageError
from collwise.platforms import schema
from collwise.platforms.description import Calibration, Description, HeterogeneousPlatform, Platform
from collwise.platforms.reader import read_description

_Described = TypeVar("_Described", bound=Description)


def checked(platform: _Described) -> _Described:
    """The platform itself. Raises UsageError with the first problem that its description would have as a file."""
    problems = read_description(write_description(platform))[1]
    if problems:
        raise UsageError(problems[0].what)
    return platform


def write_description(platform: Description) -> str:
    """TOML text from which `read_description` makes an equal platform."""
    document = _values(platform, schema.TOP)
    calibration = _calibration(platform.calibration)
    if isinstance(platform, HeterogeneousPlatform):
        cluster, network = schema.HETEROGENEOUS_CLUSTER, schema.HETEROGENEOUS_NETWORK
        for name in schema.OVERHEAD_LISTS:
            del calibration[name]
    else:
        cluster, network = schema.CLUSTER, schema.NETWORK
    document["cluster"], document["network"] = _values(platform, cluster), _values(platform, network)
    document["calibration"] = calibration
    if isinstance(platform, Platform) and platform.topology is not None:
        kind = platform.topology.kind
        document["topology"] = {"kind": kind, **_values(platform.topology, schema.TOPOLOGY[kind])}
        if "switches_per_pod" not in document["topology"]:
            document["topology"].pop("pod_oversubscription", None)
        if faults := platform.topology.cable_faults:
            document["topology"]["cable_faults"] = [_values(fault, schema.CABLE_FAULT) for fault in faults]
    if isinstance(platform, Platform) and platform.node_faults:
        document["node_faults"] = [_values(fault, schema.NODE_FAULT) for fault in platform.node_faults]
    if isinstance(platform, Platform) and platform.ports is not None:
        document["ports"] = _values(platform.ports, schema.PORTS)
        if platform.ports.buffers is not None:
            document["ports"] |= _values(platform.ports.buffers, schema.BUFFERS)
    if isinstance(platform, HeterogeneousPlatform):
        document["node_types"] = [_values(kind, schema.NODE_TYPE) for kind in platform.node_types]
        document["network"]["wires"] = [_values(wire, schema.WIRE) for wire in platform.wires]
    elif "backbone_bytes_per_second" not in document["network"]:
        del document["network"]["backbone_latency_seconds"]
    if platform.published:
        document["published"] = platform.published
    document["sources"] = list(map(vars, platform.sources)) or None
    return tomli_w.dumps(_given(document))


def _calibration(calibration: Calibration) -> dict[str, Any]:
    return _given(
        {
            "note": calibration.note or None,
            "eager_limit_bytes": calibration.eager_limit_bytes,
            "crosstraffic": calibration.crosstraffic,
            "reduce_seconds_per_byte": calibration.reduce_seconds_per_byte,
            "tcp_window": None if calibration.tcp_window else False,
            "latency_factor": _rows(schema.FACTOR_COLUMNS, calibration.latency_factor),
            "bandwidth_factor": _rows(schema.FACTOR_COLUMNS, calibration.bandwidth_factor),
            "os": _rows(schema.OVERHEAD_COLUMNS, calibration.os),
            "or": _rows(schema.OVERHEAD_COLUMNS, calibration.or_),
            "ois": _rows(schema.OVERHEAD_COLUMNS, calibration.ois),
            "sources": list(map(vars, calibration.sources)) or None,
        }
    )


def _rows(columns: dict[str, Any], rows: Sequence[tuple[float, ...]]) -> list[dict[str, float]]:
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _values(described: object, keys: Mapping[str, schema.Key]) -> dict[str, Any]:
    return _given({key: getattr(described, key) for key in keys})


def _given(table: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None}
