"""Platforms without overheads."""

from __future__ import annotations

from dataclasses import replace

from collwise.platforms import Platform, load_description
from collwise.validation.calibration.published import with_parameters

FITTED = {
    "gros": {"link_latency_seconds": 1.781e-5, "bandwidth_factor": 0.7707, "rendezvous_latency_factor": 2.549},
    "grisou": {"link_latency_seconds": 2.963e-5, "bandwidth_factor": 0.8578, "rendezvous_latency_factor": 1.0},
}
"""The parameters that `calibrate --published` fits if messages cost processors nothing."""


def free(name: str = "gros") -> Platform:
    """The platform of that name, calibrated without overheads."""
    found = load_description(name)
    return with_parameters(replace(found, calibration=found.calibration.with_overheads_times(0)), FITTED[name])
