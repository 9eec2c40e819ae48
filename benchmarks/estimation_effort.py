"""Effort of each estimation procedure on 16 simulated nodes: measurements, simulated seconds, and seconds to simulate.

.venv/bin/python benchmarks/estimation_effort.py [PLATFORM]      # default: hcl16, on which every pair is measured
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from collwise.models.fitting.procedures import PROCEDURES, request
from collwise.platforms import load
from collwise.simulator.bench import Simulated
from collwise.simulator.store import Store
from collwise.validation.fitting.models_by_name import SimulationContext, parameters_on


def main() -> int:
    if len(sys.argv) > 2:
        print(__doc__, file=sys.stderr)
        return 2
    platform = load(sys.argv[1] if len(sys.argv) == 2 else "hcl16")
    procs = len(platform.hosts)
    print(f"{platform.name}, {procs} nodes")
    print(f"{'model':16} {'procedure':12} {'parameters':12} {'measurements':>12} {'simulated (s)':>13} {'wall (s)':>9}")
    for family, procedures in PROCEDURES.items():
        for name in procedures:
            wanted = request(family, name, heterogeneous=None if platform.heterogeneous else False)
            with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "timings.sqlite") as store:
                started = time.perf_counter()
                fitted = parameters_on(Simulated(platform, SimulationContext(store)), wanted, procs)
                wall = time.perf_counter() - started
            kind = "of each pair" if wanted.heterogeneous else "means"
            print(f"{family:16} {name:12} {kind:12} {fitted.measurements:12} {fitted.seconds:13.3f} {wall:9.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
