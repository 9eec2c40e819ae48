"""Output of 'collwise platforms' for homogeneous and heterogeneous platforms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from collwise import platforms as package
from collwise.platforms import known, load, write_description
from collwise.platforms.description_file import read_description
from collwise.platforms.loader import interconnect
from collwise.studies.cli.platforms import platforms
from collwise.validation.calibration.figures import from_data_sheets
from tests import command_line
from tests.free import free
from tests.needs import needs


def run(*arguments: str) -> Result:
    return CliRunner().invoke(platforms, arguments)


def printed(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_list_has_every_platform_and_marks_the_synthetic_ones() -> None:
    output = printed("show")
    assert all(f" {name} " in output for name in known())
    rows = {line.split()[1]: line for line in output.splitlines() if line.startswith("│")}
    assert {name for name, row in rows.items() if "Synthetic" in row} == {
        "exact",
        "exact-heterogeneous",
        "exact-sender",
        "exact-symmetric",
    }
    cells = {name: [cell.strip() for cell in row.split("│")[3:7]] for name, row in rows.items()}
    assert cells["hcl16"] == ["16", "1", "1 Gbit/s", "22.78 to 112.7 us"]
    assert cells["boba"] == ["32", "1", "0.5333 Gbit/s", "29.61 us"]


def test_json_has_the_types_and_wires() -> None:
    by_name = {facts["name"]: facts for facts in command_line.printed(printed("show", "--json")).rows}
    assert list(by_name) == known()
    hcl = by_name["hcl16"]
    assert [kind["nodes"] for kind in hcl["node_types"]] == [2, 6, 2, 1, 1, 1, 3]
    assert len(hcl["wires"]) == 25
    assert by_name["boba"]["link_bytes_per_second"] == pytest.approx(1 / 0.015e-6)
    assert command_line.printed(printed("show", "hcl16", "--json")).rows == [hcl]


@pytest.mark.parametrize("name", ["gros", "hcl16", "stampede2"])
def test_show_and_write(name: str, tmp_path: Path) -> None:
    assert read_description(printed("show", name)) == (load(name), [])
    file = tmp_path / "platform.xml"
    assert printed("show", name, "-o", str(file)) == f"{file}: {len(load(name).hosts)} hosts\n"
    assert load(file).hosts == load(name).hosts


@needs("smpi")
@pytest.mark.parametrize(
    ("name", "understood"),
    [
        (
            "hcl16",
            "hcl-1.ucd.ie to hcl-16.ucd.ie; 7 types of nodes; link 1 Gbit/s, 22.78 to 112.7 us from node to node; ",
        ),
        ("boba", "boba-1.cs.utk.edu to boba-32.cs.utk.edu; link 0.533333 Gbit/s and 14.806 us (two links on the way: "),
    ],
)
def test_check_says_what_it_understood(name: str, understood: str) -> None:
    file = Path(package.__file__).parent / f"{name}.toml"
    first, second = printed("show", str(file), "--check").splitlines()
    assert first.startswith(f"{file}: sound, {len(load(name).hosts)} hosts, simulated by SimGrid ")
    assert second.startswith(understood)


@needs("smpi")
def test_check_adds_the_overheads_of_both_processes_to_the_latency(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(write_description(replace(from_data_sheets(interconnect("infiniband-hdr")), name="mine")))
    said = printed("show", str(file), "--check")
    assert (
        "up to 0.92 us between nodes; with the overheads of both processes a short message takes up to 1.16 us" in said
    )
    file.write_text(write_description(free()))
    without = printed("show", str(file), "--check")
    assert "with the overheads" not in without


@needs("smpi")
def test_a_platform_of_one_host_is_tried_within_the_host(tmp_path: Path) -> None:
    file = tmp_path / "one.xml"
    file.write_text(
        """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="Full"><host id="a" speed="1Gf"/></zone></platform>
"""
    )
    assert printed("show", str(file), "--check").startswith(f"{file}: sound, 1 hosts, simulated by SimGrid ")
