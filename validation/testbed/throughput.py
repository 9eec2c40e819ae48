"""Measures a test bed by plain TCP: rates of streams between nodes, latency, and the load of the processors."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from collwise.common.errors import CollwiseError
from collwise.validation.testbed.bed import Bed

_PROGRAM = Path(__file__).with_name("stream.py")
_PORT = 5001
_START_SECONDS, _START_SECONDS_PER_STREAM = 1.2, 0.1
_PATIENCE_SECONDS = 30.0
_ROUND_TRIPS = 500


@dataclass(frozen=True)
class StreamRates:
    """The payload rate of each stream, bytes/s, and the busy share of all processor time, from 0 to 1."""

    bytes_per_second: tuple[float, ...]
    busy_share: float


def stream_rates(bed: Bed, pairs: Sequence[tuple[int, int]], seconds: float) -> StreamRates:
    """Rates of simultaneous streams from node to node during this many seconds.

    The caller locks the bed. Raises CollwiseError when a stream fails.
    """
    begin = time.monotonic() + _START_SECONDS + _START_SECONDS_PER_STREAM * len(pairs)
    end = begin + seconds
    window = [repr(begin), repr(end)]
    with bed.ended_after():
        ports = [_PORT + number for number in range(len(pairs))]
        receivers = [_start(bed, to, "receive", str(port), *window) for (_, to), port in zip(pairs, ports, strict=True)]
        for (one, to), port in zip(pairs, ports, strict=True):
            _start(bed, one, "send", bed.address(to), str(port), *window)
        before = _processor_seconds(begin)
        after = _processor_seconds(end)
        counts = [float(_output(receiver)) for receiver in receivers]
    busy, total = after[0] - before[0], after[1] - before[1]
    # The sums of a machine that was never idle may differ in their last digits.
    return StreamRates(tuple(count / seconds for count in counts), min(busy / total, 1.0))


def latency_seconds(bed: Bed, one: int, other: int) -> float:
    """One-way latency of a byte by TCP: half the median roundtrip. Raises as `stream_rates` does."""
    with bed.ended_after():
        _start(bed, other, "answer", str(_PORT), str(_ROUND_TRIPS))
        return float(_output(_start(bed, one, "ask", bed.address(other), str(_PORT), str(_ROUND_TRIPS)))) / 2


def _start(bed: Bed, node: int, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["ip", "netns", "exec", bed.namespace(f"n{node}"), sys.executable, "-I", "-S", str(_PROGRAM), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | bed.mark,
    )


def _output(program: subprocess.Popen[str]) -> str:
    try:
        output, errors = program.communicate(timeout=_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        raise CollwiseError(f"test bed: a stream of bytes did not end within {_PATIENCE_SECONDS:g} s") from None
    if program.returncode != 0:
        raise CollwiseError(f"test bed: a stream of bytes failed: {(errors.strip() or 'killed').splitlines()[-1]}")
    return output


def _processor_seconds(when: float) -> tuple[float, float]:
    """The processors' busy time and whole time so far; time that a hypervisor took counts as busy."""
    time.sleep(max(0.0, when - time.monotonic()))
    times = psutil.cpu_times()
    total = sum(times[:8])
    return total - times.idle - times.iowait, total
