"""The formulas of Pješivac-Grbović et al. 2007, tables 1 to 4, as printed; only those that differ from ours."""

from __future__ import annotations

import numpy as np

from collwise.models.collectives.steps import EMPTY_BYTES
from collwise.models.interface import Points
from collwise.models.piecewise import Array
from collwise.models.single_messages import Hockney, HockneyBySize, LogGP, PLogP

AnyHockney = Hockney | HockneyBySize


def _levels(points: Points) -> Array:
    return np.asarray(np.ceil(np.log2(points.procs + 1)) - 1)


def _combining(points: Points) -> Array:
    return np.asarray(points.reduce_seconds_per_byte * points.bytes_each)


def barrier_linear_hockney(points: Points, model: AnyHockney) -> Array:
    """(P - 1) alpha."""
    return np.asarray((points.procs - 1) * model.alpha(EMPTY_BYTES))


def bcast_binary_hockney(points: Points, model: AnyHockney) -> Array:
    """(ceil(log2(P + 1)) + n_s - 2) (2 alpha + m_s beta)."""
    m = points.bytes_each
    return np.asarray((_levels(points) + points.segments - 1) * (model.alpha(m) + model.predict(m)))


def bcast_split_binary_hockney(points: Points, model: AnyHockney) -> Array:
    """(ceil(log2(P + 1)) + ceil(n_s / 2) - 2) (2 alpha + m_s beta) + alpha(m / 2) + m / 2 beta(m / 2)."""
    m = points.bytes_each
    steps = _levels(points) + np.ceil(points.segments / 2) - 1
    return np.asarray(steps * (model.alpha(m) + model.predict(m)) + model.predict(points.message_bytes / 2))


class _LogGPTerms:
    def __init__(self, points: Points, model: LogGP) -> None:
        self.latency, self.overhead, self.gap = model.latency_seconds, model.overhead_seconds, model.gap_seconds
        self.transmission = np.maximum(points.bytes_each - 1, 0) * model.gap_seconds_per_byte


def bcast_binary_loggp(points: Points, model: LogGP) -> Array:
    """(ceil(log2(P + 1)) - 1) (L + 2 (o + (m_s - 1) G + g)) + (n_s - 1) 2 ((m_s - 1) G + g); n_s - 1 is our reading."""
    t = _LogGPTerms(points, model)
    filling = t.latency + 2 * (t.overhead + t.transmission + t.gap)
    return np.asarray(_levels(points) * filling + (points.segments - 1) * 2 * (t.transmission + t.gap))


def bcast_split_binary_loggp(points: Points, model: LogGP) -> Array:
    """d (L + g + 2 (o + (m_s - 1) G)) + 2 (ceil(n_s / 2) - 1) (g + (m_s - 1) G) + L + 2 o + (m / 2 - 1) G."""
    t = _LogGPTerms(points, model)
    filling = _levels(points) * (t.latency + t.gap + 2 * (t.overhead + t.transmission))
    steady = 2 * (np.ceil(points.segments / 2) - 1) * (t.gap + t.transmission)
    return np.asarray(filling + steady + model.predict(points.message_bytes / 2))


def bcast_split_binary_plogp(points: Points, model: PLogP) -> Array:
    """d (L + 2 g) + (n_s / 2 - 1) max{2 g, o_r + g + o_s}, without the exchange. n_s = 1 is read as 2."""
    m = points.bytes_each
    gap, overheads = model.gap(m), model.receive_overhead(m) + model.send_overhead(m)
    steady = np.maximum(points.segments / 2 - 1, 0) * np.maximum(2 * gap, overheads + gap)
    return np.asarray(_levels(points) * (model.latency_seconds + 2 * gap) + steady)


def reduce_linear_loggp(points: Points, model: LogGP) -> Array:
    """o + (m_s - 1) G + L + n_s max{g, (P - 1) (o + (m_s - 1) G + gamma m_s)}."""
    t = _LogGPTerms(points, model)
    all_of_one = (points.procs - 1) * (t.overhead + t.transmission + _combining(points))
    return np.asarray(t.overhead + t.transmission + t.latency + points.segments * np.maximum(t.gap, all_of_one))


def reduce_pipeline_loggp(points: Points, model: LogGP) -> Array:
    """(P - 1) (L + 2 o + (m_s - 1) G + gamma m_s) + (n_s - 1) max{g, 2 o + (m_s - 1) G + gamma m_s}."""
    t = _LogGPTerms(points, model)
    step = 2 * t.overhead + t.transmission + _combining(points)
    return np.asarray((points.procs - 1) * (t.latency + step) + (points.segments - 1) * np.maximum(t.gap, step))


def reduce_binomial_loggp(points: Points, model: LogGP) -> Array:
    """ceil(log2 P) (o + L + n_s ((m_s - 1) G + max{g, o + gamma m_s}))."""
    t = _LogGPTerms(points, model)
    each = t.transmission + np.maximum(t.gap, t.overhead + _combining(points))
    return np.asarray(np.ceil(np.log2(points.procs)) * (t.overhead + t.latency + points.segments * each))


def reduce_binary_loggp(points: Points, model: LogGP) -> Array:
    """d (L + 3 o + (m_s - 1) G + 2 gamma m_s + (n_s - 1) ((m_s - 1) G + max{g, 3 o + 2 gamma m_s})).

    In print the outer bracket ends after the summand with n_s - 1, so d multiplies this summand, too.
    """
    t = _LogGPTerms(points, model)
    busy = 3 * t.overhead + 2 * _combining(points)
    steady = t.transmission + np.maximum(t.gap, busy)
    each_level = t.latency + busy + t.transmission + (points.segments - 1) * steady
    return np.asarray(_levels(points) * each_level)


def _plogp_step(points: Points, model: PLogP, sending: bool = False) -> Array:
    m = points.bytes_each
    busy = model.receive_overhead(m) + _combining(points) + (model.send_overhead(m) if sending else 0.0)
    return np.asarray(np.maximum(model.gap(m), busy))


def reduce_linear_plogp(points: Points, model: PLogP) -> Array:
    """L + (P - 1) n_s max{g, o_r + gamma m_s}."""
    return np.asarray(model.latency_seconds + (points.procs - 1) * points.segments * _plogp_step(points, model))


def reduce_pipeline_plogp(points: Points, model: PLogP) -> Array:
    """(P - 1) (L + max{g, o_r + gamma m_s}) + (n_s - 1) (max{g, o_r + gamma m_s} + o_s)."""
    step = _plogp_step(points, model)
    later = (points.segments - 1) * (step + model.send_overhead(points.bytes_each))
    return np.asarray((points.procs - 1) * (model.latency_seconds + step) + later)


def reduce_binomial_plogp(points: Points, model: PLogP) -> Array:
    """ceil(log2 P) (L + n_s max{g, o_r + gamma m_s + o_s})."""
    each = points.segments * _plogp_step(points, model, sending=True)
    return np.asarray(np.ceil(np.log2(points.procs)) * (model.latency_seconds + each))


def reduce_binary_plogp(points: Points, model: PLogP) -> Array:
    """d (L + 2 max{g, o_r + gamma m_s}) + (n_s - 1) (o_s + 2 max{g, o_r + gamma m_s})."""
    step = 2 * _plogp_step(points, model)
    later = (points.segments - 1) * (step + model.send_overhead(points.bytes_each))
    return np.asarray(_levels(points) * (model.latency_seconds + step) + later)


def _alltoall_messages(points: Points) -> Array:
    """(P - 1) (n_s P + 1 - P / 2), the number of further messages if the processes send one after another."""
    procs = points.procs
    return np.asarray((procs - 1) * (points.segments * procs + 1 - procs / 2))


def alltoall_linear_hockney(points: Points, model: AnyHockney) -> Array:
    """P (alpha + m_s beta) + (P - 1) (n_s P + 1 - P / 2) alpha; the second summand has no beta in print."""
    m = points.bytes_each
    return np.asarray(points.procs * model.predict(m) + _alltoall_messages(points) * model.alpha(m))


def alltoall_linear_loggp(points: Points, model: LogGP) -> Array:
    """P (L + 2 o) + (P - 1) (n_s P + 1 - P / 2) (g + (m_s - 1) G)."""
    t = _LogGPTerms(points, model)
    single = points.procs * (t.latency + 2 * t.overhead)
    return np.asarray(single + _alltoall_messages(points) * (t.gap + t.transmission))


def alltoall_linear_plogp(points: Points, model: PLogP) -> Array:
    """P L + (P - 1) (n_s P + 1 - P / 2) g(m_s)."""
    return np.asarray(points.procs * model.latency_seconds + _alltoall_messages(points) * model.gap(points.bytes_each))
