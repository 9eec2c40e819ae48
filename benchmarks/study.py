"""Wall time of a study with an empty store, and again with the stored times.

.venv/bin/python benchmarks/study.py [NAME]      # default: nuriyev2021
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from commands import collwise_command, seconds_of

LIMIT_SECONDS = 180


def main() -> int:
    if len(sys.argv) > 2:
        print(__doc__, file=sys.stderr)
        return 2
    name = sys.argv[1] if len(sys.argv) == 2 else "nuriyev2021"
    took = []
    with tempfile.TemporaryDirectory() as folder:
        options = ["-o", str(Path(folder) / "out"), "--store", str(Path(folder) / "store.sqlite")]
        for start in ("with an empty store", "with the stored times"):
            took.append(seconds_of(collwise_command("check", "study", name, *options))[1])
            print(f"{name} {start}: {took[-1]:.1f} s")
    print(f"ratio {took[0] / took[1]:.1f}; the limit is {LIMIT_SECONDS} s with an empty store")
    return 0 if took[0] < LIMIT_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
