"""The procedures that fit point-to-point models, by family and name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from collwise.common.errors import UsageError, check_name
from collwise.common.experiments import Laboratory
from collwise.models.fitting.hockney import (
    REGRESSION_SIZES,
    hockney_by_regression,
    hockney_by_size,
    hockney_by_two_sizes,
)
from collwise.models.fitting.lmo import STRIDE_BYTES, fit_thresholds, lmo_by_triplets
from collwise.models.fitting.loggp import DOUBLING, LARGE_BYTES, Doubling, culler_loggp, hoefler_loggp, with_further_gap
from collwise.models.fitting.plogp import fitted_plogp, kielmann_heterogeneous_plogp, kielmann_plogp
from collwise.models.fitting.regression import SIZES, Sizes
from collwise.models.fitting.rounds import Pair, with_effort
from collwise.models.parameters import FittedParameters, Parameters
from collwise.models.single_messages import LMO, LogGP, PLogP

WITH_GAP = ("logp", "loggp", "plogp")
"""The families that have a gap, which may depend on the number of receivers."""
# Homogeneous models are averages over this many processes; more would change nothing if all nodes are equal.
HOMOGENEOUS_PROCS = 6
# With more processes than this, each is paired with its successor only.
_ALL_PAIRS_PROCS = 4


@dataclass(frozen=True)
class Detail:
    """The detail in which procedures measure; more detail also shows more of the bends that noise makes.

    Functions of the size are measured at `sizes`, straight lines at `line_sizes`, LMO's thresholds with the strides.
    """

    sizes: Sizes = SIZES
    line_sizes: Sizes = REGRESSION_SIZES
    doubling: Doubling = DOUBLING
    stride_bytes: int = STRIDE_BYTES
    finest_stride_bytes: int = 1


CLOSE = Detail()
"""The papers' detail, for simulated time."""

QUICK = Detail(
    Sizes(largest_bytes=1 << 19, max_count=14, tolerance=0.1, min_step_bytes=4096),
    Sizes(smallest_bytes=1024, largest_bytes=102400, max_count=9, tolerance=0.1),
    Doubling(first=50, change=0.05, max_count=400, max_bytes=1 << 23),
    stride_bytes=8192,
    finest_stride_bytes=2048,
)
"""The detail for measured time, since real networks are slow, and their noise exceeds a few per cent."""


@dataclass(frozen=True)
class FitRequest:
    """The family of models to fit, and the procedure.

    Parameters may differ by pair and processor (`heterogeneous`), and the gap by number of receivers (`by_receivers`).
    """

    family: str
    procedure: str
    heterogeneous: bool = False
    by_receivers: bool = False


@dataclass(frozen=True)
class FitProcedure:
    """A procedure that fits a family of models.

    `run` takes a laboratory, the detail and `pairs`, and returns means over these pairs. Unless the procedure is
    `means_only`, `run` also takes `heterogeneous=True` instead of `pairs`, and then returns parameters of every pair.
    """

    what: str
    run: Callable[..., Parameters]
    means_only: bool = False
    notes: tuple[str, ...] = ()

    def fit(self, lab: Laboratory, detail: Detail = CLOSE, heterogeneous: bool = False) -> Parameters:
        """The parameters, from experiments in the laboratory. Raises UsageError if there is no `heterogeneous` form."""
        if not heterogeneous:
            return self.run(lab, detail, pairs=sample_pairs(lab.procs))
        if self.means_only:
            raise UsageError(f"the procedure has no heterogeneous form: {self.what}")
        return self.run(lab, detail, heterogeneous=True)


def _kielmann(lab: Laboratory, detail: Detail, pairs: Sequence[Pair], saturate: bool = False) -> PLogP:
    return kielmann_plogp(lab, detail.sizes, pairs, detail.doubling, saturate)


def _plogp(
    lab: Laboratory, detail: Detail, pairs: Sequence[Pair] = (), heterogeneous: bool = False, saturate: bool = False
) -> Parameters:
    if heterogeneous:
        return kielmann_heterogeneous_plogp(lab, detail.sizes, detail.doubling, saturate)
    return _kielmann(lab, detail, pairs, saturate)


def _fitted_plogp(lab: Laboratory, detail: Detail, pairs: Sequence[Pair]) -> PLogP:
    return fitted_plogp(lab, _kielmann(lab, detail, pairs))


def _lmo(lab: Laboratory, detail: Detail, pairs: Sequence[Pair] = (), heterogeneous: bool = False) -> LMO:
    parameters = lmo_by_triplets(lab, fit_thresholds(lab, detail.stride_bytes, detail.finest_stride_bytes))
    return parameters if heterogeneous else parameters.homogeneous()


def _large_bytes(lab: Laboratory) -> int:
    """64 KiB, or half of the eager limit if that is smaller, so that experiments use only one protocol."""
    return max(lab.min_bytes + 1, min(LARGE_BYTES, lab.eager_limit_bytes // 2))


PROCEDURES: Mapping[str, Mapping[str, FitProcedure]] = {
    "hockney": {
        "regression": FitProcedure(
            "least squares over roundtrips of adaptively chosen sizes",
            lambda lab, detail, **pairs: hockney_by_regression(lab, detail.line_sizes, **pairs),
        ),
        "two-sizes": FitProcedure(
            "roundtrips with empty and with large messages",
            lambda lab, detail, **pairs: hockney_by_two_sizes(lab, _large_bytes(lab), **pairs),
        ),
    },
    "hockney_by_size": {
        "roundtrips": FitProcedure(
            "alpha and beta of the line between neighbouring sizes",
            lambda lab, detail, pairs: hockney_by_size(lab, detail.sizes, pairs),
            means_only=True,
        )
    },
    "logp": {
        "culler": FitProcedure(
            "send time, delayed receive, saturation",
            lambda lab, detail, **pairs: culler_loggp(lab, doubling=detail.doubling, large_messages=False, **pairs),
        )
    },
    "loggp": {
        "culler": FitProcedure(
            "send time, delayed receive, saturation with small and large messages",
            lambda lab, detail, **pairs: culler_loggp(lab, doubling=detail.doubling, **pairs),
        ),
        "hoefler": FitProcedure(
            "parametrised roundtrips PRTT(n, d, m)",
            lambda lab, detail, **pairs: hoefler_loggp(lab, **pairs),
            notes=("one overhead for sending and receiving: the procedure cannot tell them apart",),
        ),
        "kielmann": FitProcedure(
            "from PLogP as Kielmann measures it",
            lambda lab, detail, pairs: _kielmann(lab, detail, pairs).as_loggp(lab.min_bytes),
            means_only=True,
        ),
        "fitted": FitProcedure(
            "from PLogP as fitted to the chain broadcast and the linear barrier",
            lambda lab, detail, pairs: _fitted_plogp(lab, detail, pairs).as_loggp(lab.min_bytes),
            means_only=True,
        ),
    },
    "plogp": {
        "kielmann": FitProcedure("one saturation, then two roundtrips per size, sizes chosen adaptively", _plogp),
        "saturation": FitProcedure("as kielmann, with a saturation at every size", partial(_plogp, saturate=True)),
        "fitted": FitProcedure(
            "gap and latency fitted to the chain broadcast and the linear barrier", _fitted_plogp, means_only=True
        ),
    },
    "lmo": {"triplets": FitProcedure("roundtrips, one-to-two experiments, scatter and gather series", _lmo)},
}
"""The procedures by family and name; the first of a family is its default."""


def request(
    family: str, procedure: str | None = None, heterogeneous: bool | None = False, by_receivers: bool = False
) -> FitRequest:
    """A request for the family's procedure of that name, by default the first.

    If `heterogeneous` is None, the heterogeneous form is used if the procedure has one.
    """
    check_name("model", family, PROCEDURES)
    name = procedure or next(iter(PROCEDURES[family]))
    check_name(f"procedure for {family}", name, PROCEDURES[family])
    can = not PROCEDURES[family][name].means_only and not by_receivers
    if by_receivers and family not in WITH_GAP:
        raise UsageError(f"{family} has no gap that could depend on receivers; valid: {', '.join(WITH_GAP)}")
    if by_receivers and heterogeneous:
        raise UsageError("a gap by the number of receivers has no heterogeneous form; leave out --heterogeneous")
    if heterogeneous and not can:
        others = [
            f"{family} by {other}"
            for other, fit_procedure in PROCEDURES[family].items()
            if not fit_procedure.means_only
        ]
        valid = f"valid: {', '.join(others)}" if others else "leave out --heterogeneous"
        raise UsageError(f"{family} by {name} has no heterogeneous form; {valid}")
    return FitRequest(family, name, can if heterogeneous is None else heterogeneous, by_receivers)


def max_useful_procs(wanted: FitRequest, available: int, alike: bool = True) -> int:
    """The default number of processes in experiments: all if processes differ, otherwise at most HOMOGENEOUS_PROCS."""
    few = alike and not wanted.heterogeneous and not wanted.by_receivers
    return min(available, HOMOGENEOUS_PROCS) if few else available


def fit(
    wanted: FitRequest,
    lab: Laboratory,
    platform: str,
    made_by: str,
    reduce_seconds_per_byte: float = 0.0,
    detail: Detail = CLOSE,
) -> FittedParameters:
    """Runs the procedure. Raises UsageError for fewer than 2 processes (LMO, `by_receivers`: 3), and its errors."""
    least = 3 if wanted.family == "lmo" or wanted.by_receivers else 2
    if lab.procs < least:
        raise UsageError(f"{wanted.family} by {wanted.procedure} needs at least {least} processes, not {lab.procs}")
    procedure = PROCEDURES[wanted.family][wanted.procedure]

    def estimate() -> Parameters:
        found = procedure.fit(lab, detail, wanted.heterogeneous)
        return with_further_gap(lab, found) if wanted.by_receivers else found  # type: ignore[type-var]

    parameters, effort = with_effort(lab, estimate)
    notes = (*procedure.notes, *_remarks(parameters))
    return FittedParameters(
        family=wanted.family,
        procedure=wanted.procedure,
        platform=platform,
        made_by=made_by,
        procs=lab.procs,
        eager_limit_bytes=lab.eager_limit_bytes,
        reduce_seconds_per_byte=reduce_seconds_per_byte,
        parameters=parameters,
        measurements=effort.measurements,
        seconds=effort.seconds,
        notes=notes,
    )


def _remarks(parameters: Parameters) -> tuple[str, ...]:
    if isinstance(parameters, LogGP) and np.any(np.asarray(parameters.latency_seconds) < 0):
        return (
            "L (latency_seconds) is negative: the overheads measured are more than half of a roundtrip, for instance "
            "because a receiver must be woken up first; only sums such as L + o_s + o_r mean anything",
        )
    if not isinstance(parameters, LMO) or not np.any(np.asarray(parameters.network_seconds_per_byte) < 0):
        return ()
    return (
        "1/beta (network_seconds_per_byte) is negative where messages of one sender share its link: t then holds the "
        "link's time, and only the sums that predictions use are meaningful (docs/models.md)",
    )


def sample_pairs(procs: int) -> list[Pair]:
    """All pairs if there are few processes; otherwise each process with its successor, so that all count equally."""
    if procs <= _ALL_PAIRS_PROCS:
        return [(i, j) for i in range(procs) for j in range(i + 1, procs)]
    return [(i, (i + 1) % procs) for i in range(procs)]
