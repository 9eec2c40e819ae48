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
from collwise.platforms.loader import known, load, load_description
from collwise.platforms.writer import write_description
from collwise.platforms.xml import platform_xml
from collwise.platforms.xml_file import XmlPlatform

__all__ = [
    "Buffers",
    "Calibration",
    "CheckReport",
    "HeterogeneousPlatform",
    "HostPlatform",
    "NodeType",
    "Platform",
    "Ports",
    "ReorderedPlatform",
    "Source",
    "Wire",
    "XmlPlatform",
    "check_file",
    "known",
    "load",
    "load_description",
    "parse_radical",
    "platform_xml",
    "write_description",
]
