"""Platforms: cluster descriptions in TOML, the SimGrid platform XML generated from them, and checks of both."""

from collwise.platforms.check import CheckReport, check_file
from collwise.platforms.description import (
    Buffers,
    Calibration,
    HeterogeneousPlatform,
    NodeType,
    Platform,
    Ports,
    Source,
    Wire,
)
from collwise.platforms.hosts import HostPlatform, ReorderedPlatform, parse_radical
from collwise.platforms.interconnects import interconnect, interconnects
from collwise.platforms.loader import known, load, load_description
from collwise.platforms.new import Node, new_platform, with_overheads
from collwise.platforms.placement import PlacedPlatform, placed
from collwise.platforms.topology import Dragonfly, FatTree, Topology, Torus
from collwise.platforms.writer import write_description
from collwise.platforms.xml import platform_xml
from collwise.platforms.xml_file import XmlPlatform

__all__ = [
    "Buffers",
    "Calibration",
    "CheckReport",
    "Dragonfly",
    "FatTree",
    "HeterogeneousPlatform",
    "HostPlatform",
    "Node",
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
    "interconnects",
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
