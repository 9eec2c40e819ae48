"""Rules for HAN: their form, how HAN looks them up, and that the installed Open MPI follows them."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.simulator.timing import Timing
from collwise.validation.libraries.formats import HAN, exported, how_to_use
from collwise.validation.libraries.han_rules import GLOBAL, han_rules
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.times.choice import Choice
from collwise.validation.times.grid import Grid, choice_of
from collwise.validation.times.times import Times
from tests.needs import needs
from tests.validation.libraries.han_check import check_han, component_for

BINOMIAL, LIBRARY = Choice("tasks_binomial", 65536), Choice("tasks_library", 131072, 1)
RULES = {4: ((8192, BINOMIAL),), 16: ((8192, BINOMIAL), (1 << 20, LIBRARY))}


def table_of(usual: Choice) -> DecisionTable:
    """Decisions by whose times one of the choices is the better one everywhere."""
    grid = Grid("bcast", (BINOMIAL, LIBRARY), (4, 16), (8192, 1 << 20), 2)
    timings = {case: Timing(case, 1.0 if choice_of(case) == usual else 2.0) for case in grid.cases()}
    times = Times.of_timings(grid, timings, "somewhere", "simulated", "a test")
    return DecisionTable("bcast", "somewhere", 2, "simulated", "a test", RULES, times)


TABLE = table_of(BINOMIAL)
NUMBER = Catalogue.load().collective("bcast").openmpi_collective


def parameters_of(text: str) -> dict[str, str]:
    return dict(line.removeprefix("#   ").split(" = ") for line in text.splitlines() if line.startswith("#   "))


def test_the_file_is_a_stream_of_counted_rules() -> None:
    text = han_rules([TABLE])
    words = " ".join(line.split("#")[0].strip() for line in text.splitlines() if not line.startswith("#"))
    assert words == (
        "1 7 3 "
        "0 1 1 2 0 tuned 1048576 sm "
        "1 2 1 1 0 adapt 8 2 0 adapt 1048576 libnbc "
        "2 3 1 1 0 tuned 4 2 0 tuned 8192 han 16 2 0 tuned 8192 han"
    )


def test_parameters_have_one_value_for_all_sizes() -> None:
    text = han_rules([TABLE])
    parameters = parameters_of(text)
    assert parameters["coll_han_bcast_segsize"] == "65536"
    assert parameters["coll_han_bcast_up_module"] == "1"
    assert parameters["coll_han_bcast_low_module"] == "0"
    assert parameters["coll_adapt_bcast_algorithm"] == "1"
    assert "# bcast: segments of 64 KiB for all sizes, which HAN cannot distinguish\n" in text
    library = parameters_of(han_rules([table_of(LIBRARY)]))
    assert library["coll_han_bcast_up_module"] == "0"
    assert library["coll_han_bcast_low_module"] == "1"
    assert not any("adapt_bcast" in name for name in library)


def test_the_command_that_uses_a_file_gives_its_parameters(tmp_path: Path) -> None:
    file = tmp_path / "han rules"
    file.write_text(han_rules([TABLE]))
    command = how_to_use(HAN, file).removesuffix("-n P PROGRAM").removeprefix("mpirun")
    done = subprocess.run(["sh", "-c", f'printf "%s\\n" {command}'], capture_output=True, text=True, check=True)
    words = done.stdout.splitlines()
    given = {name: value for word, name, value in zip(words[::3], words[1::3], words[2::3], strict=True)}
    assert given == {"coll_han_dynamic_rules_filename": str(file), **parameters_of(file.read_text())}
    assert set(words[::3]) == {"--mca"}


def test_wrong_tables() -> None:
    with pytest.raises(UsageError, match=r"4\.0 has no HAN; valid: 4\.1, 5\.0"):
        han_rules([TABLE], "4.0")
    with pytest.raises(UsageError, match="no decision table"):
        exported([], HAN)
    with pytest.raises(UsageError, match="these decisions of bcast include no times"):
        han_rules([replace(TABLE, times=None)])
    with pytest.raises(UsageError, match="bcast chain is not made of tasks"):
        han_rules([replace(TABLE, rules={4: ((0, Choice("chain", 8192)),)})])
    with pytest.raises(UsageError, match="HAN has no alltoall"):
        han_rules([replace(TABLE, collective="alltoall")])


def test_short_allreduces_stay_with_han() -> None:
    """HAN of Open MPI 4.1.4 ends with a segmentation fault where it passes an allreduce on to `tuned`."""
    text, number = han_rules([replace(TABLE, collective="allreduce")]), Catalogue.load().collective("allreduce")
    for size in (2, 4, 16):
        assert component_for(text, number.openmpi_collective, GLOBAL, size, 8) == "han"


@needs("openmpi", "nodes")
def test_openmpi_makes_a_short_allreduce_under_rules(tmp_path: Path) -> None:
    file = tmp_path / "han.rules"
    file.write_text(han_rules([replace(TABLE, collective="allreduce")]))
    parameters = {**parameters_of(file.read_text()), "coll_han_dynamic_rules_filename": str(file)}
    demanded, done = check_han(file, parameters, "allreduce", 2, 2, 8)
    assert demanded == done == ("han", None)


@needs("openmpi", "nodes")
@pytest.mark.parametrize(("message_bytes", "expected", "segments"), [(4096, "tuned", None), (1 << 20, "han", 16)])
def test_openmpi_follows(tmp_path: Path, message_bytes: int, expected: str, segments: int | None) -> None:
    file = tmp_path / "han.rules"
    file.write_text(han_rules([TABLE]))
    parameters = {**parameters_of(file.read_text()), "coll_han_dynamic_rules_filename": str(file)}
    demanded, done = check_han(file, parameters, "bcast", 2, 2, message_bytes)
    assert demanded == done == (expected, segments)
    if segments:
        _, other = check_han(file, {**parameters, "coll_han_bcast_segsize": "262144"}, "bcast", 2, 2, message_bytes)
        assert other.segments == 4
