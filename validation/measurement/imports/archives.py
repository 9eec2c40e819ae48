"""Reads the files of a folder or an archive into memory; nothing is ever unpacked onto the disk."""

from __future__ import annotations

import io
import lzma
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from collwise.common.errors import UsageError

SUFFIXES = (".tar.gz", ".tgz", ".tar", ".tar.xz", ".tar.bz2", ".zip")
_LARGEST_BYTES = 256 << 20


def is_archive(path: Path) -> bool:
    """True if the file's name ends like an archive's."""
    return path.name.endswith(SUFFIXES)


def files_in(path: Path) -> dict[str, bytes]:
    """The contents of all files of a folder or an archive, by their names in it.

    The names of a folder's files begin with the folder's name. Raises UsageError, in one line, for a truncated or
    damaged archive, for names and links that lead out of the archive or folder, and for files above 256 MiB.
    """
    try:
        if path.is_dir():
            return _in_folder(path)
        data = path.read_bytes()
        return _in_zip(path, data) if path.suffix == ".zip" else _in_tar(path, data)
    except OSError as problem:
        raise UsageError(f"cannot read {path}: {problem.strerror or problem}") from None
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError) as problem:
        raise UsageError(f"{path}: truncated or damaged archive ({problem}); nothing was read") from None


def _in_folder(path: Path) -> dict[str, bytes]:
    root = path.resolve()
    found = {}
    for file in sorted(path.rglob("*")):
        if file.is_file():
            if not file.resolve().is_relative_to(root):
                raise _outside(path, str(file.relative_to(path)))
            _check_size(path, file.name, file.stat().st_size)
            found[f"{root.name}/{file.relative_to(path).as_posix()}"] = file.read_bytes()
    return found


def _in_tar(path: Path, data: bytes) -> dict[str, bytes]:
    found = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            _check(path, member.name)
            if not (member.isfile() or member.isdir()):
                raise _outside(path, member.name)
            if member.isfile():
                _check_size(path, member.name, member.size)
                file = archive.extractfile(member)
                content = file.read() if file is not None else b""
                if len(content) != member.size:
                    raise EOFError(f"the end is missing in {member.name}")
                found[member.name] = content
    return found


def _in_zip(path: Path, data: bytes) -> dict[str, bytes]:
    found = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            _check(path, member.filename)
            if not member.is_dir():
                _check_size(path, member.filename, member.file_size)
                found[member.filename] = archive.read(member)
    return found


def _check(path: Path, name: str) -> None:
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or ":" in name.partition("/")[0]:
        raise _outside(path, name)


def _check_size(path: Path, name: str, size: int) -> None:
    if size > _LARGEST_BYTES:
        raise UsageError(f"{path}: {name} has {size} bytes; results have at most {_LARGEST_BYTES}")


def _outside(path: Path, name: str) -> UsageError:
    return UsageError(f"{path}: '{name}' leads out of the archive; expected a whole archive of files and folders")
