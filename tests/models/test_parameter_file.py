"""Parameter files are read back as they were written; broken ones give a line that names file and key."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from collwise.common.errors import UsageError
from collwise.common.keys import read_toml
from collwise.models.parameters import FittedParameters
from collwise.models.piecewise import PiecewiseLinear
from collwise.models.single_messages import LMO, Hockney, PLogP, Thresholds
from tests.models.parameter_examples import EXAMPLES, fitted


def as_values(parameters: Any) -> Any:
    """Parameters in a form that compares."""
    if isinstance(parameters, np.ndarray):
        return parameters.tolist()
    if not is_dataclass(parameters):
        return parameters
    return {name: as_values(value) for name, value in vars(parameters).items()}


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_family_is_read_back_equal(example: str, tmp_path: Path) -> None:
    written = fitted(example)
    file = tmp_path / "parameters.toml"
    written.save(file)
    read = FittedParameters.load(file)
    assert type(read.parameters) is type(written.parameters)
    assert as_values(read) == as_values(written)


seconds = st.floats(-1e3, 1e3, allow_subnormal=True)


@st.composite
def models(draw: st.DrawFn) -> tuple[int, str, Any]:
    """Any parameters of a family, with its name and the number of processes."""
    procs = draw(st.integers(2, 5))
    vector, square = (draw(arrays(float, (procs,) * dimensions, elements=seconds)) for dimensions in (1, 2))
    sizes = st.none() | st.integers(1, 2**31)
    first, last = draw(sizes), draw(sizes)
    if first is not None and last is not None:
        first, last = min(first, last), max(first, last)
    knots = sorted(draw(st.lists(st.floats(0, 1e9), min_size=1, max_size=6, unique=True)))
    function = PiecewiseLinear(tuple(knots), tuple(draw(seconds) for _ in knots))
    return draw(
        st.sampled_from(
            (
                (procs, "lmo", LMO(vector, -vector, square, 2 * square, Thresholds(draw(sizes), first, last))),
                (procs, "hockney", Hockney(square, square.T)),
                (procs, "plogp", PLogP(draw(seconds), function, function, function)),
            )
        )
    )


@given(models())
def test_any_parameters_are_read_back_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, made: tuple[int, str, Any]
) -> None:
    file, (procs, family, parameters) = tmp_path_factory.getbasetemp() / "any.toml", made
    FittedParameters(family, "x", "x", "x", procs, 0, 0.0, parameters).save(file)
    assert as_values(FittedParameters.load(file).parameters) == as_values(parameters)


def put(*places: Any) -> Callable[[dict[str, Any]], None]:
    """Sets what the last but one of `places` names to the last one."""

    def change(document: dict[str, Any]) -> None:
        *path, key, value = places
        for place in path:
            document = document[place]
        document[key] = value

    return change


def drop(*path: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        for place in path[:-1]:
            document = document[place]
        del document[path[-1]]

    return change


NAN, INFINITE = float("nan"), float("inf")
TIME = ("parameters", "time")
BROKEN: list[tuple[str, Callable[[dict[str, Any]], None], str]] = [
    ("hockney", drop("format"), "not a parameter file; make one with 'collwise fit --model"),
    ("hockney", put("format", 1), "not a parameter file"),
    ("hockney", drop("model"), "model is missing"),
    ("hockney", put("model", "hockny"), "unknown model 'hockny'; did you mean hockney"),
    ("hockney", put("model", 3), "model = 3; valid: a text"),
    ("hockney", put("platform", ["gros"]), r"platform = \['gros'\]; valid: a text"),
    ("hockney", put("procs", "3"), "procs = '3'; valid: a whole number of at least 2"),
    ("hockney", put("procs", 1), "procs = 1; valid: a whole number of at least 2"),
    ("hockney", put("procs", 3.0), r"procs = 3\.0; valid"),
    ("hockney", put("eager_limit_bytes", -1), "eager_limit_bytes = -1"),
    (
        "hockney",
        put("reduce_seconds_per_byte", -1e-9),
        "reduce_seconds_per_byte = -1e-09; valid: a number of at least 0",
    ),
    ("hockney", put("reduce_seconds_per_byte", True), "reduce_seconds_per_byte = True"),
    ("hockney", drop("effort"), "effort is missing"),
    ("hockney", put("effort", 3), "effort = 3; valid: a table"),
    ("hockney", drop("effort", "seconds"), r"effort\.seconds is missing"),
    ("hockney", put("effort", "measurements", 0.5), r"effort\.measurements = 0\.5"),
    ("hockney", put("notes", "one"), "notes = 'one'; valid: a list"),
    ("hockney", put("parameters", []), r"parameters = \[\]; valid: a table"),
    ("hockney", drop("parameters", "beta_seconds_per_byte"), r"parameters\.beta_seconds_per_byte is missing"),
    ("hockney", put("parameters", "alpha_seconds", "1e-5"), r"parameters\.alpha_seconds = '1e-5'; valid: a number"),
    ("hockney", put("parameters", "alpha_seconds", NAN), r"parameters\.alpha_seconds = nan"),
    ("hockney", put("parameters", "beta_seconds_per_byte", [1.0]), r"parameters\.beta_seconds_per_byte = \[1\.0\]"),
    ("hockney of pairs", put("parameters", "alpha_seconds", [1.0, 2.0, 3.0]), r"alpha_seconds = .*3 rows of 3 numbers"),
    ("hockney of pairs", put("parameters", "alpha_seconds", 1, [0.0, 1.0]), r"alpha_seconds = .*3 rows of 3 numbers"),
    ("hockney of pairs", put("parameters", "alpha_seconds", 1, 2, "1"), r"alpha_seconds = .*3 rows of 3 numbers"),
    ("hockney of pairs", put("parameters", "alpha_seconds", 1, 2, INFINITE), "alpha_seconds = .*3 rows"),
    ("hockney of pairs", put("parameters", "beta_seconds_per_byte", 1e-8), r"beta_seconds_per_byte = 1e-08; .*3 rows"),
    ("hockney of pairs", put("procs", 4), r"alpha_seconds = .*4 rows of 4 numbers, one per process"),
    ("loggp of pairs", put("parameters", "send_overhead_seconds", [1.0]), r"send_overhead_seconds = \[1\.0\]; .*3 num"),
    ("loggp", put("parameters", "gap_seconds", INFINITE), r"parameters\.gap_seconds = inf"),
    ("hockney by size", put(*TIME, "seconds", []), r"parameters\.time\.seconds = \[\]; valid: one number per size, 2"),
    ("hockney by size", put(*TIME, "seconds", [1e-5]), r"parameters\.time\.seconds = .*one number per size, 2"),
    ("hockney by size", put(*TIME, "message_bytes", [5.0, 1.0]), r"time\.message_bytes = .*ascending"),
    ("hockney by size", put(*TIME, "message_bytes", [-5.0, 1.0]), r"time\.message_bytes = .*of at least 0"),
    ("hockney by size", put(*TIME, "seconds", 1, "x"), r"time\.seconds = \[5e-05, 'x'\]; valid: a list of numbers"),
    ("plogp", put("parameters", "gap", 5.0), r"parameters\.gap = 5\.0; valid: a table"),
    ("plogp", drop("parameters", "latency_seconds"), r"parameters\.latency_seconds is missing"),
    ("plogp of pairs", put("parameters", "pairs", []), r"parameters\.pairs = \[\]; valid: 3 rows of 3 tables"),
    ("plogp of pairs", put("parameters", "pairs", 1, [{}]), r"parameters\.pairs = .*3 rows of 3 tables"),
    (
        "plogp of pairs",
        put("parameters", "pairs", 0, 1, {}),
        r"parameters\.pairs\[0\]\[1\]\.latency_seconds is missing",
    ),
    (
        "plogp of pairs",
        drop("parameters", "pairs", 2, 1, "gap", "seconds"),
        r"parameters\.pairs\[2\]\[1\]\.gap\.seconds is missing",
    ),
    (
        "lmo",
        put("thresholds", "scatter_leap_bytes", -5),
        r"thresholds\.scatter_leap_bytes = -5; valid: a whole number of at least 1",
    ),
    ("lmo", put("thresholds", "gather_irregular_from_bytes", "2K"), "gather_irregular_from_bytes = '2K'"),
    (
        "lmo",
        put("thresholds", "gather_regular_from_bytes", 5),
        "gather_regular_from_bytes = 5; valid: at least gather_irregular_from_bytes, 2048",
    ),
    ("lmo", put("thresholds", "scatter_bytes", 5), "unknown threshold 'scatter_bytes'; did you mean scatter_leap_byt"),
    ("lmo", put("thresholds", 5), "thresholds = 5; valid: a table"),
    ("lmo of pairs", put("parameters", "processor_seconds", [[0.0] * 3] * 3), r"processor_seconds = .*3 numbers"),
]


@pytest.mark.parametrize(("example", "change", "said"), BROKEN)
def test_a_broken_file_gives_a_line_with_file_and_key(
    example: str, change: Callable[[dict[str, Any]], None], said: str, tmp_path: Path
) -> None:
    file = tmp_path / "broken.toml"
    fitted(example).save(file)
    document = read_toml(file)
    change(document)
    file.write_text(tomli_w.dumps(document))
    with pytest.raises(UsageError) as raised:
        FittedParameters.load(file)
    line = str(raised.value)
    assert line.startswith(f"{file}: ")
    assert re.search(said, line), line
    assert "\n" not in line
    assert len(line) < len(str(file)) + 250


def test_files_that_are_no_toml(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    with pytest.raises(UsageError, match=r"cannot read .*p\.toml: No such file"):
        FittedParameters.load(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"cannot read .*p\.toml: not text"):
        FittedParameters.load(file)


def test_a_folder_that_cannot_be_made() -> None:
    with pytest.raises(UsageError, match=r"cannot write /proc/none/p\.toml"):
        fitted("hockney").save("/proc/none/p.toml")
