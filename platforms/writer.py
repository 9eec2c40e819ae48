"""Cluster descriptions written as TOML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tomli_w

from collwise.platforms.description import Calibration, Platform, Source
from collwise.platforms.schema import CLUSTER, FACTOR_COLUMNS, NETWORK, OVERHEAD_COLUMNS, TOP


def write_description(platform: Platform) -> str:
    """The platform as TOML text that reads back as an equal platform."""
    document: dict[str, Any] = {key: getattr(platform, key) for key in TOP}
    document["cluster"] = {key: getattr(platform, key) for key in CLUSTER}
    document["network"] = _given(
        {
            key: getattr(platform, key)
            for key in NETWORK
            if key != "backbone_latency_seconds" or platform.backbone_bytes_per_second is not None
        }
    )
    document["calibration"] = _calibration(platform.calibration)
    if platform.published:
        document["published"] = platform.published
    document["sources"] = _sources(platform.sources)
    return tomli_w.dumps(_given(document))


def _calibration(calibration: Calibration) -> dict[str, Any]:
    return _given(
        {
            "note": calibration.note or None,
            "eager_limit_bytes": calibration.eager_limit_bytes,
            "crosstraffic": calibration.crosstraffic,
            "reduce_seconds_per_byte": calibration.reduce_seconds_per_byte,
            "latency_factor": _rows(FACTOR_COLUMNS, calibration.latency_factor),
            "bandwidth_factor": _rows(FACTOR_COLUMNS, calibration.bandwidth_factor),
            "os": _rows(OVERHEAD_COLUMNS, calibration.os),
            "or": _rows(OVERHEAD_COLUMNS, calibration.or_),
            "ois": _rows(OVERHEAD_COLUMNS, calibration.ois),
            "sources": _sources(calibration.sources),
        }
    )


def _rows(columns: dict[str, Any], rows: Sequence[tuple[float, ...]]) -> list[dict[str, float]]:
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _sources(sources: Sequence[Source]) -> list[dict[str, str]] | None:
    return [{"what": source.what, "where": source.where} for source in sources] or None


def _given(table: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None}
