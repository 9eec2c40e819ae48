"""Predicting a decision map of 24 sizes x 1,000 process counts x all algorithms at once, against a loop over points.

.venv/bin/python benchmarks/predict_map.py results/grisou.parameters.toml
"""

from __future__ import annotations

import sys
import time

import numpy as np

from collwise.models.implementation_aware.parameters import ModelParameters


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    parameters = ModelParameters.load(sys.argv[1])
    procs = np.arange(2, 1002)
    sizes = 2.0 ** np.arange(24)
    for collective in ("bcast", "gather"):
        names = parameters.algorithms("by_parts", collective)

        def predict_map(names: tuple[str, ...] = names, collective: str = collective) -> list[np.ndarray]:
            return [parameters.predict(collective, name, procs[:, None], sizes[None, :]) for name in names]

        predict_map()
        started = time.perf_counter()
        predict_map()
        at_once = time.perf_counter() - started
        started = time.perf_counter()
        for name in names:
            for p in procs[::100]:
                for m in sizes:
                    parameters.predict(collective, name, p, m)
        one_by_one = (time.perf_counter() - started) * 100
        points = len(procs) * len(sizes) * len(names)
        print(
            f"{collective}: {points} predictions ({len(procs)} x {len(sizes)} x {len(names)} algorithms) in "
            f"{at_once:.4f} s at once; point by point about {one_by_one:.1f} s, ratio {one_by_one / at_once:.0f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
