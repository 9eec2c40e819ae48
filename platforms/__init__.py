"""Platforms: cluster descriptions in TOML, the SimGrid platform XML generated from them, and checks of both.

A module loads when one of its names is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collwise.common.lazy import names_of

if TYPE_CHECKING:
    from collwise.platforms.allocation import (
        AllocatedPlatform as AllocatedPlatform,
        ScatteredPlatform as ScatteredPlatform,
        allocated as allocated,
        scattered as scattered,
    )
    from collwise.platforms.description import (
        Buffers as Buffers,
        Calibration as Calibration,
        HeterogeneousPlatform as HeterogeneousPlatform,
        NodeFault as NodeFault,
        NodeType as NodeType,
        Platform as Platform,
        Ports as Ports,
        Source as Source,
        Wire as Wire,
    )
    from collwise.platforms.description_file import write_description as write_description
    from collwise.platforms.from_figures import (
        Node as Node,
        new_platform as new_platform,
        with_overheads as with_overheads,
    )
    from collwise.platforms.hosts import (
        HostPlatform as HostPlatform,
        PlacedPlatform as PlacedPlatform,
        parse_radical as parse_radical,
        placed as placed,
    )
    from collwise.platforms.loader import (
        check_file as check_file,
        interconnect as interconnect,
        load as load,
        load_description as load_description,
    )
    from collwise.platforms.shipped import interconnect_names as interconnect_names, known as known
    from collwise.platforms.topology import (
        CableFault as CableFault,
        Dragonfly as Dragonfly,
        FatTree as FatTree,
        Topology as Topology,
        Torus as Torus,
    )
    from collwise.platforms.xml_file import XmlPlatform as XmlPlatform

_MODULES = {
    "allocation": ("AllocatedPlatform", "ScatteredPlatform", "allocated", "scattered"),
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
    "description_file": ("write_description",),
    "from_figures": ("Node", "new_platform", "with_overheads"),
    "hosts": ("HostPlatform", "PlacedPlatform", "parse_radical", "placed"),
    "loader": ("check_file", "interconnect", "load", "load_description"),
    "shipped": ("interconnect_names", "known"),
    "topology": ("CableFault", "Dragonfly", "FatTree", "Topology", "Torus"),
    "xml_file": ("XmlPlatform",),
}
__all__ = [name for names in _MODULES.values() for name in names]
__getattr__ = names_of(__name__, _MODULES)
