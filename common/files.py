"""Writing files: whole or not at all, and found out before long work rather than after it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from collwise.common.errors import UsageError


def write_text(path: Path, text: str) -> None:
    """Writes a file through a neighbour that takes its place, so that nothing is left half-written.

    Folders are made if need be; links stay links; a device or a pipe is written to as it is. Raises UsageError, naming
    the file, when it cannot be written.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
            return
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        neighbour = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            neighbour.write_text(text, encoding="utf-8")
            neighbour.replace(target)
        finally:
            with contextlib.suppress(OSError):
                neighbour.unlink()
    except OSError as problem:
        raise UsageError(f"cannot write {path}: {problem.strerror}") from None


def writable_folder(folder: Path) -> Path:
    """The folder, made if need be. Raises UsageError, naming it, when nothing can be written there."""
    reason = _refusal(folder)
    if reason:
        raise UsageError(f"cannot write into {folder}: {reason}")
    return folder


def writable_file(path: Path) -> Path:
    """The path, when a file can be written there. Raises UsageError, naming it."""
    if path.exists() and not path.is_file() and not path.is_dir():
        return path
    reason = "it is a folder; name a file" if path.is_dir() else _refusal(path.resolve().parent)
    if reason:
        raise UsageError(f"cannot write {path}: {reason}")
    return path


def new_file(path: Path, force: bool = False) -> Path:
    """The path. Raises UsageError, naming it, if a file is there that `force` does not allow to overwrite."""
    if path.is_file() and not force:
        raise UsageError(f"{path} exists already; name another file, or overwrite it by --force")
    return path


def _refusal(folder: Path) -> str:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".collwise-{os.getpid()}.part"
        probe.touch()
        probe.unlink()
    except OSError as problem:
        return problem.strerror or str(problem)
    return ""
