"""Names of the platforms and interconnects that are part of collwise."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
"""The folder of the platforms' descriptions."""
INTERCONNECTS = FOLDER / "interconnects"
"""The folder of the interconnects' descriptions."""


def known() -> list[str]:
    """The names of the platforms."""
    return _names_in(FOLDER)


def interconnect_names() -> list[str]:
    """The names of the interconnects."""
    return _names_in(INTERCONNECTS)


def _names_in(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.toml"))
