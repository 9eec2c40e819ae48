"""Open MPI's parameters on a test bed."""

from __future__ import annotations

from collections.abc import Mapping

from collwise.validation.testbed.shape import Shape

_NETWORK = "10.77.0.0/16"
_ALWAYS = {
    # TCP between nodes, shared memory within a node, as on real hosts.
    "btl": "tcp,vader,self",
    "pml": "ob1",
    "btl_tcp_if_include": _NETWORK,
    "oob_tcp_if_include": _NETWORK,
    # A node does not know that others share its cores.
    "mpi_yield_when_idle": "1",
}
TRANSPORT_PARAMETERS: Mapping[str, Mapping[str, str]] = {
    "steady": {
        # 1: sends only, no puts. By default the receiver's permission for a large message queues behind its own data
        # in the one connection between two processes: the two directions of an exchange then follow one another, or
        # overlap, by chance.
        "btl_tcp_flags": "1",
        # By default Linux lets the buffer grow with use: earlier messages then decide how many sends overlap.
        "btl_tcp_sndbuf": "16384",
    },
    "default": {},
}
"""Open MPI's parameters for each value of Shape.transport."""


def openmpi_parameters(shape: Shape) -> dict[str, str]:
    """All parameters (MCA) with which Open MPI runs on a bed of that shape."""
    return {**_ALWAYS, **TRANSPORT_PARAMETERS[shape.transport]}
