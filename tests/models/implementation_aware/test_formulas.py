"""Every formula against plain scalar arithmetic written from Nuriyev & Lastovetsky 2021, section III."""

from __future__ import annotations

import ctypes
import math
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import ArrayLike

from collwise.models.implementation_aware import bcast, gather, reduce, scatter, trees
from collwise.models.implementation_aware.message_counts import Formula, Gamma
from collwise.models.implementation_aware.model import protocol_sums
from collwise.models.interface import Points
from tests.needs import need

ROOT = Path(__file__).resolve().parents[3]
ALPHA, BETA = 3.1e-5, 1.7e-9
KNOWN_GAMMA = [1.0, 1.114, 1.219, 1.283, 1.451, 1.54]
SLOPE = float(np.polyfit(range(2, 8), KNOWN_GAMMA, 1)[0])
GAMMA = Gamma((8192.0,), (tuple(KNOWN_GAMMA),))
SEGMENT = 8192
# Gammas of messages that share the sender's link, and of messages that only their sender's time keeps apart.
SHARED = Gamma((1.0, 4096.0), ((1.0,) * 6, (1.0, 1.7, 2.3, 2.9, 3.8, 4.6)))
BETWEEN = Gamma((1.0, 4096.0), ((1.0, 1.05, 1.1, 1.15, 1.2, 1.25), tuple(KNOWN_GAMMA)))
APART = Gamma((1.0, 4096.0), ((1.0, 1.0, 1.05, 1.2, 1.25, 1.5),) * 2)
GAMMAS = {"shared": SHARED, "between": BETWEEN, "apart": APART}


def gamma(procs: int) -> float:
    if procs - 2 < len(KNOWN_GAMMA):
        return KNOWN_GAMMA[max(procs - 2, 0)]
    return KNOWN_GAMMA[-1] + SLOPE * (procs - 7)


def floor_log2(value: int) -> int:
    return value.bit_length() - 1


def ceil_log2(value: int) -> int:
    return (value - 1).bit_length()


def segments_of(message_bytes: int, segment_bytes: int) -> int:
    return max(1, math.ceil(message_bytes / segment_bytes)) if segment_bytes else 1


def evaluate(formula: Formula, procs: object, message_bytes: object, segment_bytes: object = SEGMENT,
             parameter: int = 4, eager_limit_bytes: int = 65536, gamma: Gamma = GAMMA) -> np.ndarray:  # fmt: skip
    points = Points.of(procs, message_bytes, segment_bytes, parameter, eager_limit_bytes=eager_limit_bytes)
    parts = formula(points, gamma)
    total = sum((part.count * (ALPHA + part.bytes_each * BETA) for part in parts), np.zeros(points.procs.shape))
    return np.asarray(total)


# The printed formulas, for P > 1: (P, m, m_s) to seconds.


def formula_1(procs: int, m: int, m_s: int) -> float:
    return (procs - 1) * (ALPHA + m * BETA)


def formula_3(procs: int, m: int, m_s: int) -> float:
    n_s = segments_of(m, m_s)
    return n_s * gamma(procs) * (ALPHA + m / n_s * BETA)


def formula_1_or_3(procs: int, m: int, m_s: int) -> float:
    return formula_3(procs, m, 0) if m < 65536 else formula_1(procs, m, 0)


def formula_7(procs: int, m: int, m_s: int) -> float:
    n_s, height = segments_of(m, m_s), floor_log2(procs)
    stages = n_s * gamma(height + 1)
    for i in range(1, height):
        stages += gamma(height - i + 1)
    return (stages - 1) * (ALPHA + m / n_s * BETA)


def formula_8(procs: int, m: int, m_s: int) -> float:
    n_s = segments_of(m, m_s)
    return (procs + n_s - 2) * (ALPHA + m / n_s * BETA)


def formula_9(procs: int, m: int, m_s: int) -> float:
    n_s = segments_of(m, m_s)
    return 2 * (floor_log2(procs) + n_s / 2 - 1) * (ALPHA + m / n_s * BETA) + (ALPHA + m / 2 * BETA)


def formula_10(procs: int, m: int, m_s: int) -> float:
    n_s = segments_of(m, m_s)
    return gamma(3) * (floor_log2(procs) + n_s - 1) * (ALPHA + m / n_s * BETA)


def formula_11(procs: int, m: int, m_s: int, parameter: int = 4) -> float:
    n_s = segments_of(m, m_s)
    return ((procs - 1) // parameter + gamma(parameter + 1) * n_s - 1) * (ALPHA + m / n_s * BETA)


def formula_12(procs: int, m: int, m_s: int) -> float:
    return sum(ALPHA + m * BETA for _ in range(procs - 1))


def formula_13(procs: int, m: int, m_s: int) -> float:
    return (procs - 1) * (2 * (ALPHA + m / 2 * BETA))


def formula_14(procs: int, m: int, m_s: int) -> float:
    return (procs - 1) * (ALPHA + m / 2 * BETA)


def formula_15(procs: int, m: int, m_s: int) -> float:
    return ceil_log2(procs) * ALPHA + (procs - 1) * m * BETA


def traditional_binomial(procs: int, m: int, m_s: int) -> float:
    return math.ceil(math.log2(procs)) * (ALPHA + m * BETA)


def traditional_binary(procs: int, m: int, m_s: int) -> float:
    return 2 * (math.ceil(math.log2(procs + 1)) - 1) * (ALPHA + m * BETA)


PRINTED: dict[str, tuple[Formula, Callable[[int, int, int], float]]] = {
    "(1)": (bcast.AS_PRINTED["linear"], formula_1),
    "(3)": (bcast.linear_nonblocking, formula_3),
    "(7)": (bcast.AS_PRINTED["binomial"], formula_7),
    "(8)": (bcast.AS_PRINTED["chain"], formula_8),
    "(9)": (bcast.AS_PRINTED["split_binary"], formula_9),
    "(10)": (bcast.AS_PRINTED["binary"], formula_10),
    "(11)": (bcast.AS_PRINTED["k_chain"], formula_11),
    "(12)": (gather.AS_PRINTED["linear"], formula_12),
    "(1) or (3)": (bcast.BY_PARTS["linear"], formula_1_or_3),
    "(1) or (3) of blocks": (scatter.BY_PARTS["linear"], formula_1_or_3),
    "(15)": (gather.AS_PRINTED["binomial"], formula_15),
    "traditional binomial": (bcast.TRADITIONAL["binomial"], traditional_binomial),
    "traditional binary": (bcast.TRADITIONAL["binary"], traditional_binary),
}
EVERY = {
    f"{kind} {collective} {name}": formula
    for kind, collective, formulas in (
        ("printed", "bcast", bcast.AS_PRINTED),
        ("parts", "bcast", bcast.BY_PARTS),
        ("traditional", "bcast", bcast.TRADITIONAL),
        ("printed", "gather", gather.AS_PRINTED),
        ("parts", "gather", gather.BY_PARTS),
        ("parts", "reduce", reduce.BY_PARTS),
        ("parts", "scatter", scatter.BY_PARTS),
    )
    for name, formula in formulas.items()
}
PROCS = [*range(2, 70), 80, 90, 100, 124, 127, 128, 129, 1000, 1024, 4097]
PIPELINED = [SEGMENT * n for n in (1, 2, 3, 8, 64, 512)]
SIZES = [1, 100, 8191, 8192, 8193, 16384, 65535, 65536, 65537, 131071, 131072, 1048576, 4194304]


@pytest.mark.parametrize("name", PRINTED)
def test_printed_formulas(name: str) -> None:
    formula, by_hand = PRINTED[name]
    for segment in (0, 1024, SEGMENT):
        found = evaluate(formula, np.array(PROCS)[:, None], np.array(SIZES)[None, :], segment)
        expected = [[by_hand(p, m, segment) for m in SIZES] for p in PROCS]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("formula", [gather.AS_PRINTED["linear_sync"], gather.BY_PARTS["linear_sync"]])
def test_linear_sync_changes_formula_where_a_half_reaches_the_eager_limit(formula: Formula) -> None:
    for eager_limit in (1000, 65536):
        for m in (2, 1000, 1998, 2000, 65536, 131070, 131072, 2**20):
            by_hand = formula_14 if m / 2 < eager_limit else formula_13
            for procs in (2, 3, 51, 124):
                (found,) = evaluate(formula, [procs], m, 0, eager_limit_bytes=eager_limit)
                assert found == pytest.approx(by_hand(procs, m, 0), rel=1e-12)


def test_linear_sync_with_a_first_part_of_its_own_size() -> None:
    def found(m: int, first: int) -> float:
        return float(evaluate(gather.BY_PARTS["linear_sync"], 5, m, first, eager_limit_bytes=65536))

    assert found(100000, 1024) == pytest.approx(4 * (2 * ALPHA + 100000 * BETA))
    assert found(60000, 1024) == pytest.approx(4 * (ALPHA + 30000 * BETA))
    parts = gather.BY_PARTS["linear_sync"](Points.of(5, 100000, 1024), GAMMA)
    assert [(float(part.count), float(part.bytes_each)) for part in parts if part.count] == [(4, 1024), (4, 98976)]


def test_odd_blocks_are_halved_in_whole_bytes() -> None:
    parts = gather.BY_PARTS["linear_sync"](Points.of(2, 131073, 0), GAMMA)
    assert [float(part.bytes_each) for part in parts if part.count] == [65536, 65537]


@pytest.mark.parametrize("name", EVERY)
def test_arrays_give_what_single_points_give_and_one_process_costs_nothing(name: str) -> None:
    procs, sizes = [1, 2, 3, 5, 17, 64, 90, 1000], [0, 1, 8192, 8193, 65536, 131072, 4194304]
    for segment in (0, SEGMENT):
        together = evaluate(EVERY[name], np.array(procs)[:, None], np.array(sizes)[None, :], segment)
        one_by_one = [[float(evaluate(EVERY[name], p, m, segment)) for m in sizes] for p in procs]
        np.testing.assert_allclose(together, one_by_one, rtol=1e-13)
        assert not together[0].any()


# By parts with one alpha and beta for all parts: the printed formulas, and where they differ, as bcast.py says.

FULL_BINARY = [2**levels - 1 for levels in range(2, 12)]


TWICE = Gamma((1.0, 4096.0), ((1.0, 1.0, 1.0), (1.0, 2.0, 3.0)))


def test_parts_of_split_binary() -> None:
    """As printed where a second message doubles the time; elsewhere the tree fills as the binary tree does."""
    for procs in FULL_BINARY:
        for m in (2 * SEGMENT * n for n in (1, 2, 5, 64)):
            found = float(evaluate(bcast.BY_PARTS["split_binary"], procs, m, gamma=TWICE))
            assert found == pytest.approx(formula_9(procs, m, SEGMENT), rel=1e-12)
    for procs in PROCS:
        points = Points.of(procs, 2 * 5 * SEGMENT, SEGMENT)
        of_half = bcast.BY_PARTS["binary"](Points.of(procs, 5 * SEGMENT, SEGMENT), GAMMA)
        fill, steady, exchange = bcast.BY_PARTS["split_binary"](points, GAMMA)
        assert (fill.count, fill.bytes_each) == (of_half[0].count, SEGMENT)
        assert (steady.count, steady.bytes_each) == (min(procs - 1, 2) * 4, SEGMENT)
        assert (exchange.count, exchange.bytes_each) == (1, 5 * SEGMENT)
    # An odd number of segments: each half has one segment more than half of them, a little shorter.
    (found,) = evaluate(bcast.BY_PARTS["split_binary"], [7], 3 * SEGMENT, gamma=TWICE)
    assert found == pytest.approx(2 * (2 + 2 - 1) * (ALPHA + 0.75 * SEGMENT * BETA) + ALPHA + 1.5 * SEGMENT * BETA)


def test_parts_of_the_binomial_gather_move_every_block() -> None:
    for procs in range(2, 300):
        parts = [part for part in gather.BY_PARTS["binomial"](Points.of(procs, 1000), GAMMA) if part.count]
        assert len(parts) == ceil_log2(procs)
        assert sum(float(part.count * part.bytes_each) for part in parts) == (procs - 1) * 1000
        assert [float(part.bytes_each) for part in parts[:-1]] == [1000 * 2**i for i in range(len(parts) - 1)]
        assert float(evaluate(gather.BY_PARTS["binomial"], procs, 1000, 0)) == pytest.approx(
            formula_15(procs, 1000, 0), rel=1e-12
        )


# Broadcasts that are not in the paper.


def test_parts_of_two_trees() -> None:
    for procs in PROCS:
        for segments in (1, 2, 7, 64):
            steps = 2 * floor_log2(procs - 1) + 2 * segments
            found = float(evaluate(bcast.BY_PARTS["two_tree"], procs, 2 * segments * SEGMENT))
            assert found == pytest.approx(steps * (ALPHA + SEGMENT * BETA), rel=1e-12)
    # Halves of one segment and a half: two segments each.
    (found,) = evaluate(bcast.BY_PARTS["two_tree"], [7], 3 * SEGMENT)
    assert found == pytest.approx((2 * 2 + 2 * 2) * (ALPHA + 0.75 * SEGMENT * BETA))


def messages(algorithm: str, procs: int, m: int, eager_limit_bytes: int = 2**40) -> list[tuple[str, float, float]]:
    points = Points.of(procs, m, eager_limit_bytes=eager_limit_bytes)
    parts = bcast.BY_PARTS[algorithm](points, GAMMA)
    return [(part.name, float(part.count), float(part.bytes_each)) for part in parts if part.count]


def test_messages_of_a_scatter_and_a_ring() -> None:
    for procs in (2, 3, 4, 7, 8, 90, 128):
        m = 1000 * procs
        *scatter, ring = messages("scatter_ring_allgather", procs, m)
        assert ring == ("ring", procs - 1, 1000)
        assert scatter == [("scatter", 1, 1000 * 2**i) for i in range(floor_log2(procs))]
        # With rendezvous, the blocks beyond the power of two go first and hold up the others.
        first = procs - 2 ** floor_log2(procs)
        *waiting, _ = messages("scatter_ring_allgather", procs, m, eager_limit_bytes=0)
        assert waiting == scatter + ([("scatter", 1, 1000 * first)] if first else [])


def test_scatter_and_allgather_of_a_power_of_two() -> None:
    for height in range(1, 11):
        m = 2**height * 64
        found = messages("scatter_allgather", 2**height, m)
        assert sum(count for _, count, _ in found) == 2 * height
        assert sum(count * size for _, count, size in found) == 2 * (m - 64)


def test_scatter_and_allgather_pass_the_smaller_groups_blocks_on() -> None:
    """P = 11: groups of 8 and 3; the blocks of those 3 go on in 2 rounds, and those of 10 beside 8 and 9 in 1."""
    assert messages("scatter_allgather", 11, 1100)[-1] == ("main", 1, 2 * 300 + 100)
    # P = 9: 1 block to 8 processes, 3 rounds, which all are waited for.
    assert messages("scatter_allgather", 9, 900)[-1] == ("main", 3, 100)


def latencies(procs: int) -> int:
    """Of scatter and allgather by eager messages, one latency each: when the last process is done."""
    done = [place.bit_count() for place in range(procs)]
    width = 1
    while width < procs:
        for first in range(0, procs - width, 2 * width):
            middle, end = first + width, min(first + 2 * width, procs)
            before = done.copy()
            for place in range(first, end):
                partner = place + width if place < middle else place - width
                if partner < end:
                    done[place] = max(before[place], before[partner]) + 1
            holders = end - middle
            while holders < width:
                for index in range(min(holders, width - holders)):
                    to = first + index + holders
                    done[to] = max(done[to], done[first + index] + 1)
                holders *= 2
        width *= 2
    return max(done)


def test_latencies_of_scatter_and_allgather_step_by_step() -> None:
    """Exact for powers of two and one process more; elsewhere within one latency, and right on average."""
    errors = []
    for procs in range(2, 257):
        found = sum(count for _, count, _ in messages("scatter_allgather", procs, 1))
        errors.append(found - latencies(procs))
        if procs & (procs - 1) == 0 or (procs - 1) & (procs - 2) == 0:
            assert errors[-1] == 0, procs
    assert max(map(abs, errors)) <= 1
    assert abs(sum(errors)) < 0.25 * len(errors)


# Algorithm 1, step by step over the trees that the C code builds.


class Tree(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int)
        for name in ("topology", "procs", "root", "parameter", "virtual_rank", "parent", "child_count")
    ]


TOPOLOGIES = {
    "linear_nonblocking": 0, "chain": 1, "k_chain": 2, "binary": 3, "binomial": 4, "in_order_binomial": 5, "knomial": 7,
}  # fmt: skip
Children = Callable[[str, int, int], list[list[int]]]


@pytest.fixture(scope="module")
def children(tmp_path_factory: pytest.TempPathFactory) -> Children:
    """(algorithm, P, K) to each rank's children."""
    need("cc")
    library_path = tmp_path_factory.mktemp("topology") / "topology.so"
    algorithms = ROOT / "algorithms"
    source = algorithms / "topology" / "tree.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-I", str(algorithms), str(source), "-o", str(library_path)], check=True)
    library = ctypes.CDLL(str(library_path))
    library.collwise_tree_at.restype = Tree
    library.collwise_tree_child.argtypes = [ctypes.POINTER(Tree), ctypes.c_int]

    def of(algorithm: str, procs: int, parameter: int) -> list[list[int]]:
        every = []
        for rank in range(procs):
            tree = library.collwise_tree_at(TOPOLOGIES[algorithm], procs, 0, rank, parameter)
            every.append([library.collwise_tree_child(ctypes.byref(tree), i) for i in range(tree.child_count)])
        return every

    return of


def step_by_step(children: Sequence[Sequence[int]], segments: int, gamma: Gamma, at_once: bool) -> float:
    """The time of the last process's last segment, in messages: a process passes segments on one after another, each
    in gamma(children + 1), and no earlier than it has them. Its children have it then, all of them `at_once`, or one
    by one, the i-th after gamma(i + 1)."""
    cost = gamma(np.arange(len(children) + 2), SEGMENT).tolist()
    last = 0.0
    waiting = [(0, [0.0] * segments)]
    while waiting:
        rank, arrived = waiting.pop()
        last = max(last, arrived[-1])
        own = children[rank]
        free, starts = 0.0, []
        for time in arrived:
            starts.append(max(free, time))
            free = starts[-1] + cost[len(own) + 1]
        for index, child in enumerate(own):
            takes = cost[len(own) + 1 if at_once else index + 2]
            waiting.append((child, [start + takes for start in starts]))
    return last


def in_between(children: Sequence[Sequence[int]], segments: int, gamma: Gamma, shared: float) -> float:
    """At every process, from the leaves to the root, the weighted mean of both ways; further segments at the root."""
    cost = gamma(np.arange(len(children) + 2), SEGMENT).tolist()
    below = [0.0] * len(children)
    for rank in reversed(range(len(children))):
        own = children[rank]
        if own:
            apart = max(cost[index + 2] + below[child] for index, child in enumerate(own))
            at_once = cost[len(own) + 1] + max(below[child] for child in own)
            below[rank] = (1 - shared) * apart + shared * at_once
    return below[0] + (segments - 1) * cost[len(children[0]) + 1]


def in_messages(algorithm: str, procs: int, segments: int, parameter: int = 4, gamma: Gamma = GAMMA) -> float:
    points = Points.of(procs, segments * SEGMENT, SEGMENT, parameter)
    return float(sum(part.count for part in bcast.BY_PARTS[algorithm](points, gamma)))


@pytest.mark.parametrize("segments", [1, 2, 7, 40])
def test_algorithm_1_on_flat_trees_chains_and_k_chains(children: Children, segments: int) -> None:
    for procs in range(2, 66):
        for algorithm, parameter in (
            ("linear_nonblocking", 0),
            ("chain", 0),
            *(("k_chain", k) for k in (1, 2, 3, 4, 7)),
        ):
            reference = step_by_step(children(algorithm, procs, parameter), segments, GAMMA, at_once=True)
            assert in_messages(algorithm, procs, segments, parameter) == pytest.approx(reference, rel=1e-12), (
                algorithm, procs, parameter,
            )  # fmt: skip


TREES = [("binary", 0), ("binomial", 0), *(("knomial", radix) for radix in (2, 3, 4, 5, 8))]


@pytest.mark.parametrize(("algorithm", "radix"), TREES)
@pytest.mark.parametrize("kind", GAMMAS)
def test_algorithm_1_on_trees(children: Children, algorithm: str, radix: int, kind: str) -> None:
    # Between: e = 0.05 t and e + x = 0.114 (t + x), so that x = 0.0722 t.
    gamma, shared = GAMMAS[kind], {"apart": 0.0, "between": 0.064 / (0.064 + 0.05 * 0.886), "shared": 1.0}[kind]
    for procs in [*range(2, 36), 63, 64, 65, 81, 127, 128, 129]:
        tree = children(algorithm, procs, radix)
        for segments in (1, 2, 40):
            found = in_messages(algorithm, procs, segments, radix, gamma)
            assert found == pytest.approx(in_between(tree, segments, gamma, shared), rel=1e-12), (procs, segments)
            apart, at_once = (step_by_step(tree, segments, gamma, at_once) for at_once in (False, True))
            assert apart * (1 - 1e-12) <= found <= at_once * (1 + 1e-12), (procs, segments)
            if kind != "between":
                assert found == pytest.approx(at_once if shared else apart, rel=1e-12), (procs, segments)


@given(e=st.floats(0.001, 5), bandwidth=st.floats(0.001, 10), t=st.floats(0.001, 5), m=st.integers(1, 10**6))
def test_the_share_of_bytes_in_a_second_message(e: float, bandwidth: float, t: float, m: int) -> None:
    """Of a network where a message takes t and its bytes' time, and one that follows e < t and its bytes' time."""
    t += e
    sizes = np.array([0.0, float(m), 2e6])
    seconds = t + sizes / 1e5 / bandwidth
    gamma = Gamma(tuple(sizes), tuple((1.0, 1 + (e + x) / (t + x)) for x in seconds - t))
    found = trees.shared_link(gamma, sizes)
    assert found == pytest.approx((seconds - t) / (e + seconds - t), abs=1e-9)
    assert trees.shared_link(Gamma((64.0,), ((1.0, 1.0),)), sizes).tolist() == [0, 0, 0]


Shape = tuple["Shape", ...]


def shape_in_c(children: Sequence[Sequence[int]], rank: int = 0) -> Shape:
    return tuple(shape_in_c(children, child) for child in children[rank])


def shape_by_sizes(subtrees: trees.Subtrees, procs: int) -> Shape:
    return tuple(shape_by_sizes(subtrees, size) for size in subtrees(procs))


@pytest.mark.parametrize(("algorithm", "radix"), TREES)
def test_trees_are_those_of_the_c_code(children: Children, algorithm: str, radix: int) -> None:
    subtrees = {"binary": trees.binary_subtrees, "binomial": trees.binomial_subtrees}.get(algorithm)
    for procs in [*range(1, 260), 511, 512, 513, 625, 729, 1000]:
        by_sizes = shape_by_sizes(subtrees or trees.knomial_subtrees(radix), procs)
        assert by_sizes == shape_in_c(children(algorithm, procs, radix)), procs


def test_points_that_are_no_grid_have_the_same_fill() -> None:
    gamma = Gamma((1024.0, 65536.0), ((1.0, 1.1, 1.2), (1.0, 1.9, 2.8)))
    random = np.random.default_rng(5)
    procs, sizes = random.integers(1, 300, (7, 40)), random.integers(1, 10**5, (7, 40)).astype(float)
    together = trees.fill_steps(Points.of(procs, sizes), gamma, trees.binary_subtrees, sizes)
    for p, m, steps in zip(procs.ravel(), sizes.ravel(), together.ravel(), strict=True):
        alone = trees.fill_steps(Points.of(p, m), gamma, trees.binary_subtrees, np.array(m))
        assert steps == pytest.approx(float(alone), rel=1e-12)


class CountedGamma(Gamma):
    """Counts how often it is evaluated."""

    calls = 0

    def __call__(self, procs: ArrayLike, message_bytes: ArrayLike = 0.0) -> np.ndarray:
        CountedGamma.calls += 1
        return super().__call__(procs, message_bytes)


def test_points_that_are_no_grid_share_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every P has sizes of its own, as bisection asks for; still there are fewer evaluations than P."""
    monkeypatch.setattr(CountedGamma, "calls", 0)
    gamma = CountedGamma((1024.0, 65536.0), ((1.0, 1.1, 1.2), (1.0, 1.9, 2.8)))
    procs = np.repeat(np.arange(2, 200), 5)
    sizes = np.arange(len(procs)) * 37.0
    trees.fill_steps(Points.of(procs, sizes), gamma, trees.binomial_subtrees, sizes)
    assert CountedGamma.calls < 198 / 2


# Reduce and scatter, which the papers have no formulas for.


def combining(children: Sequence[Sequence[int]], segments: int) -> float:
    """The time at which the root has combined all, in messages: a process receives its children's segments by turns."""
    ready = [[0.0] * segments for _ in children]
    for rank in reversed(range(len(children))):
        free = 0.0
        for number in range(segments):
            for child in children[rank]:
                free = max(free, ready[child][number]) + 1
            ready[rank][number] = free
    return ready[0][-1]


def reduce_messages(algorithm: str, procs: int, segments: int, parameter: int = 4) -> float:
    points = Points.of(procs, segments * SEGMENT, SEGMENT, parameter)
    parts = reduce.BY_PARTS[algorithm](points, GAMMA)
    assert {float(part.bytes_each) for part in parts} == {segments * SEGMENT if algorithm == "linear" else SEGMENT}
    return float(sum(part.count for part in parts))


@pytest.mark.parametrize("segments", [1, 2, 7])
def test_reduce_step_by_step(children: Children, segments: int) -> None:
    """Exact but for binary trees that are not full, where fewer messages have to be waited for."""
    for procs in range(2, 130):
        assert reduce_messages("linear", procs, segments) == procs - 1
        for name, topology, parameter in (
            ("pipeline", "chain", 0),
            ("binomial", "in_order_binomial", 0),
            *(("chain", "k_chain", parameter) for parameter in (1, 2, 3, 4, 7)),
        ):
            reference = combining(children(topology, procs, parameter), segments)
            assert reduce_messages(name, procs, segments, parameter) == reference, (name, procs, parameter)
        reference, found = combining(children("binary", procs, 0), segments), reduce_messages("binary", procs, segments)
        assert reference <= found <= reference + floor_log2(procs) / 2, procs
        if procs + 1 & procs == 0:
            assert found == reference == 2 * (floor_log2(procs) + segments - 1)


def test_parts_of_reduce_between_two_and_five() -> None:
    def counts(name: str, procs: int) -> list[float]:
        return [float(part.count) for part in reduce.BY_PARTS[name](Points.of(procs, 3 * SEGMENT, SEGMENT), GAMMA)]

    assert {name: counts(name, 2) for name in reduce.BY_PARTS} == {
        "linear": [1, 0, 0], "chain": [1, 0, 2], "pipeline": [1, 0, 2], "binary": [1, 0, 2], "binomial": [1, 0, 2],
    }  # fmt: skip
    assert {name: counts(name, 5) for name in reduce.BY_PARTS} == {
        "linear": [1, 3, 0], "chain": [1, 3, 8], "pipeline": [4, 0, 2], "binary": [4, 0, 4], "binomial": [3, 0, 6],
    }  # fmt: skip


def shared_link(blocks: Sequence[int]) -> list[float]:
    """When messages of so many blocks are through a link that they share evenly, from one that ends to the next."""
    left, done, now = {index: float(size) for index, size in enumerate(blocks)}, [0.0] * len(blocks), 0.0
    while left:
        step = min(left.values())
        now += step * len(left)
        left = {index: size - step for index, size in left.items()}
        for index in [index for index, size in left.items() if size == 0]:
            done[index] = now
            del left[index]
    return done


def ways(children: Sequence[Sequence[int]], least: int) -> list[tuple[float, ...]]:
    """From the root to each process of an in-order binomial tree, in which subtrees hold consecutive ranks: messages
    and blocks by eager messages, then those by rendezvous, which have `least` blocks. The eager ones of a process share
    the link with each other, and wait for those by rendezvous that it sends before."""
    size = [1] * len(children)
    for rank in reversed(range(len(children))):
        size[rank] += sum(size[child] for child in children[rank])
    found: list[tuple[float, ...]] = []
    waiting = [(0, (0.0, 0.0, 0.0, 0.0))]
    while waiting:
        rank, way = waiting.pop()
        found.append(way)
        in_turn = children[rank][::-1]
        eager = [child for child in in_turn if size[child] < least]
        done = dict(zip(eager, shared_link([size[child] for child in eager]), strict=True))
        messages, blocks = way[2:]
        for child in in_turn:
            if child in done:
                waiting.append((child, (way[0] + 1, way[1] + done[child], messages, blocks)))
            else:
                messages, blocks = messages + 1, blocks + size[child]
                waiting.append((child, (way[0], way[1], messages, blocks)))
    return found


def scatter_way(procs: int, block_bytes: int, eager_limit_bytes: int) -> tuple[float, ...]:
    points = Points.of(procs, block_bytes, eager_limit_bytes=eager_limit_bytes)
    eager, rendezvous = scatter.BY_PARTS["binomial"](points, GAMMA)
    assert (eager.protocol, rendezvous.protocol) == ("eager", "rendezvous")
    return tuple(
        value
        for part in (eager, rendezvous)
        for value in (float(part.count), round(float(part.count * part.bytes_each) / block_bytes, 6))
    )


def test_the_slowest_way_of_a_binomial_scatter(children: Children) -> None:
    for procs in [*range(2, 70), 127, 128, 129]:
        tree = children("in_order_binomial", procs, 0)
        for block_bytes, limit in ((1000, 0), (1000, 1000), (1000, 4000), (1000, 4001), (1000, 10000), (7, 2**40)):
            every = ways(tree, math.ceil(limit / block_bytes))
            slowest = max((way[1] + way[3], way[0] + way[2]) for way in every)
            found = scatter_way(procs, block_bytes, limit)
            assert found in [way for way in every if (way[1] + way[3], way[0] + way[2]) == slowest], (procs, limit)


def test_a_full_binomial_scatter_by_hand() -> None:
    # 4, 2 and 1 blocks side by side take 4 + 2 + 1, 2 + 2 + 1 and 1 + 1 + 1; then the first goes on with 2 and 1.
    assert scatter_way(8, 100, 2**40) == (3, 7 + 3 + 1, 0, 0)
    # 4 blocks by rendezvous, then 2 and 1 side by side, in 3 and 2; after 4 the first goes on in 3 and 1.
    assert scatter_way(8, 100, 400) == (2, 4, 1, 4)


@pytest.mark.parametrize("formula", [bcast.BY_PARTS["split_binary"], bcast.BY_PARTS["two_tree"]])
def test_whole_segments_of_an_odd_half_decide_the_protocol(formula: Formula) -> None:
    """Half of 40 KiB has two segments of 8 KiB and one of 4, whose mean is below a limit of 8 KiB."""
    points = Points.of(8, [4096, 40960], 8192, eager_limit_bytes=8192)
    for part in formula(points, GAMMA)[:2]:
        assert part.longest is not None
        assert list(part.longest) == [2048, 8192]
        assert part.bytes_each[1] == pytest.approx(20480 / 3)
    sums = protocol_sums("by_parts", "bcast", formula(points, GAMMA)[:2], points)
    assert sums["steady/rendezvous"][0][1] > 0
    assert "steady/eager" not in sums


@pytest.mark.parametrize("name", [name for name in EVERY if name.startswith("parts")])
@given(procs=st.integers(2, 3000), more=st.integers(0, 200), m=st.integers(1, 2**24), further=st.integers(0, 2**20))
def test_times_are_positive_and_grow_with_the_message(name: str, procs: int, more: int, m: int, further: int) -> None:
    segment = SEGMENT if "bcast" in name or "reduce" in name else 0
    less = float(evaluate(EVERY[name], procs, m, segment, eager_limit_bytes=2**40))
    assert less >= ALPHA + m / 2 * BETA
    whole = math.ceil(further / (2 * SEGMENT)) * 2 * SEGMENT
    assert float(evaluate(EVERY[name], procs, m + whole, segment, eager_limit_bytes=2**40)) >= less * (1 - 1e-12)
    # Blocks of m / P are smaller with more processes: between powers of two, fewer bytes go down a way as long.
    if "allgather" not in name:
        assert float(evaluate(EVERY[name], procs + more, m, segment, eager_limit_bytes=2**40)) >= less * (1 - 1e-12)


@given(st.integers(2, 64), st.integers(1, 2**22))
def test_nonblocking_linear_stays_within_the_bounds_of_formula_2(procs: int, m: int) -> None:
    one = ALPHA + m * BETA
    time = float(evaluate(bcast.linear_nonblocking, procs, m, 0))
    assert one * (1 - 1e-12) <= time <= (procs - 1) * one * (1 + 1e-12)


def test_split_binary_between_two_processes_sends_one_half_and_then_the_other() -> None:
    for segments in (1, 2, 7):
        (time,) = evaluate(bcast.BY_PARTS["split_binary"], [2], 2 * segments * SEGMENT)
        assert time == pytest.approx(segments * (ALPHA + SEGMENT * BETA) + ALPHA + segments * SEGMENT * BETA)


def test_a_k_chain_of_one_is_the_chain() -> None:
    np.testing.assert_allclose(
        evaluate(bcast.BY_PARTS["k_chain"], np.array(PROCS)[:, None], PIPELINED, parameter=1),
        evaluate(bcast.BY_PARTS["chain"], np.array(PROCS)[:, None], PIPELINED),
        rtol=1e-12,
    )


def test_a_knomial_tree_of_radix_two_has_the_steps_of_a_binomial_one() -> None:
    for height in range(1, 12):
        for m in PIPELINED:
            found = float(evaluate(bcast.BY_PARTS["knomial"], 2**height, m, parameter=2))
            assert found == pytest.approx(float(evaluate(bcast.BY_PARTS["binomial"], 2**height, m)), rel=1e-12)


def test_a_linear_scatter_is_a_linear_broadcast_of_its_blocks() -> None:
    assert scatter.BY_PARTS["linear"] is bcast.BY_PARTS["linear"]
