"""Platforms: cluster descriptions in TOML, the SimGrid platform XML generated from them, and checks of both.

A module loads when one of its names is first used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from collwise.common.lazy import names_of

if TYPE_CHECKING:
    from collwise.platforms.allocation import (
        AllocatedPlatform as AllocatedPlatform,
        allocated as allocated,
        scattered as scattered,
    )
    from collwise.platforms.description import (
        Buffers as Buffers,
        Calibration as Calibration,
        HeterogeneousPlatform as HeterogeneousPlatform,
        Platform as Platform,
        Ports as Ports,
        Source as Source,
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
        placed as placed,
    )
    from collwise.platforms.loader import check_file as check_file, load as load, load_description as load_description
    from collwise.platforms.topology import (
        Dragonfly as Dragonfly,
        FatTree as FatTree,
        Topology as Topology,
        Torus as Torus,
    )

_MODULES = {
    "allocation": ("AllocatedPlatform", "allocated", "scattered"),
    "description": ("Buffers", "Calibration", "HeterogeneousPlatform", "Platform", "Ports", "Source"),
    "description_file": ("write_description",),
    "from_figures": ("Node", "new_platform", "with_overheads"),
    "hosts": ("HostPlatform", "PlacedPlatform", "placed"),
    "loader": ("check_file", "load", "load_description"),
    "topology": ("Dragonfly", "FatTree", "Topology", "Torus"),
}
__all__ = ["interconnect_names", "known", *(name for names in _MODULES.values() for name in names)]
__getattr__ = names_of(__name__, _MODULES)

FOLDER = Path(__file__).parent
"""The folder of the descriptions that are part of collwise."""
INTERCONNECTS = FOLDER / "interconnects"
"""The folder of the interconnects' descriptions."""


def known() -> list[str]:
    """The names of the platforms that are part of collwise."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def interconnect_names() -> list[str]:
    """The names of the interconnects that are part of collwise."""
    return sorted(path.stem for path in INTERCONNECTS.glob("*.toml"))
