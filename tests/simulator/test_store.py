from __future__ import annotations

import math
import multiprocessing
import os
import signal
import sqlite3
import stat
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from collwise.common.errors import UsageError
from collwise.simulator.store import Store
from collwise.simulator.timing import Case, Configuration, Timing

CONFIGURATION = Configuration("simulated", "grisou", "SimGrid 3.32", (("options", "{}"), ("platform_digest", "abc")))
OTHER = replace(CONFIGURATION, maker="SimGrid 4.1")


def timing(message_bytes: int, seconds: float = 1.0) -> Timing:
    return Timing(Case("bcast", "chain", 50, message_bytes, 8192, processes_per_node=2), seconds, seconds / 2)


def forked(function: Callable[[], None]) -> int:
    """Runs the function in a process of its own; its wait status."""
    child = os.fork()
    if child == 0:
        try:
            function()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitpid(child, 0)[1]


def refused(path: Path, *words: str) -> None:
    with pytest.raises(UsageError) as caught:
        Store(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def filled(path: Path, rows: int = 500) -> Path:
    with Store(path) as store:
        store.add(CONFIGURATION, [timing(size) for size in range(rows)])
    return path


def test_the_schema(tmp_path: Path) -> None:
    path = filled(tmp_path / "timings.sqlite", 1)
    connection = sqlite3.connect(path)
    columns = [row[1] for row in connection.execute("pragma table_info(timings)")]
    of_case = ["fanout" if field.name == "parameter" else field.name for field in fields(Case)]
    assert columns == [
        "configuration", *of_case, "nodes", "seconds", "root_seconds",
        "half_width_seconds", "repetitions", "error", "median_seconds", "least_seconds", "greatest_seconds",
        "late_starts", "clock_resolution_seconds", "precise", "samples", "made_at",
    ]  # fmt: skip
    key = {row[1] for row in connection.execute("pragma table_info(timings)") if row[5]}
    assert key == {"configuration", *of_case}
    assert connection.execute("pragma user_version").fetchone() == (3,)
    assert connection.execute("select source, platform, maker from configurations").fetchall() == [
        ("simulated", "grisou", "SimGrid 3.32")
    ]
    connection.close()


def test_what_is_added_is_read_back(tmp_path: Path) -> None:
    gather = Timing(
        Case("gather", "linear", 41, 65536, 1, 2, 2, 3, "bcast_gather", 512), 0.1 + 0.2, 1 / 3, 1e-6, repetitions=30
    )
    measured = Timing(
        Case("bcast", "linear", 8, 1), 0.1, math.nan, 0.01, 3, "", 0.1, 0.09, 1 / 3, 2, 1e-9, False, (0.1, 0.09, 1 / 3)
    )
    failed = Timing(Case("bcast", "chain", 2, 1), float("nan"), error='it\'s "broken"; drop table timings')
    with Store(tmp_path / "timings.sqlite") as store:
        store.add(CONFIGURATION, [gather, failed, measured])
        store.add(OTHER, [timing(7)])
    with Store(tmp_path / "timings.sqlite") as store:
        found = store.timings(CONFIGURATION)
        assert found[gather.case] == gather
        assert gather.ok
        assert found[measured.case] == measured
        assert found[failed.case].error == failed.error
        assert not found[failed.case].ok
        assert str(found[failed.case].seconds) == str(found[failed.case].root_seconds) == "nan"
        assert len(found) == 3
        assert store.timings(OTHER) == {timing(7).case: timing(7)}
        assert store.timings(replace(OTHER, platform="gros")) == {}
        (row,) = store.rows(collective="gather")
        assert (row["source"], row["platform"], row["maker"]) == ("simulated", "grisou", "SimGrid 3.32")
        assert (row["procs"], row["nodes"], row["seconds"], row["gather_bytes"]) == (41, 21, 0.1 + 0.2, 512)
        assert len(list(store.rows())) == 4
        assert [row["message_bytes"] for row in store.rows(maker="SimGrid 4.1", procs=50)] == [7]
        assert list(store.rows(source="measured")) == []


CASES = st.builds(
    Case, st.just("bcast"), st.sampled_from(["chain", "linear"]), st.integers(1, 3), st.integers(0, 3),
    root=st.integers(0, 1),
)  # fmt: skip


@given(st.lists(st.builds(Timing, CASES, st.floats(0, 1e9), st.floats(0, 1e9)), max_size=30))
@settings(max_examples=25)
def test_the_last_row_of_a_case_stands(timings: list[Timing]) -> None:
    with tempfile.TemporaryDirectory() as directory, Store(Path(directory, "timings.sqlite")) as store:
        for one in timings:
            store.add(CONFIGURATION, [one])
        assert store.timings(CONFIGURATION) == {one.case: one for one in timings}


def test_every_field_of_a_configuration_makes_another_key() -> None:
    others = [
        replace(CONFIGURATION, source="measured"),
        replace(CONFIGURATION, platform="gros"),
        replace(CONFIGURATION, maker="SimGrid 4.1"),
        replace(CONFIGURATION, details=(("options", "{}"), ("platform_digest", "abd"))),
        replace(CONFIGURATION, details=()),
    ]
    assert len({one.key for one in [CONFIGURATION, *others]}) == 6
    assert replace(CONFIGURATION).key == CONFIGURATION.key


@pytest.mark.parametrize(("procs", "per_node", "nodes"), [(1, 1, 1), (50, 2, 25), (51, 2, 26), (3, 4, 1)])
def test_nodes(procs: int, per_node: int, nodes: int) -> None:
    assert Case("bcast", "chain", procs, 1, processes_per_node=per_node).nodes == nodes


def test_folders_are_made_and_odd_names_work(tmp_path: Path) -> None:
    path = filled(tmp_path / "not there" / "yet" / "a b#?%20é.sqlite", 3)
    with Store(path) as store:
        assert len(store.timings(CONFIGURATION)) == 3
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with Store(filled(tmp_path / "empty", 2)) as store:
        assert len(store.timings(CONFIGURATION)) == 2


def write_rows(path: Path, first: int, barrier: object) -> None:
    barrier.wait()  # type: ignore[attr-defined]
    with Store(path) as store:
        for size in range(first, first + 40):
            store.add(CONFIGURATION, [timing(size, float(size))])


def test_two_processes_may_make_and_write_one_store(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    for attempt in range(3):
        path = tmp_path / f"{attempt}.sqlite"
        barrier = context.Barrier(3)
        writers = [context.Process(target=write_rows, args=(path, first, barrier)) for first in (0, 20, 100)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert [writer.exitcode for writer in writers] == [0, 0, 0]
        with Store(path) as store:
            found = store.timings(CONFIGURATION)
        assert sorted(case.message_bytes for case in found) == [*range(60), *range(100, 140)]
        assert all(one.seconds == case.message_bytes for case, one in found.items())


def test_a_writer_killed_within_a_commit_loses_its_row_only(tmp_path: Path) -> None:
    path = filled(tmp_path / "timings.sqlite")

    def die_with_half_a_transaction_on_disk() -> None:
        connection = sqlite3.connect(path)
        connection.execute("pragma cache_size = 1")
        connection.execute("begin immediate")
        connection.execute("update timings set seconds = 5")
        os.kill(os.getpid(), signal.SIGKILL)

    assert forked(die_with_half_a_transaction_on_disk) == signal.SIGKILL
    journal = tmp_path / "timings.sqlite-journal"
    assert journal.stat().st_size > 0
    with Store(path) as store:
        assert {one.seconds for one in store.timings(CONFIGURATION).values()} == {1.0}
        store.add(CONFIGURATION, [timing(10_000)])
    assert not journal.exists()
    with Store(path) as store:
        assert len(store.timings(CONFIGURATION)) == 501


def test_a_writer_killed_while_making_the_store_leaves_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "timings.sqlite"

    def die() -> None:
        connection = sqlite3.connect(path)
        connection.execute("pragma cache_size = 1")
        connection.execute("begin immediate")
        connection.execute("create table rows (content text)")
        connection.executemany("insert into rows values (?)", [("x" * 5000,)] * 50)
        os.kill(os.getpid(), signal.SIGKILL)

    assert forked(die) == signal.SIGKILL
    assert path.stat().st_size > 0
    with Store(filled(path, 4)) as store:
        assert len(store.timings(CONFIGURATION)) == 4


def left_untouched(path: Path, content: bytes, *words: str) -> None:
    """What is no whole store is refused with these words, and stays as it was."""
    path.write_bytes(content)
    refused(path, *words, "left untouched")
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("size", [1, 15, 100, 4096, 100_000])
def test_random_bytes_are_left_untouched(tmp_path: Path, size: int) -> None:
    what = "is not a store of times (SQLite)" if size > 1 else "is not a timing table"
    left_untouched(tmp_path / "timings.sqlite", os.urandom(size), what)


def test_truncated_stores_are_left_untouched(tmp_path: Path) -> None:
    path = filled(tmp_path / "timings.sqlite")
    whole = path.read_bytes()
    assert len(whole) > 10 * 4096
    for length in (2, 99, 100, 1000, 4096, 5000, 2 * 4096, len(whole) // 2, len(whole) - 4096, len(whole) - 1):
        left_untouched(path, whole[:length], "is corrupted")


def test_stores_with_damaged_pages_are_left_untouched(tmp_path: Path) -> None:
    """Pages that are empty, or sound but another one's, as of an index: rows would be missing."""
    path = filled(tmp_path / "timings.sqlite")
    whole = path.read_bytes()
    pages = [whole[start : start + 4096] for start in range(0, len(whole), 4096)]
    for page in range(1, len(pages)):
        for other in (bytes(4096), pages[page - 1], pages[(page + 2) % len(pages)]):
            left_untouched(path, b"".join([*pages[:page], other, *pages[page + 1 :]]), "is corrupted")


@pytest.mark.parametrize(
    "statements",
    [
        "create table songs (title text); insert into songs values ('x');",
        "create table songs (title text); pragma user_version = 1;",
        "create table configurations (x); create table timings (y); pragma user_version = 2;",
        "create table configurations (x); create table timings (y);",
        "pragma user_version = 1; create table timings (y);",
    ],
)
def test_the_file_of_another_program_is_left_untouched(tmp_path: Path, statements: str) -> None:
    path = tmp_path / "other.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(statements)
    connection.close()
    left_untouched(path, path.read_bytes(), "is not a timing table of this version")


def test_a_directory(tmp_path: Path) -> None:
    refused(tmp_path, "is a directory")
    assert list(tmp_path.iterdir()) == []


def test_paths_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    refused(tmp_path / "file" / "timings.sqlite")
    refused(Path("/proc/nowhere/timings.sqlite"))
    refused(tmp_path / ("x" * 300))
    assert (tmp_path / "file").read_text() == "kept"


@pytest.fixture
def locked() -> Iterator[Path]:
    """A folder with a store, which nobody may write."""
    with tempfile.TemporaryDirectory() as directory:
        path = filled(Path(directory, "timings.sqlite"), 3)
        path.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
        Path(directory).chmod(0o555)
        yield path
        Path(directory).chmod(0o755)


def test_without_the_right_to_write(locked: Path) -> None:
    content = locked.read_bytes()

    def try_to_write() -> None:
        if os.geteuid() == 0:
            os.setuid(65534)
        refused(locked, "cannot be used")
        refused(locked.with_name("new.sqlite"), "cannot be used")
        refused(locked.parent / "folder" / "new.sqlite", "cannot be used")

    assert forked(try_to_write) == 0
    assert locked.read_bytes() == content
    assert list(locked.parent.iterdir()) == [locked]


def test_a_store_that_goes_away_is_told_in_one_line(tmp_path: Path) -> None:
    with Store(filled(tmp_path / "timings.sqlite")) as store:
        store.path.unlink()
        with pytest.raises(UsageError, match="cannot be used") as caught:
            store.add(CONFIGURATION, [timing(10_000)])
    assert str(store.path) in str(caught.value)


def test_configurations_are_listed_with_what_they_hold(tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as store:
        store.add(CONFIGURATION, [timing(1), replace(timing(2), error="broken")])
        store.add(OTHER, [replace(timing(3), case=Case("gather", "linear", 4, 3))])
        first, second = store.configurations()
    assert (first.configuration, first.rows, first.failed, first.collectives) == (CONFIGURATION, 2, 1, ("bcast",))
    assert (second.configuration, second.rows, second.failed, second.collectives) == (OTHER, 1, 0, ("gather",))
    assert first.key == CONFIGURATION.key
    assert first.first_made <= first.last_made


def test_pruning_deletes_what_was_named_and_configurations_without_rows(tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as store:
        store.add(CONFIGURATION, [timing(size) for size in range(5)])
        store.add(OTHER, [timing(7)])
        assert store.prune([CONFIGURATION.key], "2000-01-01 00:00:00") == 0
        assert [one.rows for one in store.configurations()] == [5, 1]
        assert store.prune([CONFIGURATION.key], "2999-01-01 00:00:00") == 5
        assert [one.configuration for one in store.configurations()] == [OTHER]
        assert store.prune(["not there"]) == 0
        assert store.prune([OTHER.key]) == 1
        assert (store.configurations(), list(store.rows())) == ([], [])
        store.add(OTHER, [timing(7)])
        assert len(store.timings(OTHER)) == 1


def test_a_pruning_that_cannot_be_finished_deletes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    with Store(path) as store:
        store.add(CONFIGURATION, [timing(size) for size in range(5)])
        store.add(OTHER, [timing(7)])
    other = sqlite3.connect(path)
    other.execute(
        "create trigger keep before delete on timings when old.message_bytes = 7 begin select raise(abort, 'kept'); end"
    )
    other.commit()
    with Store(path) as store:
        with pytest.raises(UsageError, match="kept"):
            store.prune([CONFIGURATION.key, OTHER.key])
        assert [one.rows for one in store.configurations()] == [5, 1]


def test_rows_have_one_of_several_values(tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as store:
        store.add(CONFIGURATION, [timing(size) for size in range(5)])
        found = store.rows(message_bytes=(1, 3, 9), platform="grisou")
        assert [row["message_bytes"] for row in found] == [1, 3]
