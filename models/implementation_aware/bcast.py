"""Cost formulas of the broadcast algorithms: Nuriyev & Lastovetsky 2021, section III-A, and others of the same kind.

`AS_PRINTED` holds formulas (1) and (7) to (11) as printed: with one alpha and beta per algorithm, and with a gamma that
depends only on p and is taken at the segment size. `BY_PARTS` holds them split into parts whose costs differ:

- Filling the tree is one part, and the flow of segments that follows is another, since with several processes per node
  the segments of the flow share the nodes' links.
- The two phases of split-binary are two parts, since the exchange may reach the eager limit while segments do not.
- Eager messages of the linear tree run concurrently, as in formula (3); rendezvous messages follow formula (1).

`knomial`, `two_tree`, `scatter_allgather` and `scatter_ring_allgather` are not in the paper.

Formula (7) is printed on two lines without a sign between them; we take their sum, as in (6). The additional "- 1" in
(7) would make the broadcast of one segment between two processes free, so `BY_PARTS` leaves it out. A balanced binomial
tree is floor(log2 P) deep, but its root has ceil(log2 P) children; the longest of K chains has ceil((P - 1) / K)
processes. `BY_PARTS` uses these numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collwise.models.implementation_aware.message_counts import Gamma, Messages, by_algorithm, ceil_log2, floor_log2
from collwise.models.implementation_aware.trees import binary_subtrees, binomial_subtrees, fill_steps, knomial_subtrees
from collwise.models.interface import Points, longest_segment, segment_count
from collwise.models.piecewise import Array


def _printed(points: Points, steps: Array) -> list[Messages]:
    """`steps` messages of one segment each; none for a single process."""
    return [Messages("main", np.where(points.procs > 1, steps, 0.0), points.bytes_each)]


def _pipeline(points: Points, fill: Array, steady: Array, whole: Array) -> list[Messages]:
    """A pipelined broadcast of `whole` bytes: `fill` steps of the first segment, then `steady` steps of the others."""
    each, longest = whole / segment_count(whole, points.segment_bytes), longest_segment(whole, points.segment_bytes)
    counts = {"fill": fill, "steady": steady}
    return [
        Messages(name, np.where(points.procs > 1, count, 0.0), each, longest=longest) for name, count in counts.items()
    ]


def linear_as_printed(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Formula (1): (P - 1) (alpha + m beta)."""
    return [Messages("main", points.procs - 1, points.message_bytes)]


def linear(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Formula (1) for rendezvous messages; formula (3), gamma(P) (alpha + m beta), for eager messages."""
    eager = points.message_bytes < points.eager_limit_bytes
    count = np.where(eager, gamma(points.procs, points.message_bytes), points.procs - 1)
    return [Messages("main", np.where(points.procs > 1, count, 0.0), points.message_bytes)]


def linear_nonblocking(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Formula (3): gamma(P) (alpha + m beta), for each segment."""
    return _printed(points, points.segments * gamma(points.procs, points.bytes_each))


def chain_as_printed(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Formula (8): (P + n_s - 2) (alpha + m_s beta)."""
    return _printed(points, points.procs + points.segments - 2)


def chain(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Formula (8): P - 1 steps to fill the chain, then n_s - 1 steps."""
    return _pipeline(points, points.procs - 1, points.segments - 1, points.message_bytes)


def k_chain_as_printed(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Formula (11): (floor((P - 1) / K) + gamma(K + 1) n_s - 1) (alpha + m_s beta)."""
    length = np.floor((points.procs - 1) / points.parameter)
    return _printed(points, length + gamma(points.parameter + 1, points.segment_bytes) * points.segments - 1)


def k_chain(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Formula (11): the root's first step and the longest chain's other steps, then gamma(K + 1) (n_s - 1) steps."""
    segment = points.bytes_each
    chains = np.minimum(points.parameter, np.maximum(points.procs - 1, 1))
    length = np.ceil((points.procs - 1) / chains)
    root_step = gamma(chains + 1, segment)
    return _pipeline(points, root_step + length - 1, root_step * (points.segments - 1), points.message_bytes)


def binary_as_printed(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Formula (10): gamma(3) (floor(log2 P) + n_s - 1) (alpha + m_s beta)."""
    return _printed(points, gamma(3, points.segment_bytes) * (floor_log2(points.procs) + points.segments - 1))


def binary(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Formula (10): the steps along the slowest path, to fill the tree, then gamma(3) (n_s - 1) steps."""
    segment = points.bytes_each
    step = gamma(np.minimum(points.procs, 3), segment)
    fill = fill_steps(points, gamma, binary_subtrees, segment)
    return _pipeline(points, fill, step * (points.segments - 1), points.message_bytes)


def binomial_as_printed(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Formula (7): (n_s gamma(h + 1) + sum of gamma(k) for k = 2..h, - 1) (alpha + m_s beta), h = floor(log2 P)."""
    height = floor_log2(points.procs)
    below = _gamma_sum(height, gamma, points.segment_bytes)
    return _printed(points, points.segments * gamma(height + 1, points.segment_bytes) + below - 1)


def binomial(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Formula (7): the steps along the slowest path, to fill the tree, then gamma(c + 1) (n_s - 1) steps.

    c = ceil(log2 P) is the number of the root's children. If these receive a segment one after another, the slowest
    path takes less than the printed sum gamma(c + 1) + gamma(c) + ... + gamma(2), since the first child has the largest
    subtree.
    """
    segment = points.bytes_each
    fill = fill_steps(points, gamma, binomial_subtrees, segment)
    steady = gamma(ceil_log2(points.procs) + 1, segment) * (points.segments - 1)
    return _pipeline(points, fill, steady, points.message_bytes)


def _gamma_sum(last: Array, gamma: Gamma, message_bytes: Array) -> Array:
    total = np.zeros_like(message_bytes)
    for k in range(2, int(np.max(last, initial=1.0)) + 1):
        total = total + np.where(k <= last, gamma(k, message_bytes), 0.0)
    return total


def split_binary_as_printed(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Formula (9): 2 (floor(log2 P) + n_s / 2 - 1) (alpha + m_s beta) + (alpha + m / 2 beta)."""
    forwarding = 2 * (floor_log2(points.procs) + points.segments / 2 - 1)
    several = np.where(points.procs > 1, 1.0, 0.0)
    return [*_printed(points, forwarding), Messages("main", several, points.message_bytes / 2)]


def split_binary(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Formula (9): the steps along the slowest path, then 2 (n - 1) for the n segments of a half, then the exchange.

    With two processes the root has only one child, so the segments take n - 1 steps instead of 2 (n - 1).
    """
    half = points.message_bytes / 2
    segments = segment_count(half, points.segment_bytes)
    fill = fill_steps(points, gamma, binary_subtrees, half / segments)
    children = np.minimum(points.procs - 1, 2)
    forwarding = _pipeline(points, fill, children * (segments - 1), half)
    return [*forwarding, *split_binary_exchange(points, gamma)]


def split_binary_exchange(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """The second phase of split-binary, measured in a separate experiment: alpha + m / 2 beta."""
    return [Messages("exchange", np.where(points.procs > 1, 1.0, 0.0), points.message_bytes / 2)]


def knomial(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """K-nomial tree: the steps along the slowest path, then gamma(c + 1) (n_s - 1) steps for the root's c children."""
    segment = points.bytes_each
    subtrees = knomial_subtrees(max(points.parameter, 2))
    counts, which = np.unique(points.procs, return_inverse=True)
    children = np.array([float(len(subtrees(int(procs)))) for procs in counts])[which.reshape(points.procs.shape)]
    fill = fill_steps(points, gamma, subtrees, segment)
    return _pipeline(points, fill, gamma(children + 1, segment) * (points.segments - 1), points.message_bytes)


def two_tree(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Two binary trees, filled in 2 floor(log2(P - 1)) + 2 steps; the n segments of a half then take 2 (n - 1) steps.

    Up to a fifth of the steps have no message to wait for; the fit takes these for cheaper steps.
    """
    half = points.message_bytes / 2
    segments = segment_count(half, points.segment_bytes)
    fill = 2 * floor_log2(np.maximum(points.procs - 1, 1.0)) + 2
    return _pipeline(points, fill, 2 * (segments - 1), half)


def scatter_allgather(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Scatter, then recursive doubling: its i-th step exchanges 2^(i-1) blocks of m / P.

    If a group of w = 2^(i-1) processes meets a smaller group of r processes, the processes without a partner get the
    smaller group's blocks in ceil(log2(w / r)) messages of r blocks. Only the longest of these series of messages
    delays the broadcast. Its first processes are not the last that the scatter reached, so latencies count only
    floor(log2(w / r)) times, at least once; bytes count in full. Steps of the scatter and of the allgather are nearly
    equal in number, so one part serves both.
    """
    block = points.message_bytes / points.procs
    parts = _scatter("main", points)
    longest, passed_on = np.zeros_like(block), np.zeros_like(block)
    for step in range(_steps(points)):
        width = 2.0**step
        parts.append(Messages("main", np.where(width < points.procs, 1.0, 0.0), width * block))
        smaller = np.mod(points.procs, 2 * width) - width
        ratio = np.where(smaller > 0, width / np.maximum(smaller, 1.0), 1.0)
        longest = np.maximum(longest, np.where(ratio > 1, np.maximum(floor_log2(ratio), 1.0), 0.0))
        passed_on = passed_on + np.ceil(np.log2(ratio)) * smaller * block
    return [*parts, Messages("main", longest, passed_on / np.maximum(longest, 1.0))]


def scatter_ring_allgather(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Scatter, then P - 1 steps with a block of m / P each."""
    return [*_scatter("scatter", points), Messages("ring", points.procs - 1, points.message_bytes / points.procs)]


def _scatter(name: str, points: Points) -> list[Messages]:
    """The messages of 2^(f-1), ..., 2, 1 blocks of m / P to the binomial tree's deepest process; f = floor(log2 P)."""
    block = points.message_bytes / points.procs
    parts = []
    for step in range(_steps(points)):
        width = 2.0**step
        carried = np.clip(points.procs - width, 0.0, width) * block
        # The first message, with the blocks of rank 2^f and of higher ranks, delays the others only by rendezvous.
        waited_for = (points.procs >= 2 * width) | (carried >= points.eager_limit_bytes)
        parts.append(Messages(name, np.where(waited_for & (points.procs > width), 1.0, 0.0), carried))
    return parts


def _steps(points: Points) -> int:
    """ceil(log2 P) of the largest P."""
    return int(np.max(ceil_log2(points.procs), initial=0.0))


def traditional_binomial(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Section III-C: ceil(log2 P) (alpha + m beta)."""
    return [Messages("main", ceil_log2(points.procs), points.message_bytes)]


def traditional_binary(points: Points, gamma: Gamma) -> Sequence[Messages]:
    """Section III-C: 2 (ceil(log2(P + 1)) - 1) (alpha + m beta)."""
    return [Messages("main", 2 * (ceil_log2(points.procs + 1) - 1), points.message_bytes)]


AS_PRINTED = by_algorithm(
    linear_as_printed,
    chain_as_printed,
    k_chain_as_printed,
    binary_as_printed,
    split_binary_as_printed,
    binomial_as_printed,
)
BY_PARTS = by_algorithm(
    *(linear, linear_nonblocking, chain, k_chain, binary, split_binary, binomial, knomial),
    *(scatter_allgather, scatter_ring_allgather, two_tree),
)
TRADITIONAL = by_algorithm(traditional_binomial, traditional_binary)
