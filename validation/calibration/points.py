"""Point-to-point measurements as points, and the CSV file that keeps them."""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from collwise.common.errors import UsageError, unknown_name
from collwise.common.files import write_text

CLOCK = "clock"
SEND = "send"
ISEND = "isend"
RECEIVE = "receive"
PING_PONG = "ping_pong"
ROW = "row"
EXCHANGE = "exchange"
REDUCE = "reduce"
EAGER = "eager"
KINDS = (CLOCK, SEND, ISEND, RECEIVE, PING_PONG, ROW, EXCHANGE, REDUCE, EAGER)
"""As programs/calibration.c defines them."""

_COLUMNS = (
    "kind",
    "first",
    "second",
    "pairs",
    "within_node",
    "message_bytes",
    "count",
    "repetition",
    "seconds",
    "send_seconds",
)

# Of the normal distribution: quartiles in standard deviations, and the median's error over the mean's.
_QUARTILES_APART, _MEDIAN_TO_MEAN = 1.349, 1.2533


@dataclass(frozen=True)
class Point:
    """All repetitions of one measurement between ranks `first` and `second`, while `pairs` pairs do the same.

    `seconds` has one time a repetition: what the kind asks for, in a row of `count` messages all of them together,
    with the answer. `send_seconds`, of rows only, is the time in the sends. Of kind 'eager', `message_bytes` is the
    eager limit that was found, 0 if none was, and `seconds` says nothing.
    """

    kind: str
    first: int
    second: int
    pairs: int
    within_node: bool
    message_bytes: int
    count: int
    seconds: tuple[float, ...]
    send_seconds: tuple[float, ...] = ()

    @property
    def median_seconds(self) -> float:
        """Of the repetitions."""
        return statistics.median(self.seconds)

    @property
    def relative_error(self) -> float:
        """The standard error of the median over the median, from the quartiles of the repetitions, as of normal ones.

        0 for a single repetition: simulated time is exact.
        """
        if len(self.seconds) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        deviation = (high - low) / _QUARTILES_APART
        return _MEDIAN_TO_MEAN * deviation / math.sqrt(len(self.seconds)) / max(self.median_seconds, 1e-9)


def of_kind(points: Iterable[Point], kind: str, *, within_node: bool = False) -> list[Point]:
    """The points of a kind, between nodes or within one, by size."""
    chosen = (point for point in points if point.kind == kind and point.within_node == within_node)
    return sorted(chosen, key=lambda point: (point.message_bytes, point.first, point.second))


def write_points(path: Path, points: Iterable[Point]) -> None:
    """Keeps points as CSV, a line a repetition."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for point in points:
        fixed = (
            point.kind,
            point.first,
            point.second,
            point.pairs,
            int(point.within_node),
            point.message_bytes,
            point.count,
        )
        sends: tuple[float | str, ...] = point.send_seconds or ("",) * len(point.seconds)
        for number, (seconds, send_seconds) in enumerate(zip(point.seconds, sends, strict=True)):
            writer.writerow((*fixed, number, repr(seconds), send_seconds and repr(send_seconds)))
    write_text(path, text.getvalue())


def read_points(path: Path) -> list[Point]:
    """The points of a CSV file that `write_points` wrote.

    Raises UsageError that names file and line when something in it is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"{path}: cannot be read: {getattr(problem, 'strerror', None) or 'not text'}") from None
    lines = csv.reader(io.StringIO(text))
    header = next(lines, [])
    if tuple(header) != _COLUMNS:
        raise UsageError(f"{path}:1: columns '{','.join(header)[:80]}'; valid: {','.join(_COLUMNS)}")
    gathered: dict[tuple[str, int, int, int, bool, int, int], list[tuple[float, float | None]]] = {}
    for row in lines:
        if row:
            key, times = _row(f"{path}:{lines.line_num}", row)
            gathered.setdefault(key, []).append(times)
    if not gathered:
        raise UsageError(f"{path}: no points; valid: a line a repetition below the line of columns")
    return [
        Point(*key, tuple(one for one, _ in times), tuple(sent for _, sent in times if sent is not None))
        for key, times in gathered.items()
    ]


def _row(where: str, row: list[str]) -> tuple[tuple[str, int, int, int, bool, int, int], tuple[float, float | None]]:
    if len(row) != len(_COLUMNS):
        raise UsageError(f"{where}: {len(row)} fields; valid: {len(_COLUMNS)}, {','.join(_COLUMNS)}")
    values = dict(zip(_COLUMNS, row, strict=True))
    kind = values["kind"]
    if kind not in KINDS:
        raise UsageError(f"{where}: {unknown_name('kind', kind, KINDS)}")
    whole = {}
    for name in ("first", "second", "pairs", "within_node", "message_bytes", "count", "repetition"):
        most = 1 if name == "within_node" else 2**31 - 1
        if not values[name].isascii() or not values[name].isdigit() or int(values[name]) > most:
            raise UsageError(f"{where}: {name} '{values[name]}'; valid: a whole number from 0 to {most}")
        whole[name] = int(values[name])
    seconds = _seconds(where, "seconds", values["seconds"])
    if (values["send_seconds"] != "") != (kind == ROW):
        raise UsageError(f"{where}: send_seconds '{values['send_seconds']}'; valid: a time for {ROW}, else nothing")
    sent = _seconds(where, "send_seconds", values["send_seconds"]) if kind == ROW else None
    pair = (whole["first"], whole["second"], whole["pairs"])
    key = (kind, *pair, bool(whole["within_node"]), whole["message_bytes"], whole["count"])
    return key, (seconds, sent)


def _seconds(where: str, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise UsageError(f"{where}: {name} '{text}'; valid: a number of seconds, 0 or more")
    return value
