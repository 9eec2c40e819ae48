"""Decisions, comparisons, times and store keys are what they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.golden.running import NAMES, NEEDS_SMPI, TOLERANCES, expected, results
from tests.golden.shapes import brief, differences, dumped
from tests.needs import needs


@pytest.mark.parametrize(
    "group", [pytest.param(name, marks=needs("smpi") if name in NEEDS_SMPI else ()) for name in NAMES]
)
def test_results_are_as_they_were(group: str, tmp_path: Path) -> None:
    """`python -m tests.golden.rewrite GROUP` writes the file again where a result is meant to change."""
    tolerance = TOLERANCES.get(group, 1e-12)
    found = [*differences(expected(group), results(group, tmp_path), tolerance=tolerance)]
    assert not found, "\n".join([f"{len(found)} differences", *found[:30]])


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ({"a": [1, 2.0]}, {"a": [1, 2.0 * (1 + 1e-13)]}, []),
        ({"a": [1, 2.0]}, {"a": [1, 2.0 * (1 + 1e-11)]}, ["/a/1: 2.0 became 2.00000000002"]),
        ({"slowdown": 0.0}, {"slowdown": 2.2e-16}, []),
        ({"slowdown": 0.0}, {"slowdown": 0.001}, ["/slowdown: 0.0 became 0.001"]),
        ({"a": 1}, {"b": 1}, ["/a: missing", "/b: new"]),
        ([1, 2], [1], [": [1, 2] became [1]"]),
        ({"bytes": 8192}, {"bytes": 8193}, ["/bytes: 8192 became 8193"]),
        (["chain 8192"], ["chain 0"], ['/0: "chain 8192" became "chain 0"']),
        (True, 1, [": true became 1"]),
        (None, 0.0, [": null became 0.0"]),
        (1e-6, 1.000000001e-6, [": 1e-06 became 1.000000001e-06"]),
    ],
)
def test_every_difference_is_found(one: Any, other: Any, said: list[str]) -> None:
    assert sorted(differences(one, other)) == said


def test_what_is_kept_is_short() -> None:
    choice = {"algorithm": "chain", "segment_bytes": 8192, "parameter": 0, "limit_bytes": 0}
    assert brief([{"best": choice}, {"best": choice | {"parameter": 4}}]) == {
        "columns": ["best"],
        "values": [["chain 8192"], ["chain 8192 4 0"]],
    }
    assert brief([choice | {"seconds": 1.0}]) == [{"choice": "chain 8192", "seconds": 1.0}]
    assert dumped({"a": [1, {"b": 2}]}) == '{"a": [1, {"b": 2}]}'
