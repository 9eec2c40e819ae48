"""Platforms: cluster descriptions in TOML, the SimGrid platform XML generated from them, and checks of both.

A module loads when a name of it is first used, so that what only names platforms does not wait for the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collwise.common.lazy import names_of

if TYPE_CHECKING:
    from collwise.platforms.check import CheckReport, check_file
    from collwise.platforms.description import (
        Buffers,
        Calibration,
        HeterogeneousPlatform,
        NodeFault,
        NodeType,
        Platform,
        Ports,
        Source,
        Wire,
    )
    from collwise.platforms.description_file import write_description
    from collwise.platforms.hosts import HostPlatform, ReorderedPlatform, parse_radical
    from collwise.platforms.loader import interconnect, load, load_description
    from collwise.platforms.names import interconnect_names, known
    from collwise.platforms.new import Node, new_platform, with_overheads
    from collwise.platforms.placement import PlacedPlatform, placed
    from collwise.platforms.topology import CableFault, Dragonfly, FatTree, Topology, Torus
    from collwise.platforms.xml import platform_xml
    from collwise.platforms.xml_file import XmlPlatform

__all__ = [
    "Buffers",
    "CableFault",
    "Calibration",
    "CheckReport",
    "Dragonfly",
    "FatTree",
    "HeterogeneousPlatform",
    "HostPlatform",
    "Node",
    "NodeFault",
    "NodeType",
    "PlacedPlatform",
    "Platform",
    "Ports",
    "ReorderedPlatform",
    "Source",
    "Topology",
    "Torus",
    "Wire",
    "XmlPlatform",
    "check_file",
    "interconnect",
    "interconnect_names",
    "known",
    "load",
    "load_description",
    "new_platform",
    "parse_radical",
    "placed",
    "platform_xml",
    "with_overheads",
    "write_description",
]

__getattr__ = names_of(
    __name__,
    {
        "check": ("CheckReport", "check_file"),
        "description": (
            "Buffers",
            "Calibration",
            "HeterogeneousPlatform",
            "NodeFault",
            "NodeType",
            "Platform",
            "Ports",
            "Source",
            "Wire",
        ),
        "hosts": ("HostPlatform", "ReorderedPlatform", "parse_radical"),
        "loader": ("interconnect", "load", "load_description"),
        "names": ("interconnect_names", "known"),
        "new": ("Node", "new_platform", "with_overheads"),
        "placement": ("PlacedPlatform", "placed"),
        "topology": ("CableFault", "Dragonfly", "FatTree", "Topology", "Torus"),
        "description_file": ("write_description",),
        "xml": ("platform_xml",),
        "xml_file": ("XmlPlatform",),
    },
)
