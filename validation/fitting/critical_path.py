"""The model by critical paths, which plays the schedule of each algorithm with the algorithm's own alpha and beta.

The network is the simplest one that distinguishes algorithms. Every node has a port in each direction, which takes beta
per byte and shares its rate among the messages that pass it; a message also takes alpha. The time along the critical
path is a sum of multiples of alpha and beta, and the estimation counts these multiples.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from collwise.models.implementation_aware.fitting import HUBER_RELATIVE, huber
from collwise.models.parameters import (
    CLASSES,
    EAGER,
    LOCAL,
    RENDEZVOUS,
    FittedToObservations,
    PathFit,
    PathParameters,
)
from collwise.models.piecewise import Array
from collwise.models.registry import CRITICAL_PATH
from collwise.models.single_messages import Hockney
from collwise.simulator.schedule.library import ANSWERING, LEAVING, ON_WAY, Schedule
from collwise.simulator.schedule.pipelines import play_case_within
from collwise.simulator.schedule.shared import uncut
from collwise.simulator.schedule.tables import (
    DEFERRED,
    EAGER as LEAVES_WHEN_SENT,
    RENDEZVOUS as WAITS_FOR_RECEIVER,
    NetworkTables,
)
from collwise.simulator.sweeps.runner import run_concurrently
from collwise.simulator.timing import Case
from collwise.validation.fitting.scheduled_model import PlayedModel

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")

Pairs = Mapping[str, Hockney]
"""alpha and beta by class of messages."""

# Parameters have settled when a step changes the time of no experiment by more than this share.
_SETTLED = 1e-4
_WHOLE_STEPS, _MAX_STEPS = 3, 12
_WITH_TOKENS = ("barrier",)
# Times are on a straight line if they are off it by no more than this share.
_STRAIGHT = 1e-4
# A parameter is at least this share of the same parameter of single messages, so that times can be divided by it.
_MIN_SHARE = 1e-3
# The weight that draws an algorithm's parameters to those of single messages; an observation has the weight 1. So small
# a weight decides only what the observations leave open.
_HOLD = 0.01


@dataclass(frozen=True)
class PathCounts:
    """The parts of a schedule's critical path: the time is `counts` @ (alpha, beta, ...) + `known_seconds`.

    For each class of messages, in the order of CLASSES, `counts` has the number of latencies on the path, and the
    number of bytes that ports pass while the path waits. These bytes belong to the path's messages, and to other
    messages that share a port with the path's messages.
    """

    counts: Array
    known_seconds: float
    seconds: float


def path_tables(
    known: PathParameters, pairs: Pairs, procs: int, sizes: npt.NDArray[np.uint64], tokens: bool = False
) -> NetworkTables:
    """The network on which the model plays schedules of P processes, with alpha and beta by class of messages.

    With `tokens`, as in barriers, messages have at least one byte, since empty messages have no overheads.
    """
    m = np.maximum(sizes.astype(np.float64), 1.0 if tokens else 0.0)
    eager = m < known.eager_limit_bytes
    alpha = np.where(eager, pairs[EAGER].alpha_seconds, pairs[RENDEZVOUS].alpha_seconds)
    on_port = m * np.where(eager, pairs[EAGER].beta_seconds_per_byte, pairs[RENDEZVOUS].beta_seconds_per_byte)
    nodes = -(-procs // known.processes_per_node)
    # Loads of ports are in seconds, so that a port serves a load of one second in each second.
    full = np.ones(1)
    return replace(
        NetworkTables.of_model(procs, sizes),
        node_of=np.arange(procs) // known.processes_per_node,
        class_of=np.zeros(nodes, dtype=np.int32),
        send_seconds=np.where(eager, np.maximum(known.overheads.send(m), 0.0), 0.0)[None],
        start_seconds=np.maximum(known.overheads.start(m), 0.0)[None],
        receive_seconds=np.where(eager, np.maximum(known.overheads.receive(m), 0.0), 0.0)[None],
        reduce_seconds=m * known.reduce_seconds_per_byte,
        protocol=np.where(eager, DEFERRED if known.receives_first else LEAVES_WHEN_SENT, WAITS_FOR_RECEIVER),
        answer_seconds=alpha[None, None],
        latency_seconds=alpha[None, None],
        transfer_seconds=on_port[None, None],
        local_latency_seconds=np.full((1, len(m)), pairs[LOCAL].alpha_seconds),
        local_transfer_seconds=m[None] * pairs[LOCAL].beta_seconds_per_byte,
        out_rate=full,
        in_rate=full,
        burst_bytes=np.zeros(1),
        load_bytes=on_port,
        senders_wait_for_arrival=known.receives_first,
    )


def path_counts(known: PathParameters, pairs: Pairs, tokens: bool, schedule: Schedule) -> PathCounts:
    """Counts latencies and bytes on a schedule's critical path, given alpha and beta by class of messages."""
    tables = path_tables(known, pairs, schedule.procs, schedule.sizes, tokens)
    trace = schedule.trace(tables)
    path = trace.path
    spent, seconds = path["spent"], path["end_seconds"] - path["begin_seconds"]
    is_message = np.isin(spent, (ON_WAY, LEAVING, ANSWERING))
    # A sender that waits until its message has arrived waits for the latency, too.
    has_latency = is_message if known.receives_first else is_message & (spent != LEAVING)
    local = tables.node_of[path["process"]] == tables.node_of[path["peer"]]
    eager = trace.sizes[path["size"]] < known.eager_limit_bytes
    counts = []
    for name, here in ((EAGER, eager & ~local), (RENDEZVOUS, ~eager & ~local), (LOCAL, local)):
        alpha, beta = pairs[name].alpha_seconds, pairs[name].beta_seconds_per_byte
        latencies = int(np.sum(here & has_latency))
        counts += [latencies, max(0.0, (float(np.sum(seconds[here & is_message])) - latencies * alpha) / beta)]
    return PathCounts(np.array(counts), float(np.sum(seconds[~is_message])), trace.seconds)


def fit_path(known: PathParameters, timed: Mapping[Case, float]) -> PathFit:
    """Fits alpha and beta of an algorithm to the seconds of its cases.

    The path depends on the parameters, and the parameters depend on the counts. Therefore counting on critical paths
    and fitting are repeated until no time changes any more, at most twelve times, and the parameters with the smallest
    residuals are used.
    """
    from scipy.special import huber as huber_loss

    schedules, seconds = [Schedule(case) for case in timed], np.array([*timed.values()])
    tokens = next(iter(timed)).collective in _WITH_TOKENS
    usual = _vector(known.messages)
    parameters, before = usual, np.zeros_like(seconds)
    best, steps, settled = (np.inf, usual, seconds, np.zeros_like(usual)), 0, False
    while True:
        count = partial(path_counts, known, _pairs(parameters), tokens)
        found = _each(lambda schedule, stop, count=count: count(schedule), schedules)  # type: ignore[misc]
        played = np.array([item.seconds for item in found])
        counts = np.array([item.counts for item in found])
        loss = float(huber_loss(HUBER_RELATIVE, played / seconds - 1).sum())
        if loss < best[0]:
            best = (loss, parameters, played, counts.sum(axis=0))
        settled = bool(np.all(np.abs(played - before) <= _SETTLED * seconds))
        if settled or steps == _MAX_STEPS:
            break
        rest = np.array([item.known_seconds for item in found])
        solution = np.maximum(solve(counts, rest, seconds, usual), _MIN_SHARE * usual)
        # If two paths alternate as the critical one, the parameters are between those that the two paths give.
        parameters = solution if steps < _WHOLE_STEPS else (parameters + solution) / 2
        before, steps = played, steps + 1
    _, parameters, played, touched = best
    had = [bool(row.any()) for row in touched.reshape(len(CLASSES), 2)]
    own = {name: pair for (name, pair), here in zip(_pairs(parameters).items(), had, strict=True) if here}
    return PathFit(own, tuple(map(float, played / seconds - 1)), steps, settled)


def solve(counts: Array, known_seconds: Array, seconds: Array, usual: Array) -> Array:
    """alpha and beta of an algorithm: `counts` @ x + `known_seconds` = `seconds`, an equation for each experiment.

    Each equation is divided by its time and all are solved by Huber regression, as in Nuriyev & Lastovetsky 2021,
    section IV-C. Parameters that the equations do not determine, such as those of a class of messages that is on no
    path, stay as in `usual`.
    """
    rows = np.vstack([counts / seconds[:, None], np.diag(_HOLD / usual)])
    wanted = np.append(1 - known_seconds / seconds, np.full(len(usual), _HOLD))
    return np.array(huber(rows, wanted))


def _each(function: Callable[[_Item, threading.Event], _Found], items: Sequence[_Item]) -> list[_Found]:
    """The results of a function for each item, computed in threads; an event asks the function to stop."""
    stop = threading.Event()
    if len(items) == 1:  # for example a single prediction, which takes less time than starting a thread
        return [function(items[0], stop)]
    found: dict[int, _Found] = {}

    def find(place: int, item: _Item) -> None:
        found[place] = function(item, stop)

    run_concurrently([partial(find, *entry) for entry in enumerate(items)], os.cpu_count() or 1, stop)
    return [found[place] for place in range(len(found))]


def _vector(pairs: Pairs) -> Array:
    return np.array([value for name in CLASSES for value in vars(pairs[name]).values()], dtype=float)


def _pairs(vector: Array) -> dict[str, Hockney]:
    return {name: Hockney(*vector[2 * i : 2 * i + 2].tolist()) for i, name in enumerate(CLASSES)}


@dataclass(frozen=True)
class CriticalPath(FittedToObservations, PlayedModel):
    """The model by critical paths with the parameters of a platform. It is a CollectiveModel."""

    parameters: PathParameters
    name: str = CRITICAL_PATH
    _known: dict[Case, float] = field(default_factory=dict, compare=False, repr=False)

    def algorithms(self, collective: str) -> tuple[str, ...]:
        """The algorithms that have fitted parameters; none if no algorithm of the collective was fitted."""
        return tuple(self.parameters.fits.get(collective, {}))

    def rows(self, sizes: Mapping[Case, Sequence[int]]) -> list[dict[int, float]]:
        """The seconds of each case by size, as in `PlayedModel.rows`; `_between` plays only some of many sizes."""

        def at_sizes(row: tuple[Case, Sequence[int]], stop: threading.Event) -> dict[int, float]:
            def seconds(m: int) -> float:
                if stop.is_set():
                    raise KeyboardInterrupt
                return self.seconds(replace(row[0], message_bytes=m))

            return _between(seconds, row[1])

        return _each(at_sizes, list(sizes.items()))

    def seconds(self, case: Case) -> float:
        """The seconds of a case that its algorithm can run."""
        seconds = self.seconds_within(case, math.inf)
        assert seconds is not None
        return seconds

    def seconds_within(self, case: Case, max_seconds: float) -> float | None:
        """The seconds of a case that its algorithm can run; None as soon as they are known to exceed `max_seconds`."""
        same = uncut(case) or case
        if same not in self._known:
            pairs = self.parameters.parameters_of(case.collective, case.algorithm)
            tokens = case.collective in _WITH_TOKENS
            tables_of = partial(path_tables, self.parameters, pairs, case.procs, tokens=tokens)
            played = play_case_within(case, tables_of, max_seconds)
            if played is None:
                return None
            self._known[same] = played.seconds
        return self._known[same]


def _between(seconds: Callable[[int], float], sizes: Sequence[int]) -> dict[int, float]:
    """Seconds at ascending sizes; if the times of four sizes lie on a line, times in between are interpolated."""
    found: dict[int, float] = {}

    def fill(first: int, last: int) -> None:
        inner = range(first + 1, last)
        thirds = sorted({first + (last - first) // 3, last - (last - first) // 3})
        ends = [sizes[first], sizes[last]]
        for place in (first, last, *(thirds if len(inner) > 2 else inner)):
            found[sizes[place]] = seconds(sizes[place])
        if len(inner) <= 2:
            return
        line = np.interp([sizes[place] for place in inner], ends, [found[size] for size in ends])
        if all(abs(found[sizes[k]] - line[k - first - 1]) <= _STRAIGHT * found[sizes[k]] for k in thirds):
            found.update((sizes[k], float(line[k - first - 1])) for k in inner if k not in thirds)
            return
        for one, other in pairwise([first, *thirds, last]):
            fill(one, other)

    fill(0, len(sizes) - 1)
    return found
