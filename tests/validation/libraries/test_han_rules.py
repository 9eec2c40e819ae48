"""Rules for HAN: their form, how HAN looks them up, and that the installed Open MPI follows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.validation.libraries.han_rules import GLOBAL, INTER_NODE, INTRA_NODE, han_rules
from collwise.validation.select.decisions import DecisionTable
from collwise.validation.times.choice import Choice
from tests.needs import needs
from tests.validation.libraries.han_check import check_han, component_for

BINOMIAL, LIBRARY = Choice("tasks_binomial", 65536), Choice("tasks_library", 131072, 1)
TABLE = DecisionTable(
    "bcast",
    "somewhere",
    2,
    "simulated",
    "a test",
    {4: ((8192, BINOMIAL),), 16: ((8192, BINOMIAL), (1 << 20, LIBRARY))},
)
USUAL = {"bcast": BINOMIAL}
NUMBER = Catalogue.load().collective("bcast").openmpi_collective


def component(text: str, level: int, size: int, message_bytes: int) -> str | None:
    return component_for(text, NUMBER, level, size, message_bytes)


@pytest.mark.parametrize(
    ("level", "size", "message_bytes", "expected"),
    [
        (GLOBAL, 2, 1 << 20, "tuned"),
        (GLOBAL, 4, 8191, "tuned"),
        (GLOBAL, 4, 8192, "han"),
        (GLOBAL, 5000, 1 << 25, "han"),
        (INTER_NODE, 1, 0, "adapt"),
        (INTER_NODE, 7, 1 << 20, "adapt"),
        (INTER_NODE, 8, (1 << 20) - 1, "adapt"),
        (INTER_NODE, 8, 1 << 20, "libnbc"),
        (INTRA_NODE, 1, 0, "tuned"),
        (INTRA_NODE, 2, 1 << 20, "sm"),
    ],
)
def test_lookup(level: int, size: int, message_bytes: int, expected: str) -> None:
    assert component(han_rules([TABLE], USUAL, "file").text, level, size, message_bytes) == expected


def test_the_file_is_a_stream_of_counted_rules() -> None:
    text = han_rules([TABLE], USUAL, "file").text
    words = " ".join(line.split("#")[0].strip() for line in text.splitlines() if not line.startswith("#"))
    assert words == (
        "1 7 3 "
        "0 1 1 2 0 tuned 1048576 sm "
        "1 2 1 1 0 adapt 8 2 0 adapt 1048576 libnbc "
        "2 3 1 1 0 tuned 4 2 0 tuned 8192 han 16 2 0 tuned 8192 han"
    )


def test_parameters_have_one_value_for_all_sizes() -> None:
    parameters = han_rules([TABLE], USUAL, "a/file").parameters
    assert parameters["coll_han_dynamic_rules_filename"] == "a/file"
    assert parameters["coll_han_bcast_segsize"] == "65536"
    assert parameters["coll_han_bcast_up_module"] == "1"
    assert parameters["coll_han_bcast_low_module"] == "0"
    assert parameters["coll_adapt_bcast_algorithm"] == "1"
    library = han_rules([TABLE], {"bcast": LIBRARY}, "a/file").parameters
    assert library["coll_han_bcast_up_module"] == "0"
    assert library["coll_han_bcast_low_module"] == "1"
    assert not any("adapt_bcast" in name for name in library)
    assert "coll_han_bcast_segsize = 65536\n" in han_rules([TABLE], USUAL, "f").parameters_text()


def test_wrong_tables() -> None:
    with pytest.raises(UsageError, match=r"4\.0 has no HAN; valid: 4\.1, 5\.0"):
        han_rules([TABLE], USUAL, "file", "4.0")
    with pytest.raises(UsageError, match="no decision table"):
        han_rules([], USUAL, "file")
    with pytest.raises(UsageError, match="bcast chain is not made of tasks"):
        han_rules([replace(TABLE, rules={4: ((0, Choice("chain", 8192)),)})], USUAL, "file")
    with pytest.raises(UsageError, match="HAN has no alltoall"):
        han_rules([replace(TABLE, collective="alltoall")], USUAL, "file")
    with pytest.raises(UsageError, match="not a rules file"):
        component_for("1 7 2 0", NUMBER, 0, 1, 1)


@needs("openmpi", "nodes")
@pytest.mark.parametrize(("message_bytes", "expected", "segments"), [(4096, "tuned", None), (1 << 20, "han", 16)])
def test_openmpi_follows(tmp_path: Path, message_bytes: int, expected: str, segments: int | None) -> None:
    file = tmp_path / "han.rules"
    rules = han_rules([TABLE], USUAL, str(file))
    file.write_text(rules.text)
    check = check_han(file, rules.parameters, "bcast", 2, 2, message_bytes)
    assert check.matches, check.summary
    assert (check.expected, check.segments) == (expected, segments)
    if segments:
        other = check_han(file, {**rules.parameters, "coll_han_bcast_segsize": "262144"}, "bcast", 2, 2, message_bytes)
        assert other.segments == 4
