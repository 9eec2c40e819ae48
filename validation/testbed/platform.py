"""The platform of a test bed as its shape describes it, from which calibration starts."""

from __future__ import annotations

from collwise.common.errors import UsageError
from collwise.platforms import Calibration, Platform, Source
from collwise.validation.testbed.shape import Shape, format_rate

# The latency from node to node.
_LATENCY_SECONDS = 40e-6
_EAGER_LIMIT_BYTES = 65536
# Nominal: processes of one node communicate through memory.
_LOOPBACK_BYTES_PER_SECOND, _LOOPBACK_LATENCY_SECONDS = 2e9, 1e-6


def simulated_platform(shape: Shape) -> Platform:
    """Nodes n1, n2, ... at the nominal rate with a nominal latency, factors 1 and no overheads."""
    if shape.switches != 1:
        raise UsageError("a test bed with two switches cannot be described as a cluster behind one switch")
    rate = format_rate(shape.bits_per_second)
    return Platform(
        name=f"testbed-{shape.title}".lower().replace(".", "_"),
        title=f"Test bed of {shape.nodes} nodes at {rate}",
        site="testbed",
        nodes=shape.nodes,
        host_prefix="n",
        host_suffix="",
        cpus_per_node=1,
        cores_per_node=1,
        core_flops=1e9,
        link_bytes_per_second=shape.bits_per_second / 8,
        # A message passes the links of both nodes.
        link_latency_seconds=_LATENCY_SECONDS / 2,
        loopback_bytes_per_second=_LOOPBACK_BYTES_PER_SECOND,
        loopback_latency_seconds=_LOOPBACK_LATENCY_SECONDS,
        processes_per_node=shape.ranks_per_node,
        calibration=Calibration(eager_limit_bytes=_EAGER_LIMIT_BYTES, tcp_window=False),
        sources=(Source("rate of the links", f"the shape of the test bed, {rate}"),),
    )
