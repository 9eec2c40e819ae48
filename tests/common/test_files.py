from __future__ import annotations

import os
from pathlib import Path

import pytest

from collwise.common.errors import UsageError
from collwise.common.files import new_file, writable_file, writable_folder, write_text


def test_folders_are_made_and_nothing_else_is_left(tmp_path: Path) -> None:
    write_text(tmp_path / "new" / "deep" / "file", "text\n")
    assert (tmp_path / "new" / "deep" / "file").read_text() == "text\n"
    assert [path.name for path in (tmp_path / "new" / "deep").iterdir()] == ["file"]


def test_a_probe_leaves_nothing_and_does_not_touch_the_file(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("old")
    assert writable_file(kept) == kept
    (tmp_path / "full").mkdir()
    assert writable_folder(tmp_path / "full") == tmp_path / "full"
    assert writable_folder(tmp_path / "new" / "deep") == tmp_path / "new" / "deep"
    assert kept.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "kept"]


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match=r"cannot write into .*file/below: Not a directory"):
        writable_folder(tmp_path / "file" / "below")
    with pytest.raises(UsageError, match=r"cannot write .*file/x: (File exists|Not a directory)"):
        writable_file(tmp_path / "file" / "x")
    with pytest.raises(UsageError, match=r"cannot write .*new/x: the folder .*new does not exist"):
        writable_file(tmp_path / "new" / "x")
    with pytest.raises(UsageError, match=r"it is a folder; name a file"):
        writable_file(tmp_path)


def test_a_file_that_exists_needs_force(tmp_path: Path) -> None:
    there = tmp_path / "there"
    assert new_file(there) == there
    there.write_text("old")
    with pytest.raises(UsageError, match=r"there already exists; .*--force"):
        new_file(there)
    assert new_file(there, force=True) == there
    assert new_file(Path("/dev/null")) == Path("/dev/null")


def test_a_link_stays_a_link_and_its_target_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "link"
    path.symlink_to(tmp_path / "real")
    for text in ("first\n", "second\n"):
        write_text(path, text)
        assert path.read_text() == text
    assert path.is_symlink()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link", "real"]


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text(path, "rules\n")
        assert os.read(reader, 100) == b"rules\n"
    finally:
        os.close(reader)
    assert path.is_fifo()


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_text(path, "old\n")
    for wrong in (tmp_path, path / "x", path / "folder" / "x"):
        with pytest.raises(UsageError, match="cannot write") as caught:
            write_text(wrong, "text\n")
        assert str(wrong) in str(caught.value)
        assert "\n" not in str(caught.value)

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(UsageError, match="No space left"):
        write_text(path, "new\n")
    assert path.read_text() == "old\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
