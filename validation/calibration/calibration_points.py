"""The measurements of a calibration as points, their cases in the timing table, and their CSV file."""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from collwise.common import experiments
from collwise.common.errors import UsageError, unknown_name
from collwise.common.experiments import Experiment
from collwise.common.files import read_text, write_text
from collwise.simulator.sweeps.experiment_runner import case_of, processes_of
from collwise.simulator.timing import WINDOWS, Case, Timing


class Kind(StrEnum):
    """The kinds of measurement in a calibration."""

    CLOCK = "clock"
    SEND = "send"
    ISEND = "isend"
    RECEIVE = "receive"
    PING_PONG = "ping_pong"
    ROW = "row"
    EXCHANGE = "exchange"
    REDUCE = "reduce"
    EAGER = "eager"
    FLAG = "flag"


KINDS = {
    Kind.CLOCK: experiments.CLOCK,
    Kind.SEND: experiments.SEND,
    Kind.ISEND: experiments.ISEND,
    Kind.RECEIVE: experiments.UNEXPECTED_RECEIVE,
    Kind.PING_PONG: experiments.ROUNDTRIP,
    Kind.ROW: experiments.SATURATION,
    Kind.EXCHANGE: experiments.SENDRECV,
    Kind.REDUCE: experiments.REDUCE,
    Kind.EAGER: experiments.EAGER_LIMIT,
    Kind.FLAG: "collective",
}
"""The experiment of each kind of point."""

_COLUMNS = ("kind", "first", "second", "pairs", "within_node", "message_bytes", "count", "repetition", "seconds")
_KIND_OF = {experiment: kind for kind, experiment in KINDS.items()}
# A ping-pong returns the message; the other kinds that have a reply return a byte.
_REPLY_BYTES = {Kind.SEND: 1, Kind.ISEND: 1, Kind.ROW: 1}

# For a normal distribution, the distance of its quartiles in standard deviations, and the standard error of the median
# divided by that of the mean.
_QUARTILES_APART, _MEDIAN_TO_MEAN = 1.349, 1.2533


@dataclass(frozen=True)
class CalibrationPoint:
    """All repetitions of one measurement between ranks `first` and `second`; `pairs` pairs measure at the same time.

    `seconds` has one time for each repetition, as the experiment of the kind measures it; for a row of `count`
    messages, a time covers all of these messages and the answer. For kind 'eager', `message_bytes` is the eager limit
    that was found, or 0 if none was found, and `seconds` has no meaning. A point of kind 'flag' is a whole broadcast.
    """

    kind: Kind
    first: int
    second: int
    pairs: int
    within_node: bool
    message_bytes: int
    count: int
    seconds: tuple[float, ...]

    @property
    def median_seconds(self) -> float:
        """The median of the repetitions."""
        return statistics.median(self.seconds)

    @property
    def relative_error(self) -> float:
        """The median's standard error relative to the median, from quartiles of assumed normal times.

        The result is 0 for one repetition.
        """
        if len(self.seconds) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        deviation = (high - low) / _QUARTILES_APART
        return _MEDIAN_TO_MEAN * deviation / math.sqrt(len(self.seconds)) / max(self.median_seconds, 1e-9)


def case_of_kind(
    kind: Kind,
    processes: tuple[int, ...],
    processes_per_node: int,
    message_bytes: int,
    count: int = 1,
    delay_seconds: float = 0.0,
) -> Case:
    """The case under which the timing table has a measurement between pairs of processes."""
    reply_bytes = message_bytes if kind == Kind.PING_PONG else _REPLY_BYTES.get(kind, 0)
    return case_of(
        Experiment(KINDS[kind], processes, message_bytes, reply_bytes, count, delay_seconds), processes_per_node
    )


def flag_case(processes_per_node: int) -> Case:
    """The case that takes as long as a flag: a byte broadcast through memory that two processes share."""
    return Case("bcast", "tasks_chain", 2, 1, 0, min(WINDOWS), processes_per_node)


def point_of(timing: Timing) -> CalibrationPoint:
    """The calibration point for the timing of a case made by `case_of_kind` or `flag_case`."""
    case = timing.case
    kind = _KIND_OF[case.experiment]
    processes = (0, 1) if kind == Kind.FLAG else processes_of(case)
    first, second = processes[:2]
    within = first // case.processes_per_node == second // case.processes_per_node
    fixed = (kind, first, second, len(processes) // 2, within)
    samples = timing.samples or (timing.seconds,)
    if kind == Kind.EAGER:
        return CalibrationPoint(*fixed, int(samples[0]), case.count, (0.0,))
    return CalibrationPoint(*fixed, case.message_bytes, case.count, samples)


def of_kind(points: Iterable[CalibrationPoint], kind: Kind, *, within_node: bool = False) -> list[CalibrationPoint]:
    """The points of a kind, between nodes or within one, by size."""
    chosen = (point for point in points if point.kind == kind and point.within_node == within_node)
    return sorted(chosen, key=lambda point: (point.message_bytes, point.first, point.second))


def write_points(path: Path, points: Iterable[CalibrationPoint]) -> None:
    """Writes points as CSV, a line for each repetition."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for point in points:
        pair = (point.first, point.second, point.pairs, int(point.within_node))
        fixed = (point.kind, *pair, point.message_bytes, point.count)
        writer.writerows((*fixed, number, repr(seconds)) for number, seconds in enumerate(point.seconds))
    write_text(path, text.getvalue())


def read_points(path: Path) -> list[CalibrationPoint]:
    """The points of a CSV file as `write_points` writes it; further columns are ignored."""
    lines = csv.reader(io.StringIO(read_text(path)), quoting=csv.QUOTE_NONE)
    header = next(lines, [])
    if tuple(header[: len(_COLUMNS)]) != _COLUMNS:
        raise UsageError(f"{path}:1: expected the columns {','.join(_COLUMNS)}, not '{','.join(header)[:80]}'")
    gathered: dict[CalibrationPoint, list[float]] = {}
    for row in lines:
        if row:
            point = _row(f"{path}:{lines.line_num}", header, row)
            gathered.setdefault(replace(point, seconds=()), []).extend(point.seconds)
    if not gathered:
        raise UsageError(f"{path}: no points; expected a line for each repetition below the header")
    return [replace(point, seconds=tuple(seconds)) for point, seconds in gathered.items()]


def _row(where: str, header: list[str], row: list[str]) -> CalibrationPoint:
    """The point of a single line, with one repetition."""
    if len(row) != len(header):
        raise UsageError(f"{where}: {len(row)} fields instead of {len(header)} ({','.join(header)})")
    values = dict(zip(header, row, strict=True))
    if values["kind"] not in KINDS:
        raise UsageError(f"{where}: {unknown_name('kind', values['kind'], KINDS)}")
    whole = {}
    for name in _COLUMNS[1:-1]:
        most = 1 if name == "within_node" else 2**31 - 1
        if not values[name].isascii() or not values[name].isdigit() or int(values[name]) > most:
            raise UsageError(f"{where}: {name} '{values[name]}'; valid: a whole number from 0 to {most}")
        whole[name] = int(values[name])
    try:
        seconds = float(values["seconds"])
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise UsageError(f"{where}: seconds '{values['seconds']}'; valid: a number of seconds, 0 or more")
    pair = (whole["first"], whole["second"], whole["pairs"], bool(whole["within_node"]))
    return CalibrationPoint(Kind(values["kind"]), *pair, whole["message_bytes"], whole["count"], (seconds,))
