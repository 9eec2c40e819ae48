"""Times of algorithms: a table for each collective; scripts that measure them elsewhere; times that were deleted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.common.units import counted, format_seconds, format_size
from collwise.store_contents import Deleted
from collwise.studies.present.shown import Shown, Table, cut, drawing, said
from collwise.timings import Script
from collwise.validation.select.decisions import is_doubtful
from collwise.validation.times.allocations import ALLOCATION, RARE, losses, over_allocations
from collwise.validation.times.choice import Choice
from collwise.validation.times.files import AllTimes
from collwise.validation.times.grid import CASE_COLUMNS
from collwise.validation.times.times import Times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = [*CASE_COLUMNS, "parameters", "seconds", "error"]
_OF_MEASUREMENT = [
    *("half_width_seconds", "mean_seconds", "median_seconds", "least_seconds", "greatest_seconds"),
    *("repetitions", "late_starts", "precise"),
]
_MEASURED = ("P", "m", "algorithm", "median", "+-", "mean", "minimum", "maximum", "repetitions", "late starts")


def shown(found: AllTimes) -> Shown:
    """A table of each collective's times, and the number of cases that the store already had."""
    frame = found.frame()
    first = next(iter(found.values()))
    measured = "mean_seconds" in frame
    drawn = ALLOCATION in frame
    show = _measured if measured else _over_allocations if drawn else _parts
    parts = [part for times in found.values() for part in show(times)]
    facts = {}
    if "reused" in first.facts:
        parts.append(
            f"{counted(len(frame), 'case')}, {first.facts['reused']} of them already in the store; "
            f"{counted(first.facts['processes_started'], 'simulator process')}; {first.maker}"
        )
    if first.between is not None:
        facts["model"] = first.between.name
    parts += [note for times in found.values() for note in times.notes]
    problem = ""
    if any(frame.error):
        failed = frame[frame.error != ""]
        problem = (
            f"{len(failed)} of {counted(len(frame), 'case')} failed; the times of the others are in the store; "
            f"first: {failed.error.iloc[0]}"
        )
    columns = [*([ALLOCATION] if drawn else []), *_COLUMNS]
    rows = _timed_once(frame)[[*columns, *_OF_MEASUREMENT]] if measured else frame[columns]
    return Shown(parts, rows.to_dict("records"), facts, _figures(found), problem)


def _figures(found: AllTimes) -> dict[str, Callable[[], Figure]]:
    """Figures of every algorithm's time over m at the largest P, for each collective that has messages."""
    return {
        f"{times.platform}-{name}-times": drawing("picks.times_figure", over_allocations(times), max(times.procs))
        for name, times in found.items()
        if min(times.message_bytes) > 0
    }


def _timed_once(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows, except those that repeat another row's time because their segments leave the message whole."""
    whole = frame[(frame.segment_bytes == 0) | (frame.segment_bytes >= frame.message_bytes)]
    same = [name for name in CASE_COLUMNS if name != "segment_bytes"]
    return frame.drop(whole.index[whole.duplicated(same)])


def _measured(times: Times) -> Iterator[Table | str]:
    """A row for each time; a star marks an interval that is wider than was asked for."""
    frame = _timed_once(times.frame())
    several_segments = len({segment for segment in frame.segment_bytes if segment}) > 1
    rows = []
    for item in frame.itertuples():
        choice = Choice(item.algorithm, item.segment_bytes if several_segments else 0, item.parameter)
        name = choice.label if item.algorithm in times.grid.names else "MPI's own"
        start = (item.procs, format_size(item.message_bytes), name)
        if item.error:
            rows.append((*start, "failed", *["-"] * (len(_MEASURED) - 4)))
            continue
        width = item.half_width_seconds / item.seconds if item.seconds > 0 else math.inf
        interval = f"{width * 100:.1f} %{'' if item.precise else ' *'}" if width < math.inf else "-"
        others = map(format_seconds, (item.mean_seconds, item.least_seconds, item.greatest_seconds))
        counts = (int(item.repetitions), int(item.late_starts))
        rows.append((*start, format_seconds(item.seconds), interval, *others, *counts))
    yield Table(f"{times.collective} on {times.platform}, measured under {times.maker}", _MEASURED, rows, 0, keys=3)


def _over_allocations(times: Times) -> Iterator[Table | str]:
    """A row for each choice at each point; the choices at a point are sorted by their medians."""
    typical, rare = over_allocations(times), over_allocations(times, RARE)
    lost = losses(times)
    rows = []
    for i, procs in enumerate(times.procs):
        for j, size in enumerate(times.message_bytes):
            order = np.argsort(typical.array[:, i, j])
            for a in order[np.isfinite(typical.array[order, i, j])]:
                shares = (f"{array.values[a, i, j] * 100:.1f} %" for array in lost)
                seconds = (format_seconds(float(item.array[a, i, j])) for item in (typical, rare))
                rows.append((procs, format_size(size), times.choices[a].label, *seconds, *shares))
    columns = ("P", "m", "choice", "median", "95th percentile", "loses", "95th percentile")
    yield from cut(Table(f"{times.collective} on {times.platform}, {typical.made_by}", columns, rows, left=0, keys=3))
    yield "The loss of a choice is its time divided by the time of the fastest choice on the same allocation, minus 1."


def _parts(times: Times) -> Iterator[Table | str]:
    catalogue = Catalogue.load().collective(times.collective).algorithms
    # Additionally timed choices have their own segment sizes.
    frame, names = times.of_grid(replace(times.grid, besides=())).frame(), dict.fromkeys(times.grid.names)
    pieces = frame.segment_bytes.where([not catalogue[name].bounded for name in frame.algorithm], 0)
    segments = sorted({*pieces[[catalogue[name].pipelined for name in frame.algorithm]]})
    if len(segments) == 1:
        # If there is a single segment size, algorithms without segments stand in the rows of that size.
        pieces[:] = segments[0]
    text = frame.seconds.map(format_seconds).where(frame.error == "", "failed")
    labels = [_label(catalogue[name], count) for name, count in zip(frame.algorithm, frame.parameter, strict=True)]
    cells = frame.assign(segment_bytes=pieces, text=text, label=labels).pivot(
        index=["procs", "message_bytes", "segment_bytes"], columns="label", values="text"
    )
    by_name: dict[str, list[str]] = {name: [] for name in names}
    for name, label in dict.fromkeys(zip(frame.algorithm, labels, strict=True)):
        by_name.setdefault(name, []).append(label)
    columns = [label for name, found in by_name.items() for label in found or [name]]
    # A missing cell means that the algorithm does not run.
    cells = cells.reindex(columns=columns).astype(object).fillna("-").reset_index()
    repeated = cells.duplicated(["procs", "message_bytes", *columns]) & (cells.segment_bytes > cells.message_bytes)
    several_segments = len(segments) > 1
    rows = [
        (p, format_size(m), *([format_size(segment)] if several_segments else []), *row)
        for p, m, segment, *row in cells[~repeated].itertuples(index=False, name=None)
    ]
    heads = ["P", "m", *(["segment"] if several_segments else []), *columns]
    common = f", segments of {format_size(segments[0])}" if len(segments) == 1 and segments[0] else ""
    title = f"{times.collective} on {times.platform}, {times.source} by {times.title}{common}"
    yield from cut(Table(title, heads, rows, left=0, keys=len(heads) - len(columns)))
    if repeated.any():
        yield "Segments larger than m leave the message whole; rows that repeat another row are left out."
    if counts := [
        _label(catalogue[name], count)
        for name in columns
        if name in catalogue and (count := catalogue[name].default_count)
    ]:
        yield f"By default {'; '.join(counts)}."
    for name in names:
        yield from _left_out(catalogue[name], times)
    if len(times.grid.points) == 1:
        yield from _fastest(times)


def _fastest(times: Times) -> Iterator[str]:
    """A sentence on the fastest choice that is not doubtful, and on the next algorithm, at the only point."""
    [(procs, size)] = times.grid.points
    seconds = {choice: value for choice, value in times.at_point(procs, size).items() if choice in times.choices}
    order = sorted(seconds, key=lambda choice: seconds[choice])
    doubtful = [choice for choice in order if is_doubtful(times, choice, procs)]
    best = {choice.algorithm: choice for choice in reversed(order) if choice not in doubtful}
    if len(best) > 1:
        first, second = sorted(best.values(), key=order.index)[:2]
        faster = [choice for choice in doubtful if seconds[choice] < seconds[first]]
        point = {"procs": procs, "message_bytes": size}
        yield from said("fastest", times=times, **point, seconds=seconds, first=first, second=second, doubtful=faster)


def _left_out(algorithm: Algorithm, times: Times) -> Iterator[str]:
    """Sentences on the points at which the algorithm does not run."""
    without = [p for p in times.grid.procs if algorithm.objection(p)]
    if without:
        listed = ", ".join(map(str, without))
        yield f"{algorithm.name} {algorithm.objection(without[0])}: not {times.source} for P = {listed}"
    for p in times.grid.procs:
        # A mock-up may need more memory than its buffers have.
        too_long = [] if p in without else [m for m in times.grid.message_bytes if algorithm.objection(p, m)]
        if too_long:
            why = algorithm.objection(p, too_long[0])
            yield f"{algorithm.name} {why}: not {times.source} for P = {p}, m = {format_size(too_long[0])} and longer"


def _label(algorithm: Algorithm, count: int) -> str:
    """A label such as 'knomial, radix 8'; only 'knomial' if `count` is 0."""
    return f"{algorithm.name}, {algorithm.count_parameter} {count}" if count else algorithm.name


def script(found: Script) -> Shown:
    """A line that says how to run a script that measures where collwise is not installed."""
    line = f"{found.path}: {counted(found.cases, 'case')}; on the machine to be measured, run: {found.words}"
    return Shown([line], [{"file": str(found.path), "cases": found.cases}])


def deleted(found: Deleted) -> Shown:
    """The number of times that were deleted."""
    return Shown([f"deleted: {found} times" if found else "nothing to delete"], [{"deleted": int(found)}])
