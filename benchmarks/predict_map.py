"""Prediction of 24 sizes x 1,000 process counts for all algorithms: arrays at once against a loop over points.

.venv/bin/python benchmarks/predict_map.py results/grisou.parameters.toml        # a file that `collwise fit` writes

The exit code is 1 if the maps of all collectives together take longer than the limit.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.implementation_aware.parameters import ModelParameters
from collwise.models.registry import BY_PARTS

LIMIT_SECONDS = 0.1
TRIES = 9
# The loop over points uses every STRIDE-th process count.
STRIDE = 100


def least_seconds(work: Callable[[], object], tries: int) -> float:
    """The least processor time of several tries; other programs on the machine hardly change it."""
    took = []
    for _ in range(tries):
        started = time.process_time()
        work()
        took.append(time.process_time() - started)
    return min(took)


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    parameters = ModelParameters.load(sys.argv[1])
    model = ImplementationAware(parameters, BY_PARTS)
    procs = np.arange(1, 1001)
    sizes = 2.0 ** np.arange(24)
    total = 0.0
    for collective in parameters.fits[BY_PARTS]:
        names = model.algorithms(collective)
        segment = parameters.segment_bytes if collective == "bcast" else 0

        def predict_map(names: tuple[str, ...] = names, collective: str = collective, segment: int = segment) -> None:
            for name in names:
                model.predict(collective, name, procs[:, None], sizes[None, :], segment)

        def predict_points(
            names: tuple[str, ...] = names, collective: str = collective, segment: int = segment
        ) -> None:
            for name in names:
                for p in procs[::STRIDE]:
                    for m in sizes:
                        model.predict(collective, name, p, m, segment)

        at_once = least_seconds(predict_map, TRIES)
        one_by_one = STRIDE * least_seconds(predict_points, 1)
        total += at_once
        points = len(procs) * len(sizes) * len(names)
        print(
            f"{collective}: {points} predictions ({len(procs)} x {len(sizes)} x {len(names)} algorithms) in "
            f"{at_once:.4f} s at once; point by point about {one_by_one:.1f} s, ratio {one_by_one / at_once:.0f}"
        )
    print(f"all maps: {total:.4f} s; the limit is {LIMIT_SECONDS:g} s")
    return 0 if total < LIMIT_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
