"""Folders of collwise itself: its sources, the C programs built from them, and the user's cache."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from collwise.common.program import __version__

SOURCES = Path(__file__).resolve().parents[1]
"""The root of a clone, or the installed package; both contain the same folders, including the C sources."""
_C_SOURCES = ("CMakeLists.txt", "algorithms", "simulator/programs", "simulator/schedule", "tests/c")
_C_SUFFIXES = (".c", ".h", ".in", ".map", ".toml", ".txt")


def is_clone() -> bool:
    """True if this is a clone, or an unpacked archive of one."""
    return (SOURCES / "pyproject.toml").is_file()


def cache_folder() -> Path:
    """collwise's folder in the user's cache: $XDG_CACHE_HOME/collwise, by default ~/.cache/collwise."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "collwise"


def builds_folder() -> Path:
    """The folder with the builds of the C programs: build/ in a clone, else a cache folder for these C sources."""
    if is_clone():
        return SOURCES / "build"
    digest = _digest_of_c_sources(SOURCES)[:12]
    return cache_folder() / f"{__version__}-{os.uname().machine}-{digest}"


def c_sources(root: Path) -> list[Path]:
    """The files below `root` from which the C programs are built, sorted."""
    every = sorted(path for part in _C_SOURCES for path in ((root / part), *(root / part).rglob("*")))
    read = (file for file in every if file.suffix in _C_SUFFIXES or file.match("generate_*.py"))
    return [*filter(Path.is_file, read)]


@cache
def _digest_of_c_sources(root: Path) -> str:
    """The SHA-256 digest, hex, of the names and contents of the C programs' sources."""
    return digest_of(root, c_sources(root))


def digest_of(root: Path, files: Iterable[Path]) -> str:
    """The SHA-256 digest, hex, of the names and contents of files below a folder, in the given order."""
    digest = hashlib.sha256()
    for file in files:
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.relative_to(root)} {content}\n".encode())
    return digest.hexdigest()
