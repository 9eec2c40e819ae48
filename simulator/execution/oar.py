"""A reservation of OAR, as on Grid'5000: mpirun over its node file, with oarsh in place of ssh."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from collwise.common.errors import UsageError
from collwise.simulator.execution.cluster import LaunchOptions
from collwise.simulator.execution.host_lists import Slots, read_host_file
from collwise.simulator.execution.mpirun import Mpirun

REMOTE_SHELL = "oarsh"


def slots_of_reservation(environment: Mapping[str, str]) -> Slots:
    """The hosts of the node file, which has a line per core. Raises UsageError outside of a reservation."""
    file = environment.get("OAR_NODEFILE") or environment.get("OAR_NODE_FILE")
    if not file:
        raise UsageError("--launcher oar: OAR_NODEFILE is not set; run within a reservation (oarsub)")
    return read_host_file(Path(file))


class Oar(Mpirun):
    """The hosts of the OAR reservation that this runs in. Raises as Mpirun does."""

    launcher = "oar"

    def __init__(self, options: LaunchOptions, remote_shell: str = "") -> None:
        super().__init__(slots_of_reservation(os.environ), options, remote_shell or REMOTE_SHELL)
