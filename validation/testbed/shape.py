"""The shape of a test bed: nodes, rates, buffers, Open MPI's parameters on it, and the platform that it describes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from collwise.common.errors import UsageError, check_name
from collwise.platforms import Calibration, Platform, Source

MTU_BYTES = 1500
FRAME_BYTES = MTU_BYTES + 14
"""The largest IP packet, and the bytes that a token bucket counts for it, with the Ethernet header."""
MAX_NODES = 200
_ALWAYS_PARAMETERS = {
    # TCP between nodes, shared memory within a node, as on real hosts.
    "btl": "tcp,vader,self",
    "pml": "ob1",
    "btl_tcp_if_include": "10.77.0.0/16",
    "oob_tcp_if_include": "10.77.0.0/16",
    # A node does not know that others share its cores.
    "mpi_yield_when_idle": "1",
}
TRANSPORT_PARAMETERS: Mapping[str, Mapping[str, str]] = {
    "steady": {
        # 1: sends only, no puts. By default, the receiver's permission for a large message queues behind the receiver's
        # own data, and it is chance whether the two directions of an exchange follow one another or overlap.
        "btl_tcp_flags": "1",
        # By default, Linux lets the buffer grow with use, so that earlier messages decide how many sends overlap.
        "btl_tcp_sndbuf": "16384",
    },
    "default": {},
}
"""Open MPI's parameters (MCA) for each value of Shape.transport."""
TRANSPORTS = tuple(TRANSPORT_PARAMETERS)
_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([kmg]?)bit(?:/s)?", re.IGNORECASE)
_RATE_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_MIN_RATE, _MAX_RATE = 1e5, 1e11
_UNLIMITED = "4194304"
TCP_VARIANTS: Mapping[str, Mapping[str, str]] = {
    # Without loss probes (Linux 3.10), RACK (4.4) and small queues (3.6), a loss at the end of a message is detected
    # only by a time-out.
    "reno-2009": {
        "tcp_congestion_control": "reno",
        "tcp_early_retrans": "0",
        "tcp_recovery": "0",
        "tcp_limit_output_bytes": _UNLIMITED,
    },
    "reno": {"tcp_congestion_control": "reno", "tcp_limit_output_bytes": _UNLIMITED},
    "bbr": {"tcp_congestion_control": "bbr", "tcp_limit_output_bytes": _UNLIMITED},
}
"""Settings below net.ipv4, by name of the TCP variant. Other settings stay as the system has them."""


@dataclass(frozen=True)
class Shape:
    """Size and speeds of a test bed. Raises UsageError for values that no bed can have.

    `bits_per_second` is the rate of each port in both directions. `buffer_bytes` is the queue of each port of a switch,
    and `burst_bytes` the token-bucket burst. `host_queue_bytes` limits TCP's data in a node's own queue, for each
    connection (tcp_limit_output_bytes). With two switches, the first half of the nodes is at the first switch, and the
    link between them has the rate `uplink_bits_per_second` in both directions. `transport` is 'steady' (sends only, and
    a send buffer that does not grow) or 'default' (Open MPI's own settings).
    """

    nodes: int = 8
    bits_per_second: float = 50e6
    buffer_bytes: int = 1_000_000
    # To reach the rate, this must exceed one packet, but not reach two, since the second would also pass unshaped.
    burst_bytes: int = 2000
    ranks_per_node: int = 1
    congestion_control: str = "reno"
    host_queue_bytes: int = 4000
    switches: int = 1
    uplink_bits_per_second: float = 0.0
    transport: str = "steady"

    def __post_init__(self) -> None:
        _check("nodes", self.nodes, 2, MAX_NODES)
        _check("ranks per node", self.ranks_per_node, 1, 64)
        _check("switches", self.switches, 1, 2)
        _check("rate in bit/s", self.bits_per_second, _MIN_RATE, _MAX_RATE)
        if self.switches == 2:
            _check("rate between the switches in bit/s", self.uplink_bits_per_second, _MIN_RATE, _MAX_RATE)
        elif self.uplink_bits_per_second:
            raise UsageError("a rate between switches needs a test bed with two switches")
        _check("burst in bytes", self.burst_bytes, FRAME_BYTES, 10**7)
        _check("buffer in bytes", self.buffer_bytes, FRAME_BYTES, 10**9)
        _check("host queue in bytes", self.host_queue_bytes, 1, 2**31 - 1)
        check_name("transport", self.transport, TRANSPORTS)
        if re.fullmatch(r"[a-z0-9_]{1,15}", self.congestion_control) is None:
            raise UsageError(f"malformed congestion control '{self.congestion_control}'; an example: reno")

    def switch_of(self, node: int) -> int:
        """The switch, 1 or 2, of node 1, 2, ...; with an odd number of nodes, the first switch has one node more."""
        return 2 if self.switches == 2 and node > -(-self.nodes // 2) else 1

    @property
    def title(self) -> str:
        """A title for names of platforms: '8x100M', or '8x100M-2x10M' with 10 Mbit/s between two switches.

        Four ranks on each node add '-4ppn', the transport 'default' adds '-default'.
        """
        uplink = f"-2x{self.uplink_bits_per_second / 1e6:g}M" if self.switches == 2 else ""
        transport = "" if self.transport == TRANSPORTS[0] else f"-{self.transport}"
        ranks = f"-{self.ranks_per_node}ppn" if self.ranks_per_node > 1 else ""
        return f"{self.nodes}x{self.bits_per_second / 1e6:g}M{uplink}{ranks}{transport}"

    @property
    def openmpi_parameters(self) -> dict[str, str]:
        """All parameters (MCA) with which Open MPI runs on a bed of that shape."""
        return {**_ALWAYS_PARAMETERS, **TRANSPORT_PARAMETERS[self.transport]}


def _check(what: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise UsageError(f"test bed: {what}: {value:.12g} (valid: {least:.12g} to {most:.12g})")


def parse_rate(text: str) -> float:
    """Bits per second from '100Mbit', '1Gbit' or '1.5Gbit/s'. Raises UsageError for anything else."""
    match = _RATE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"malformed rate '{text}': write a number with kbit, Mbit or Gbit, for example 100Mbit")
    return float(match.group(1)) * _RATE_UNITS[match.group(2).lower()]


def format_rate(bits_per_second: float) -> str:
    """A rate as text, such as '100 Mbit/s' or '1 Gbit/s'."""
    for unit, factor in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bits_per_second >= factor:
            return f"{bits_per_second / factor:.4g} {unit}"
    return f"{bits_per_second:.4g} bit/s"


# The latency from node to node.
_LATENCY_SECONDS = 40e-6


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
        loopback_bytes_per_second=2e9,
        loopback_latency_seconds=1e-6,
        processes_per_node=shape.ranks_per_node,
        calibration=Calibration(eager_limit_bytes=65536, tcp_window=False),
        sources=(Source("rate of the links", f"the shape of the test bed, {rate}"),),
    )
