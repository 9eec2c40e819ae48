"""A reservation of OAR, as on Grid'5000: mpirun over its node file, with oarsh in place of ssh."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from collwise.common.errors import UsageError
from collwise.simulator.execution.cluster import Wishes
from collwise.simulator.execution.host_lists import Slots, read_host_file
from collwise.simulator.execution.mpirun import Mpirun

REMOTE_SHELL = "oarsh"


def slots_of_reservation(environment: Mapping[str, str]) -> Slots:
    """The hosts of the node file, which has a line a core, as slots. Raises UsageError outside of a reservation."""
    file = environment.get("OAR_NODEFILE") or environment.get("OAR_NODE_FILE")
    if not file:
        raise UsageError("--launcher oar: OAR_NODEFILE is not set; run within a reservation (oarsub)")
    return read_host_file(Path(file))


class Oar(Mpirun):
    """An ExecutionTarget: the hosts of the reservation that this runs in. Raises as Mpirun does."""

    launcher = "oar"

    def __init__(self, wishes: Wishes, remote_shell: str = "") -> None:
        super().__init__(slots_of_reservation(os.environ), wishes, remote_shell or REMOTE_SHELL)
