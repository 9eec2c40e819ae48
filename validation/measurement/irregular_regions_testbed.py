"""Irregular regions on test beds of their own. They have small switch buffers, and the TCP of today or of the thesis's
years.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from collwise.common.errors import check_name

if TYPE_CHECKING:
    from collwise.simulator.store import Store
    from collwise.validation.measurement.irregular_regions import Regions, RegionsPlan
    from collwise.validation.testbed.bed import Bed
    from collwise.validation.testbed.shape import Shape

_UNLIMITED = "4194304"
TCP_VARIANTS: Mapping[str, Mapping[str, str]] = {
    # Without loss probes (Linux 3.10), RACK (4.4) and small queues (3.6): a loss at the end of a message is only seen
    # by a time-out.
    "reno-2009": {
        "tcp_congestion_control": "reno",
        "tcp_early_retrans": "0",
        "tcp_recovery": "0",
        "tcp_limit_output_bytes": _UNLIMITED,
    },
    "reno": {"tcp_congestion_control": "reno", "tcp_limit_output_bytes": _UNLIMITED},
    "bbr": {"tcp_congestion_control": "bbr", "tcp_limit_output_bytes": _UNLIMITED},
}
"""Settings below net.ipv4 by name; the others stay as the system has them."""


def set_tcp(bed: Bed, variant: str) -> None:
    """Sets TCP on all nodes. Raises UsageError for an unknown variant and CollwiseError when the kernel refuses."""
    from collwise.validation.testbed.namespaces import command

    check_name("TCP variant", variant, TCP_VARIANTS)
    settings = [f"net.ipv4.{name}={value}" for name, value in TCP_VARIANTS[variant].items()]
    for node in bed.nodes:
        command("ip", "netns", "exec", bed.namespace(f"n{node}"), "sysctl", "-qw", *settings)


def regions_on_bed(shape: Shape, variant: str, plan: RegionsPlan, store: Store, *, name: str, run: str = "") -> Regions:
    """Makes the test bed `name`, looks for irregular regions on it, and takes it down in any case."""
    from collwise.validation.measurement.irregular_regions import find_regions
    from collwise.validation.testbed.bed import temporarily_up
    from collwise.validation.testbed.target import TestBed
    from collwise.validation.testbed.tcp_counters import tcp_counts

    check_name("TCP variant", variant, TCP_VARIANTS)
    # The shape has them, too, since its facts are recorded with the times.
    settings = TCP_VARIANTS[variant]
    queue_bytes = int(settings["tcp_limit_output_bytes"])
    shape = replace(shape, congestion_control=settings["tcp_congestion_control"], host_queue_bytes=queue_bytes)
    with temporarily_up(shape, name) as bed:
        set_tcp(bed, variant)
        target = TestBed(bed)
        target.facts = {**target.facts, "tcp": variant}
        label = f"{variant}, buffers of {shape.buffer_bytes / 1e3:g} kB"
        return find_regions(target, plan, store, variant=label, run=run, counters=lambda: tcp_counts(bed))
