"""The catalogue names C functions that exist, and ids that other libraries can tell apart."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "algorithms"
CATALOGUE = tomllib.loads((FOLDER / "catalogue.toml").read_text(encoding="utf-8"))
ALGORITHMS = [(collective, entry) for collective, about in CATALOGUE.items() for entry in about["algorithm"]]
TOPOLOGIES = {"flat", "chain", "k_chain", "binary", "binomial", "in_order_binomial"}
OPENMPI_VERSIONS = {"4.0", "4.1", "5.0"}

each_algorithm = pytest.mark.parametrize(
    ("collective", "entry"), ALGORITHMS, ids=[f"{collective}-{entry['name']}" for collective, entry in ALGORITHMS]
)


@each_algorithm
def test_function_is_defined_in_the_file_of_that_name(collective: str, entry: dict) -> None:
    folder = "reduce_scatter" if collective == "reduce_scatter_block" else collective  # one function serves both
    assert entry["function"] == f"collwise_{folder}_{entry['name']}"
    source = (FOLDER / folder / f"{entry['name']}.c").read_text(encoding="utf-8")
    assert re.search(rf"^void {entry['function']}\(", source, re.MULTILINE)


@each_algorithm
def test_entry_is_complete(collective: str, entry: dict) -> None:
    assert entry["topology"] in TOPOLOGIES
    assert set(entry["parameters"]) <= {"segment_bytes", "fanout"}
    assert ("fanout" in entry["parameters"]) == ("default_fanout" in entry)
    assert isinstance(entry["selectable"], bool)
    assert entry["title"]
    assert entry["reference"]
    assert entry["requires"] == []


@each_algorithm
def test_a_choice_has_an_id_in_every_openmpi_version(collective: str, entry: dict) -> None:
    assert set(entry["openmpi"]) == (OPENMPI_VERSIONS if entry["selectable"] else set())


@pytest.mark.parametrize("collective", CATALOGUE)
def test_names_are_unique(collective: str) -> None:
    names = [entry["name"] for entry in CATALOGUE[collective]["algorithm"]]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("version", sorted(OPENMPI_VERSIONS))
@pytest.mark.parametrize("collective", CATALOGUE)
def test_openmpi_ids_are_unique(collective: str, version: str) -> None:
    entries = CATALOGUE[collective]["algorithm"]
    ids = [entry["openmpi"][version] for entry in entries if version in entry["openmpi"]]
    assert len(ids) == len(set(ids))
    assert all(number > 0 for number in ids)  # 0 leaves the choice to Open MPI


def test_openmpi_collective_ids_are_those_of_the_rules_file() -> None:
    assert {name: about["openmpi_collective"] for name, about in CATALOGUE.items()} == {"bcast": 7, "gather": 9}
    assert {about["openmpi_message"] for about in CATALOGUE.values()} <= {"same", "times_procs"}


def test_registry_holds_every_algorithm_and_is_closed(tmp_path: Path) -> None:
    registry = tmp_path / "registry.c"
    subprocess.run(
        [sys.executable, FOLDER / "generate_registry.py", FOLDER / "catalogue.toml", registry],
        check=True,
        timeout=60,
    )
    lines = [line.strip() for line in registry.read_text().splitlines() if line.strip().startswith("{")]
    assert len(lines) == len(ALGORITHMS) + 1
    assert lines[-1] == "{.collective = NULL},"
    for line, (collective, entry) in zip(lines, ALGORITHMS, strict=False):
        assert f'.collective = "{collective}", .name = "{entry["name"]}"' in line
        assert f".{collective} = {entry['function']}" in line
