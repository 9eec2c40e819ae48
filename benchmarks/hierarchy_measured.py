"""The page docs/hierarchy-measured.md, from the report of a comparison on nodes of several processes.

    ./collwise check three-way --testbed --nodes 4 --ppn 4 --rate 50Mbit --output results/hierarchy
    .venv/bin/python benchmarks/hierarchy_measured.py results/hierarchy

Copies the report, and of its figures those of tasks and of all times.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
NAME = "hierarchy-measured"
SHOWN = ("scatter", "overlap-bcast", "trend-bcast", "overlap-allreduce", "trend-allreduce")
HEAD = (
    "# Hierarchical collectives: measured\n\n"
    "<!-- Written by benchmarks/hierarchy_measured.py from a report of `collwise check three-way`; do not edit. -->\n\n"
    "Times on a test bed whose nodes have several processes, beside the same cases simulated (SMPI) and predicted (the "
    "schedule engine) on a platform calibrated there from messages between two processes. "
    "[hierarchy.md](hierarchy.md#measured) says how this was measured, and what it shows.\n"
)
_FIGURE = re.compile(r"\n!\[([^]]*)\]\(validation-([^)]*)\.svg\)\n")


def main() -> int:
    if len(sys.argv) != 2 or not Path(sys.argv[1], "validation.md").exists():
        print(
            "the folder of a report is needed: collwise check three-way --testbed --ppn 4 --output FOLDER",
            file=sys.stderr,
        )
        return 2
    folder = Path(sys.argv[1])
    _, heading, text = (folder / "validation.md").read_text(encoding="utf-8").partition("\n## ")

    def placed(match: re.Match[str]) -> str:
        caption, name = match.groups()
        if name not in SHOWN:
            return ""
        shutil.copyfile(folder / f"validation-{name}.svg", DOCS / "figures" / f"{NAME}-{name}.svg")
        return f"\n![{caption}](figures/{NAME}-{name}.svg)\n"

    (DOCS / f"{NAME}.md").write_text(HEAD + heading + _FIGURE.sub(placed, text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
