"""Test beds come up as asked for, and all of them goes again, whatever happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from collwise.common.errors import UsageError
from collwise.validation.testbed import bed as beds, namespaces
from collwise.validation.testbed.shape import Shape
from tests.waiting import wait_for

MOUNTS = Path("/run/netns")
Make = Callable[..., beds.Bed]


def made_for(name: str) -> list[str]:
    return sorted(entry.name for entry in MOUNTS.iterdir() if entry.name.startswith(f"collwise-{name}"))


def start(code: str) -> subprocess.Popen[bytes]:
    head = (
        "import os, time\n"
        "from collwise.validation.testbed.bed import Bed, busy, up, running\n"
        "from collwise.validation.testbed.shape import Shape\n"
    )
    return subprocess.Popen([sys.executable, "-P", "-c", head + code])


@contextmanager
def foreign_namespace(name: str) -> Iterator[None]:
    namespaces.command("ip", "netns", "add", name)
    try:
        yield
    finally:
        namespaces.command("ip", "netns", "del", name)


def test_up_and_down(make: Make, name: str) -> None:
    bed = make(congestion_control="reno", host_queue_bytes=5000)
    assert made_for(name) == sorted(bed.namespaces)
    assert beds.running(name) == bed
    assert bed.facts["congestion_control"] == "reno"
    assert bed.facts["host_queue_bytes"] == "5000"
    assert bed.facts["kernel"].startswith("Linux")
    assert beds.down(name) == 4
    assert not made_for(name)
    assert not bed.directory.exists()
    assert beds.down(name) == 0
    with pytest.raises(UsageError, match="up"):
        beds.running(name)


def test_only_what_was_made_is_removed(make: Make, name: str) -> None:
    with foreign_namespace(f"collwise-{name}-thing"):
        make()
        beds.down(name)
        assert made_for(name) == [f"collwise-{name}-thing"]
    with foreign_namespace(f"collwise-{name}-n2"):
        with pytest.raises(UsageError, match="did not make"):
            make()
        beds.down(name)
        assert made_for(name) == [f"collwise-{name}-n2"]


def test_a_bed_half_made_is_removed_by_the_next(name: str) -> None:
    maker = start(f"up(Shape(nodes=200), '{name}')")
    wait_for(lambda: len(made_for(name)) > 5, 0.002)
    maker.kill()
    maker.wait()
    assert 5 < len(made_for(name)) < 201
    assert beds.down(f"{name}-other") == 0
    assert not made_for(name)
    assert name not in beds.names()


def test_an_interrupted_maker_leaves_nothing(name: str) -> None:
    maker = start(f"up(Shape(nodes=200), '{name}')")
    wait_for(lambda: len(made_for(name)) > 5, 0.002)
    maker.send_signal(signal.SIGINT)
    assert maker.wait(900) != 0
    assert not made_for(name)


def test_a_temporary_bed_goes_with_its_maker(name: str) -> None:
    assert start(f"up(Shape(nodes=2), '{name}', temporary=True)").wait(900) == 0
    assert len(made_for(name)) == 3
    beds.down(f"{name}-other")
    assert not made_for(name)


def test_down_ends_what_runs_inside(make: Make, name: str) -> None:
    bed = make()
    inside = subprocess.Popen(["ip", "netns", "exec", bed.namespace("n2"), "sleep", "100"])
    wait_for(lambda: namespaces.processes(bed.namespaces) == [inside.pid])
    assert not namespaces.processes(bed.namespaces, bed.mark)
    beds.down(name)
    assert inside.wait(900) == -signal.SIGKILL


def test_two_beds_side_by_side(make: Make, name: str) -> None:
    make()
    beds.up(Shape(nodes=2), f"{name}-b")
    assert {name, f"{name}-b"} <= set(beds.names())
    beds.down(name)
    assert made_for(name) == sorted(beds.running(f"{name}-b").namespaces)


def test_a_bed_in_use_is_not_remade(make: Make, name: str) -> None:
    bed = make()
    with beds.busy(bed):
        with pytest.raises(UsageError, match="runs on the test bed"), beds.busy(bed):
            pass
        with pytest.raises(UsageError, match="runs on the test bed"):
            make()
    assert made_for(name) == sorted(bed.namespaces)
    make()


def test_the_lock_goes_with_its_holder(make: Make, name: str) -> None:
    bed = make()
    holder = start(
        f"bed = running('{name}')\nwith busy(bed):\n    (bed.directory / 'held').touch()\n    time.sleep(100)"
    )
    wait_for((bed.directory / "held").exists)
    with pytest.raises(UsageError, match="runs on the test bed"), beds.busy(bed):
        pass
    holder.kill()
    holder.wait()
    with beds.busy(bed):
        pass


def test_a_congestion_control_that_does_not_exist(make: Make, name: str) -> None:
    with pytest.raises(UsageError, match="reno"):
        make(congestion_control="rono")
    assert not made_for(name)


@pytest.mark.parametrize("name_given", ["", "../x", "a b", "-x", "x" * 41])
def test_names_that_no_bed_can_have(name_given: str) -> None:
    with pytest.raises(UsageError, match="name"):
        beds.running(name_given)


def test_without_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UsageError, match=r"root|package"):
        beds.up(Shape(nodes=2), "rightless")


def test_without_the_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "_PATH", "/nonexistent")
    with pytest.raises(UsageError, match="iproute2"):
        beds.up(Shape(nodes=2), "toolless")
