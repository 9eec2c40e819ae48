"""The applications' real results on every MPI library, against references of the test's own."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from collwise.platforms import load
from collwise.simulator.execution.launchers import run_program
from tests.needs import each

pytestmark = pytest.mark.usefixtures("yielding_mpich")
each_library = pytest.mark.parametrize("library", each("openmpi", "mpich", "smpi"))
NO_EDGE = 10**9


def record_of(library: str, program: str, procs: int, *arguments: object) -> dict[str, Any]:
    words = [str(word) for word in arguments]
    platform = load("gros") if library == "smpi" else None
    run = run_program(library, program, procs, words, platform=platform, timeout_seconds=900)
    assert run.returncode == 0, run.problem
    [line] = [line for line in run.output_lines if line.startswith("{")]
    found: dict[str, Any] = json.loads(line)
    return found


def noise(i: int, j: int, most: int) -> int:
    """application_noise() of programs/applications/application.c."""
    word = 2**32
    mixed = (i * 2654435761 + j * 2246822519 + 374761393) % word
    mixed = (mixed ^ mixed >> 15) * 2246822519 % word
    mixed = (mixed ^ mixed >> 13) * 3266489917 % word
    return (mixed ^ mixed >> 16) % most


def sum_of_shortest_paths(size: int) -> int:
    def weight(i: int, j: int) -> int:
        drawn = noise(i, j, 10_000)
        return 0 if i == j else 1 + drawn // 10 if drawn % 10 < 4 else NO_EDGE

    distances = np.array([[weight(i, j) for j in range(size)] for i in range(size)], dtype=np.int64)
    for k in range(size):
        distances = np.minimum(distances, distances[:, k : k + 1] + distances[k])
    return int(distances[distances < NO_EDGE].sum())


def sum_of_product(size: int) -> float:
    def matrix(which: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array([[noise(i, j + which, 201) - 100.0 for j in range(size)] for i in range(size)])

    product = (matrix(0) @ matrix(1 << 20)).ravel()
    return float((product * (1 + np.arange(product.size) % 7)).sum())


@each_library
@pytest.mark.parametrize("procs", [1, 3, 4])
def test_shortest_paths_are_those_of_the_reference(library: str, procs: int) -> None:
    found = record_of(library, "asp", procs, "--size", 33)
    assert found["correct"] is True
    assert found["result"] == sum_of_shortest_paths(33)
    assert 0 <= found["collective_seconds_mean"] <= found["collective_seconds_max"] <= found["seconds"]


@each_library
@pytest.mark.parametrize(("procs", "fastest"), [(1, 1), (4, 1), (4, 3), (3, 40), (4, 0)])
def test_products_are_those_of_the_reference(library: str, procs: int, fastest: int) -> None:
    found = record_of(library, "matmul", procs, "--size", 29, "--fastest", fastest)
    assert found["correct"] is True
    assert found["result"] == sum_of_product(29)


@each_library
@pytest.mark.parametrize("fusion_bytes", [0, 600, 1 << 26])
def test_training_does_not_depend_on_processes_and_buffers(library: str, fusion_bytes: int) -> None:
    losses = []
    for procs, batch in ((1, 12), (4, 3)):
        found = record_of(library, "training", procs, "--steps", 5, "--batch", batch, "--fusion-bytes", fusion_bytes)
        assert found["correct"] is True
        losses.append(found["result"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)
    untrained = record_of(library, "training", 1, "--steps", 1, "--batch", 12)["result"]
    assert losses[0] < untrained


@pytest.mark.parametrize("words", ["--size 0", "--size", "--sizes 4", "--rate 0", "--rate fast", "--size 4x"])
@pytest.mark.parametrize("library", each("openmpi"))
def test_wrong_options_end_with_the_usage(library: str, words: str) -> None:
    run = run_program(library, "asp", 1, words.split(), timeout_seconds=900)
    assert run.returncode == 2
    assert "usage: asp" in run.error_text


@pytest.mark.parametrize("library", each("smpi"))
def test_modelled_computation_takes_its_operations_at_the_rate(library: str) -> None:
    rate, size = 1e9, 1000
    modelled = record_of(library, "asp", 4, "--size", size, "--iterations", 7, "--rate", rate)
    outside = modelled["seconds"] - modelled["collective_seconds_mean"]
    # The slowest process is some 50 us longer within collectives than the mean.
    assert 7 * size * size / 4 / rate <= outside <= 1.05 * 7 * size * size / 4 / rate
    assert "correct" not in modelled
    slow, quick = (
        record_of(library, "matmul", 4, "--size", 400, "--rate", each_rate, "--fastest", 4) for each_rate in (1e8, 1e9)
    )
    computing = 2 * 400**3 / 10 / 1e8
    assert slow["seconds"] - quick["seconds"] == pytest.approx(0.9 * computing, rel=1e-3)


@pytest.mark.parametrize("library", each("smpi"))
def test_computation_hides_allreduces_of_earlier_buffers(library: str) -> None:
    words = ("--steps", 1, "--batch", 1, "--rate", 1e10, "--fusion-bytes", 0)
    apart = record_of(library, "training", 4, *words, "--overlap", 0)
    together = record_of(library, "training", 4, *words, "--overlap", 1)
    places = (55**2, 27**2, 13**2, 13**2, 13**2, 1, 1, 1)
    weights = (23232, 307200, 663552, 1327104, 884736, 37748736, 16777216, 4100096)
    computing = 6 * sum(place * weight for place, weight in zip(places, weights, strict=True)) / 1e10
    assert apart["seconds"] == pytest.approx(computing + apart["collective_seconds_mean"], rel=1e-3)
    assert computing < together["seconds"] < apart["seconds"]


@pytest.mark.parametrize("library", each("smpi"))
def test_calls_of_the_training_are_alexnets_gradients(library: str) -> None:
    def calls(fusion_bytes: int) -> list[dict[str, Any]]:
        words = ["--calls", "1", "--steps", "2", "--fusion-bytes", str(fusion_bytes)]
        run = run_program(library, "training", 2, words, platform=load("gros"))
        assert run.returncode == 0
        return [json.loads(line) for line in run.output_lines]

    alone, fused = calls(0), calls(2**26)
    assert len(alone) == 16
    assert {call["calls"] for call in alone} == {2}
    parameters = 61_842_345
    assert sum(call["message_bytes"] for call in alone) == 4 * parameters
    assert sum(call["message_bytes"] for call in fused) == 4 * parameters
    assert max(call["message_bytes"] for call in alone) == 4 * 9216 * 4096
    assert len(fused) < 6
    assert all(call["message_bytes"] <= 2**26 or call["message_bytes"] == 4 * 9216 * 4096 for call in fused)
