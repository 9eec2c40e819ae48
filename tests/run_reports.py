"""Reports of libcollwise in JSON, as it writes them."""

from __future__ import annotations

import json
from typing import Any


def calls_of(collective: str, processes: int, ran: str, sizes: tuple[int, int] | None, calls: int) -> dict[str, Any]:
    """The row of such calls; `ran` is 'NAME PARAMETERS', or "MPI's own: " with the reason."""
    own, _, reason = ran.partition(": ")
    name, _, parameters = own.partition(" ")
    least, most = sizes or (None, None)
    return {
        "collective": collective,
        "communicator": "MPI_COMM_WORLD",
        "ranks": f"0-{processes - 1}",
        "processes": processes,
        "processes_per_node": 1,
        **({"mpis_own": reason} if reason else {"algorithm": name, "parameters": parameters}),
        "min_bytes": least,
        "max_bytes": most,
        "mean_bytes": None if least is None or most is None else (least + most + 1) / 2,
        "calls": calls,
        "seconds": 0.1,
        "shortest_seconds": 0.1,
        "longest_seconds": 0.2,
    }


def report(processes: int, *rows: dict[str, Any]) -> str:
    """The text of a report."""
    return json.dumps({"collwise_report": 1, "processes": processes, "seconds": 1.5, "rows": rows})


OF_AN_APPLICATION = report(
    8,
    calls_of("bcast", 8, "MPI's own: no rule", (131072, 262143), 5),
    calls_of("allreduce", 8, "MPI's own: the rule says default", (512, 1023), 30),
    calls_of("barrier", 4, "bruck", (0, 0), 2),
    calls_of("reduce", 8, "binomial", (8, 15), 18),
    calls_of("gatherv", 8, "MPI's own: no rule", (0, 0), 1),
    calls_of("bcast", 1, "MPI's own: one process", (512, 1023), 5),
    calls_of("iallreduce", 8, "MPI's own: non-blocking", None, 4),
)
