"""Prediction of 24 sizes x 1,000 process counts for all algorithms: arrays at once against a loop over points.

.venv/bin/python benchmarks/predict_map.py results/grisou.parameters.toml        # a file that `collwise fit` writes

The exit code is 1 if the maps of all collectives together take longer than the limit.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from commands import min_seconds

from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.parameters import ModelParameters
from collwise.models.registry import BY_PARTS

LIMIT_SECONDS = 0.1
TRIES = 9
# The loop over points uses every STRIDE-th process count.
STRIDE = 100
Points = Sequence[tuple[Any, Any]]
"""Process counts and message sizes, in numbers or arrays."""


def predict(model: ImplementationAware, collective: str, names: Sequence[str], segment: int, points: Points) -> None:
    for name in names:
        for procs, sizes in points:
            model.predict(collective, name, procs, sizes, segment)


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
        predicting = partial(predict, model, collective, names, segment)
        at_once = min_seconds(partial(predicting, [(procs[:, None], sizes[None, :])]), TRIES)
        one_by_one = STRIDE * min_seconds(partial(predicting, list(product(procs[::STRIDE], sizes))), 1)
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
