"""Platform XML for SimGrid, in the shape of Grid'5000's own: a site zone that holds a cluster of real host names."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

if TYPE_CHECKING:
    from collwise.platforms.description import Platform

_HEAD = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">"""


def platform_xml(platform: Platform) -> str:
    """The platform as XML that SimGrid 3.32 to 4.1 read alike.

    It holds what a simulation depends on and nothing else, so that a better title or source is the same platform.
    """
    lines = [_HEAD, '  <config id="smpi">']
    lines += [f"    {_tag('prop', id=name, value=value)}" for name, value in platform.smpi_options().items()]
    lines += ["  </config>", f'  <zone id={quoteattr(platform.site)} routing="Full">']
    lines += [f"    {line}" for line in _cluster_lines(platform)]
    lines += ["  </zone>", "</platform>"]
    return "\n".join(lines) + "\n"


def _cluster_lines(platform: Platform) -> list[str]:
    attributes = {
        "id": platform.name,
        "prefix": platform.host_prefix,
        "suffix": platform.host_suffix,
        "radical": f"{platform.first_host}-{platform.first_host + platform.nodes - 1}",
        "speed": f"{platform.core_flops!r}f",
        "core": str(platform.cores_per_node),
        "bw": f"{platform.link_bytes_per_second * platform.links_per_node!r}Bps",
        "lat": f"{platform.link_latency_seconds!r}s",
        "sharing_policy": "SPLITDUPLEX",
        "loopback_bw": f"{platform.loopback_bytes_per_second!r}Bps",
        "loopback_lat": f"{platform.loopback_latency_seconds!r}s",
        "router_id": f"{platform.host_prefix}router{platform.host_suffix}",
    }
    if platform.backbone_bytes_per_second is not None:
        attributes["bb_bw"] = f"{platform.backbone_bytes_per_second!r}Bps"
        attributes["bb_lat"] = f"{platform.backbone_latency_seconds!r}s"
        # A shared backbone would make all flows of the cluster compete; a switch forwards them side by side.
        attributes["bb_sharing_policy"] = "FATPIPE"
    # Every host of a cluster gets its properties; programs read this one where they reduce (algorithms/operation.c).
    gamma = repr(platform.calibration.reduce_seconds_per_byte)
    prop = _tag("prop", id="collwise/reduce-seconds-per-byte", value=gamma)
    return [_tag("cluster", **attributes).replace("/>", ">"), f"  {prop}", "</cluster>"]


def _tag(tag: str, **attributes: str) -> str:
    return f"<{tag} {' '.join(f'{name}={quoteattr(value)}' for name, value in attributes.items())}/>"
