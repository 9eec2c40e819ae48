"""How far several runs of `check three-way` agree: the range of every score over the runs, and of measured times.

    ./collwise check three-way --testbed --quick --no-models --rate 50Mbit --store 1.sqlite --json > 1.json
    (the same later, with another store, into 2.json and 3.json)
    .venv/bin/python benchmarks/validation_runs.py 1.json 2.json 3.json
    .venv/bin/python benchmarks/validation_runs.py "4 nodes=4.json" "25 Mbit/s=25.json"

Each run needs a store of its own, since stored times are not measured again. The table is Markdown; runs without a name
are numbered. Measured times are compared where two runs have the same cases on the same test bed.
"""

from __future__ import annotations

import json
import statistics
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

from collwise.studies.reports.markdown import markdown_table, percent

SOURCES = {"schedule": "schedule engine", "simulated": "SMPI"}
FROM_BYTES = 8192
Run = dict[str, Any]


def main() -> int:
    if len(sys.argv) < 3:
        print("at least two files that `collwise check three-way --json` wrote are needed", file=sys.stderr)
        return 2
    given = [text.rpartition("=") for text in sys.argv[1:]]
    documents = [json.loads(Path(file).read_text(encoding="utf-8")) for _, _, file in given]
    runs = [document["facts"] | {"rows": document["rows"]} for document in documents]
    columns = ("quantity", *(name or f"run {number}" for number, (name, _, _) in enumerate(given, 1)))
    rows = []
    for source, title in SOURCES.items():
        for least, suffix in ((0, ""), (FROM_BYTES, ", from 8 KiB")):
            scores = [values(run, source, least) for run in runs]
            for quantity in scores[0]:
                rows.append((f"{title}{suffix}: {quantity}", *(percent(score[quantity]) for score in scores)))
    print(markdown_table(columns, rows, left=1), end="")
    for first, second in combinations(range(len(runs)), 2):
        if same := agreement(runs[first], runs[second]):
            print(f"\nRuns {first + 1} and {second + 1}: {same}")
    return 0


def values(run: Run, source: str, min_bytes: int) -> dict[str, float]:
    """The scores of one source over the cases whose message has at least so many bytes, as shares of 1."""
    errors = [
        abs(row["predicted"][source] / row["seconds"] - 1)
        for row in run["rows"]
        if row["point"]["message_bytes"] >= min_bytes
    ]
    slowdowns = [
        row["slowdown"]
        for row in run["slowdowns"]
        if row["source"] == source and row["point"]["message_bytes"] >= min_bytes
    ]
    return {
        "median error": statistics.median(errors),
        "mean error": statistics.fmean(errors),
        "mean slowdown of picks": statistics.fmean(slowdowns),
        "worst slowdown of picks": max(slowdowns),
    }


def agreement(one: Run, other: Run) -> str:
    """How far the measured times of two runs differ; empty where they have no case in common."""
    seconds = {_case(row): row["seconds"] for row in one["rows"]}
    differences = sorted(
        abs(row["seconds"] / seconds[_case(row)] - 1) for row in other["rows"] if _case(row) in seconds
    )
    if not differences:
        return ""
    within = sum(difference <= 0.05 for difference in differences)
    return (
        f"the measured times of {len(differences)} cases differ by {percent(statistics.median(differences))} in the "
        f"median and {percent(statistics.fmean(differences))} on average; {within} of them by at most 5 %."
    )


def _case(row: Run) -> tuple[str | int, ...]:
    return (*row["point"].values(), row["algorithm"])


if __name__ == "__main__":
    sys.exit(main())
