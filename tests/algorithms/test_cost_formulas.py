"""The cost formulas in the C files' header comments are those of the models, and every tree states its rule."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from collwise.algorithms.catalogue import Catalogue
from collwise.models.implementation_aware import bcast, gather, scatter
from collwise.models.implementation_aware.message_counts import Formula, Gamma
from collwise.models.interface import Points
from collwise.models.point_to_point import PointToPointModel
from collwise.models.single_messages import Hockney
from tests.algorithms.families import file_name

FOLDER = Path(__file__).resolve().parents[2] / "algorithms"
ALPHA, BETA, REDUCE, SLOPE = 3e-5, 2e-9, 5e-10, 0.3
HOCKNEY = PointToPointModel("hockney", "", Hockney(ALPHA, BETA), REDUCE)
# A second message costs nothing but its bytes' share of the link: all children have a segment at the same time.
GAMMA = Gamma((0.0, 1.0), ((1.0, 1.0), (1.0, 1.0 + SLOPE)))
BY_PARTS: Mapping[str, Mapping[str, Formula]] = {
    # Sends of split_binary block, so that a parent takes two messages' time for each segment, not gamma(3).
    "bcast": {**bcast.BY_PARTS, "split_binary": bcast.AS_PRINTED["split_binary"]},
    "gather": gather.BY_PARTS,
    "scatter": scatter.BY_PARTS,
}
# Full trees of the algorithms whose formulas hold for these only.
FULL = {"binary": (3, 7, 15), "split_binary": (3, 7, 15), "knomial": (4, 16, 64)}
ROOTED_TREES = {"flat", "k_chain", "binary", "binomial", "knomial", "two_tree", "in_order_binary", "in_order_binomial"}
POWERS_OF_TWO, ANY = (2, 4, 8, 32), (2, 3, 5, 8, 13)
Value = float | Callable[[float], float]


def header(collective: str, name: str) -> str:
    """The comment at the beginning of an algorithm's file, or of the file of its family."""
    folder = FOLDER / ("reduce_scatter" if collective == "reduce_scatter_block" else collective)
    return (folder / file_name(name)).read_text(encoding="utf-8").partition("*/")[0]


def formulas(collective: str, name: str) -> list[str]:
    """What follows each 'T =' in the header, up to a gap of two blanks.

    Of two formulas, that for powers of two or for rendezvous comes first.
    """
    return re.findall(r"T(?:\(m\))? = (.+?)(?=\s{2,}|\s*$)", header(collective, name), re.MULTILINE)


@dataclass
class Evaluation:
    """Evaluates a formula in which factors stand side by side, as in '2 (P - 1) m beta' or 'log2 P alpha'."""

    tokens: list[str]
    values: dict[str, Value]
    at: int = 0

    def next(self) -> str:
        """The next token, '' at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        """The next token, which is passed."""
        self.at += 1
        return self.tokens[self.at - 1]

    def sum(self) -> float:
        """Products with + and - between them."""
        total = self.product()
        while self.next() in {"+", "-"}:
            total += self.product() if self.take() == "+" else -self.product()
        return total

    def product(self) -> float:
        """Factors side by side, from left to right; / divides by one factor."""
        result = self.factor()
        while self.next() and self.next() not in {"+", "-", ")", ",", "for"}:
            if self.next() == "/":
                self.take()
                result /= self.factor()
            else:
                result *= self.factor()
        return result

    def factor(self) -> float:
        """A number, a name, a function of the next factor, a bracket, or 'sum of A for k = B to C'."""
        token = self.take()
        if token == "(":
            result = self.sum()
            assert self.take() == ")"
            return result
        if token == "sum":
            return self.series()
        if token.isdigit():
            return float(token)
        function = "gamma()" if token == "gamma" and self.next() == "(" else token
        value = self.values[function]
        return value(self.factor()) if callable(value) else value

    def series(self) -> float:
        """The sum after the word 'sum'."""
        assert self.take() == "of"
        start = self.at
        end = self.tokens.index("for", start)
        self.at = end + 3  # for k =
        variable, low = self.tokens[end + 1], int(self.factor())
        assert self.take() == "to"
        high = int(self.sum())
        values = (self.values | {variable: float(k)} for k in range(low, high + 1))
        return math.fsum(Evaluation(self.tokens[start:end], each).sum() for each in values)


def seconds(formula: str, procs: int, message_bytes: float, segments: int, parameter: int, gamma_slope: float) -> float:
    """The value of a formula; gamma(p) is 1 + gamma_slope (p - 2)."""
    values: dict[str, Value] = {
        "P": float(procs),
        "m": message_bytes,
        "n_s": float(segments),
        "m_s": message_bytes / segments,
        "K": float(parameter),
        "alpha": ALPHA,
        "beta": BETA,
        "gamma": REDUCE,
        "gamma()": lambda p: 1 + gamma_slope * (p - 2),
        "log2": math.log2,
        "floor": lambda x: float(math.floor(x + 1e-9)),
        "ceil": lambda x: float(math.ceil(x - 1e-9)),
        "c": float(math.ceil(math.log2(procs))),
        "L": math.log(procs, max(parameter, 2)),
    }
    tokens = re.findall(r"\w+|[-+/(),=]", formula)
    evaluation = Evaluation(tokens, values)
    result = evaluation.sum()
    assert evaluation.at == len(tokens), formula
    return result


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 (P - 1) alpha", 2 * 7 * ALPHA),
        ("log2 P (alpha + m beta)", 3 * (ALPHA + 1000 * BETA)),
        ("(P - 1) / P m gamma", 7 / 8 * 1000 * REDUCE),
        ("sum of gamma(k) for k = 2 to c", 1.0 + 1.3),
        ("floor(log2(P + 5)) + n_s / 2 - 1", 3 + 2 - 1),
    ],
)
def test_evaluation(text: str, expected: float) -> None:
    assert seconds(text, 8, 1000.0, 4, 3, SLOPE) == pytest.approx(expected)


HOCKNEY_CASES = [
    (collective, name)
    for collective in ("barrier", "bcast", "reduce", "alltoall", "scatter", "gather")
    for name in HOCKNEY.algorithms(collective)
    if (collective, name) != ("bcast", "binomial")  # gamma of a process that sends to one after another is no sum
]


@pytest.mark.parametrize(("collective", "name"), HOCKNEY_CASES)
@pytest.mark.parametrize("segments", [1, 4])
def test_formulas_are_those_of_hockneys_model(collective: str, name: str, segments: int) -> None:
    message_bytes = 0.0 if collective == "barrier" else 64000.0
    if not Catalogue.load().algorithm(collective, name).pipelined:
        segments = 1
    elif name == "split_binary":
        segments = 4
    written = formulas(collective, name)
    fulls = POWERS_OF_TWO if (collective, name) == ("barrier", "recursive_doubling") else ANY
    for procs in FULL.get(name, fulls):
        expected = HOCKNEY.predict(collective, name, procs, message_bytes, message_bytes / segments, 4)
        # The models take an empty message for one of a byte.
        empty = BETA / ALPHA if collective == "barrier" else 0.0
        parameter = min(4, procs - 1)
        actual = seconds(written[0], procs, message_bytes, segments, parameter, gamma_slope=1.0)
        assert actual * (1 + empty) == pytest.approx(float(expected)), (procs, written[0])


def test_barrier_by_recursive_doubling_on_any_number_of_processes() -> None:
    _, otherwise = formulas("barrier", "recursive_doubling")
    for procs in (3, 5, 13):
        expected = float(HOCKNEY.predict("barrier", "recursive_doubling", procs, 0.0))
        assert seconds(otherwise, procs, 0.0, 1, 4, 1.0) * (1 + BETA / ALPHA) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("collective", "name"), [(collective, name) for collective, names in BY_PARTS.items() for name in names]
)
@pytest.mark.parametrize("segments", [2, 8])
def test_formulas_are_those_by_parts(collective: str, name: str, segments: int) -> None:
    message_bytes, parameter = 64000.0, 4
    if not Catalogue.load().algorithm(collective, name).pipelined:
        segments = 1
    counts = (5, 9, 12) if name == "k_chain" else FULL.get(name, POWERS_OF_TWO)
    for procs in counts:
        points = Points(
            np.array([float(procs)]),
            np.array([message_bytes]),
            np.array([message_bytes / segments if segments > 1 else 0.0]),
            parameter=parameter,
            eager_limit_bytes=1,  # rendezvous, as formulas (1) and (13) have it
        )
        parts = BY_PARTS[collective][name](points, GAMMA)
        expected = math.fsum(float(np.sum(part.count * (ALPHA + part.bytes_each * BETA))) for part in parts)
        written = formulas(collective, name)[0]
        assert seconds(written, procs, message_bytes, segments, parameter, SLOPE) == pytest.approx(expected), procs


@pytest.mark.parametrize(
    ("collective", "name"),
    [(one.collective, one.name) for one in Catalogue.load().algorithms() if not one.guideline],
)
def test_every_header_has_a_cost_and_the_rule_of_its_tree(collective: str, name: str) -> None:
    assert formulas(collective, name)
    topologies = set(Catalogue.load().algorithm(collective, name).topology.split(", "))
    if topologies & ROOTED_TREES and collective not in {"scan", "exscan"}:  # whose rule is that of two sweeps
        # Phases that another file has are not explained twice.
        assert re.search(r"parent|child|\w\.c\b", header(collective, name))
