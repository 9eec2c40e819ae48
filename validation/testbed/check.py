"""Checks that a test bed is as its shape says, and that its network, not its processors, limits messages."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from collwise.common.errors import CollwiseError
from collwise.simulator.store import Store
from collwise.simulator.sweeps.method import Method, Precision
from collwise.simulator.sweeps.mpi_runner import measure
from collwise.simulator.timing import Case
from collwise.validation.testbed.bed import Bed, busy, temporarily_up
from collwise.validation.testbed.shape import FRAME_BYTES, MTU_BYTES, Shape
from collwise.validation.testbed.target import TestBed

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
    """Rates of simultaneous streams from node to node of a locked bed, each of which lasts `seconds`.

    Raises CollwiseError when a stream fails.
    """
    begin = time.monotonic() + _START_SECONDS + _START_SECONDS_PER_STREAM * len(pairs)
    end = begin + seconds
    window = [repr(begin), repr(end)]
    with bed.ended_after():
        ports = [_PORT + number for number in range(len(pairs))]
        receivers = [_start(bed, to, "receive", str(port), *window) for (_, to), port in zip(pairs, ports, strict=True)]
        for (pair, to), port in zip(pairs, ports, strict=True):
            _start(bed, pair, "send", bed.address(to), str(port), *window)
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
        raise CollwiseError(
            f"test bed: a TCP transfer between two nodes failed: {(errors.strip() or 'killed').splitlines()[-1]}"
        )
    return output


def _processor_seconds(when: float) -> tuple[float, float]:
    """The processors' busy time and whole time so far; time that a hypervisor took counts as busy."""
    time.sleep(max(0.0, when - time.monotonic()))
    times = psutil.cpu_times()
    total = sum(times[:8])
    return total - times.idle - times.iowait, total


RATE_TOLERANCE = SCALING_TOLERANCE = 0.1
"""The largest relative deviation of streams from the shaped rate, and of `Exchange.scaling` from 1."""
# IP and TCP headers, with time stamps.
_PAYLOAD_SHARE = (MTU_BYTES - 52) / FRAME_BYTES
_STREAM_SECONDS = 1.5
# After a stream has filled the buffer in front of a narrower link, it takes a second to recover from its losses.
_ACROSS_SECONDS = 3.0
# Approximate times of one alltoall: much longer than the latency, and short enough for some repetitions.
_EXCHANGE_SECONDS = (0.04, 0.16)
_PRECISION = Precision(8, 8, 0.95, 0.05)


@dataclass(frozen=True)
class Exchange:
    """A pairwise alltoall by Open MPI: bytes per pair, and seconds at the shaped rate and at half of it."""

    message_bytes: int
    seconds: float
    slower_seconds: float

    @property
    def scaling(self) -> float:
        """Time times rate at half the rate, divided by that at full rate: 1 if the network limits, else 0.5."""
        return self.slower_seconds / (2 * self.seconds)


@dataclass(frozen=True)
class BedCheck:
    """TCP payload rates in bytes/s, both measured and expected from the shape; the latency; and times of alltoalls.

    `together` is the sum over simultaneous streams from each node to the next, `busy_share` the busy share of all
    processors' time during these streams, and `across` the rate from one switch to the other, if there are two.
    """

    one_way: float
    one_way_expected: float
    together: float
    together_expected: float
    busy_share: float
    latency_seconds: float
    exchanges: tuple[Exchange, ...]
    across: float | None = None
    across_expected: float | None = None

    @property
    def problems(self) -> list[str]:
        """A line for each failed check; empty when the bed is fit for measurements."""
        rates = [
            ("one stream", self.one_way, self.one_way_expected),
            ("all streams together", self.together, self.together_expected),
            ("a stream between the switches", self.across, self.across_expected),
        ]
        found = [
            f"{what}: {rate / 1e6:.4g} MB/s, {rate / expected:.0%} of the {expected / 1e6:.4g} MB/s of the shape"
            for what, rate, expected in rates
            if rate is not None and expected is not None and abs(rate / expected - 1) > RATE_TOLERANCE
        ]
        found += [
            f"alltoall of {exchange.message_bytes} B: at half the rate, the product of time and rate changes to "
            f"{exchange.scaling:.0%}, so the network is not the only limit"
            for exchange in self.exchanges
            if abs(exchange.scaling - 1) > SCALING_TOLERANCE
        ]
        return found

    @property
    def ok(self) -> bool:
        """True if there are no problems."""
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """All values, by names with units."""
        rates = ("one_way", "one_way_expected", "together", "together_expected", "across", "across_expected")
        document = {f"{name}_bytes_per_second" if name in rates else name: v for name, v in asdict(self).items()}
        scalings = [{**asdict(exchange), "scaling": exchange.scaling} for exchange in self.exchanges]
        return {**document, "exchanges": scalings, "ok": self.ok, "problems": self.problems}


def payload_bytes_per_second(bits_per_second: float) -> float:
    """TCP's payload rate at a shaped rate, which includes headers."""
    return bits_per_second / 8 * _PAYLOAD_SHARE


def check(bed: Bed) -> BedCheck:
    """Measures a test bed, and for comparison a temporary test bed of half the rate. Takes 10 to 20 s.

    Raises UsageError if something runs on the bed, CollwiseError if nothing can be measured.
    """
    shape, last = bed.shape, bed.shape.nodes
    port = payload_bytes_per_second(shape.bits_per_second)
    across_expected = payload_bytes_per_second(min(shape.bits_per_second, shape.uplink_bits_per_second))
    ring = [(node, node % last + 1) for node in bed.nodes]
    crossing = sum(shape.switch_of(one) != shape.switch_of(other) for one, other in ring)
    two = shape.switches == 2
    with busy(bed):
        one_way = stream_rates(bed, [(1, 2)], _STREAM_SECONDS).bytes_per_second[0]
        across = stream_rates(bed, [(1, last)], _ACROSS_SECONDS).bytes_per_second[0] if two else None
        together = stream_rates(bed, ring, _STREAM_SECONDS)
        latency = latency_seconds(bed, 1, 2)
    return BedCheck(
        one_way=one_way,
        one_way_expected=port if shape.switch_of(1) == shape.switch_of(2) else across_expected,
        together=sum(together.bytes_per_second),
        together_expected=port * (last - crossing) + across_expected * crossing,
        busy_share=together.busy_share,
        latency_seconds=latency,
        exchanges=_exchanges(bed),
        across=across,
        across_expected=across_expected if two else None,
    )


def highest_rate(
    shape: Shape,
    rates: Sequence[float],
    name: str,
    on_check: Callable[[float, BedCheck], None],
    measured: Callable[[Bed], BedCheck] = check,
) -> float:
    """The first of `rates` (bits per second) at which a bed of this shape passes its check with a margin.

    The margin is half of SCALING_TOLERANCE. If no rate passes, the last one is taken unchecked. `measured` makes the
    check, and `on_check` gets the rate and the check. Raises the errors of `check`.
    """
    for rate in rates[:-1]:
        with temporarily_up(replace(shape, bits_per_second=rate), name) as bed:
            found = measured(bed)
        on_check(rate, found)
        if found.ok and all(abs(exchange.scaling - 1) <= SCALING_TOLERANCE / 2 for exchange in found.exchanges):
            return rate
    return rates[-1]


def _exchanges(bed: Bed) -> tuple[Exchange, ...]:
    shape = bed.shape
    half = replace(
        shape, bits_per_second=shape.bits_per_second / 2, uplink_bits_per_second=shape.uplink_bits_per_second / 2
    )
    sizes = [_message_bytes(shape, seconds) for seconds in _EXCHANGE_SECONDS]
    times = _exchange_seconds(bed, sizes)
    with temporarily_up(half, f"{bed.name}-half") as slower:
        slower_times = _exchange_seconds(slower, sizes)
    return tuple(Exchange(*row) for row in zip(sizes, times, slower_times, strict=True))


def _message_bytes(shape: Shape, seconds: float) -> int:
    """Bytes per pair that keep the narrowest link busy for about this many seconds."""
    per_node, procs = shape.ranks_per_node, shape.nodes * shape.ranks_per_node
    through_port = per_node * (procs - per_node) / payload_bytes_per_second(shape.bits_per_second)
    if shape.switches == 1:
        return max(1, int(seconds / through_port))
    first = sum(shape.switch_of(node) == 1 for node in range(1, shape.nodes + 1)) * per_node
    through_uplink = first * (procs - first) / payload_bytes_per_second(shape.uplink_bits_per_second)
    return max(1, int(seconds / max(through_port, through_uplink)))


def _exchange_seconds(bed: Bed, sizes: list[int]) -> list[float]:
    per_node = bed.shape.ranks_per_node
    procs = bed.shape.nodes * per_node
    cases = [Case("alltoall", "pairwise", procs, size, 0, processes_per_node=per_node) for size in sizes]
    with Store(":memory:") as store:
        timings = measure(TestBed(bed), cases, store, method=Method(precision=_PRECISION), timeout_seconds=60.0)
    return [timing.seconds for timing in timings]
