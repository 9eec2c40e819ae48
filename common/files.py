"""Reading of text, atomic writing, and checks that a file can be written, made before long work starts."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import zlib
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from collwise.common.errors import UsageError, note

_Made = TypeVar("_Made")


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, decompressed if its name ends in .gz."""
    try:
        if path.suffix == ".gz":
            return gzip.decompress(path.read_bytes()).decode("utf-8")
        return path.read_text(encoding="utf-8")
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise UsageError(f"cannot read {path}: {problem}; it is not a complete gzip file of text") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"cannot read {path}: {getattr(problem, 'strerror', None) or 'not text'}") from None


def read_json(
    path: Path, what: str, how: str, is_current: Callable[[Any], bool], make: Callable[[Any], _Made]
) -> _Made:
    """Reads a JSON file and returns `make(document)`.

    `what` is a noun for such a file, and `how` says how to get one, both for the message of the UsageError.
    `is_current` returns true for a document of this version.
    """
    try:
        document = json.loads(read_text(path))
        if not is_current(document):
            raise UsageError(f"{path}: not {what}, or one of another version; {how}")
        return make(document)
    except (json.JSONDecodeError, RecursionError):
        raise UsageError(f"{path}: not {what}, since it is not JSON; {how}") from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as problem:
        raise UsageError(f"{path}: not {what} ({problem}); {how}") from None


def write_text(path: Path, text: str) -> None:
    """Writes text as UTF-8, as `write_bytes` does."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a temporary file in the same folder and renames it, so that no half-written file is left.

    Missing folders are created. A symbolic link is kept, and its target is replaced. Devices and pipes are written
    directly.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            temporary.write_bytes(data)
            temporary.replace(target)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()
    except OSError as problem:
        raise UsageError(f"cannot write {path}: {problem.strerror}") from None


def writable_folder(folder: Path) -> Path:
    """Returns the folder, without creating it. Raises UsageError if nothing can be written into it."""
    reason = _why_not_writable(folder)
    if reason:
        raise UsageError(f"cannot write into {folder}: {reason}")
    return folder


def note_replaced(file: Path) -> None:
    """Says that a command replaces results of an earlier run, if their main file exists."""
    if file.is_file():
        made = datetime.fromtimestamp(file.stat().st_mtime)
        note(f"{file} and the files that belong to it are replaced; they were written at {made:%Y-%m-%d %H:%M}")


def writable_file(path: Path) -> Path:
    """Returns the path. Raises UsageError if no file can be written there, or its folder does not exist."""
    if path.exists() and not path.is_file() and not path.is_dir():
        return path
    folder = path.resolve().parent
    if path.is_dir():
        reason = "it is a folder; name a file"
    elif not folder.exists():
        reason = f"the folder {path.parent} does not exist; make it first"
    else:
        reason = _why_not_writable(folder)
    if reason:
        raise UsageError(f"cannot write {path}: {reason}")
    return path


def new_file(path: Path, force: bool = False) -> Path:
    """Returns the path. Raises UsageError if the file exists and `force` is false."""
    if path.is_file() and not force:
        raise UsageError(f"{path} already exists; name another file, or overwrite it with --force")
    return path


def _why_not_writable(folder: Path) -> str:
    """The reason why no file can be created in the folder, or empty; leaves no folder behind."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".collwise-{os.getpid()}.part"
        probe.touch()
        probe.unlink()
    except OSError as problem:
        return problem.strerror or str(problem)
    finally:
        for path in missing:
            with contextlib.suppress(OSError):
                path.rmdir()
    return ""
