"""What Luo et al. 2020 (HAN) publish in numbers: the speed-ups and shares that their text and tables state.

X. Luo et al., "HAN: a Hierarchical AutotuNed Collective Communication Framework", IEEE Cluster 2020. The curves of
figures 2 to 4 and 6 to 15 are pictures only.
"""

from __future__ import annotations

from dataclasses import dataclass

KIB, MIB = 2**10, 2**20

SMALL, LARGE = "small", "large"
SMALL_BYTES = 128 * KIB
"""Section IV-A: small messages are those up to 128 KB, large ones up to 128 MB."""
LARGEST_BYTES = 128 * MIB

OPENMPI, CRAY, INTEL, MVAPICH2 = "Open MPI 4.0.0", "Cray MPI 7.7.0", "Intel MPI 18.0.2", "MVAPICH2 2.3.1"


@dataclass(frozen=True)
class SpeedUp:
    """What section IV-A says of the greatest speed-up of HAN over a library among small or large messages."""

    figure: int
    machine: str
    collective: str
    sizes: str
    over: str
    words: str


SPEED_UPS = (
    SpeedUp(10, "shaheen-ii", "bcast", SMALL, OPENMPI, "up to 4.72x"),
    SpeedUp(10, "shaheen-ii", "bcast", LARGE, OPENMPI, "up to 7.35x"),
    SpeedUp(10, "shaheen-ii", "bcast", SMALL, CRAY, "slightly slower"),
    SpeedUp(10, "shaheen-ii", "bcast", LARGE, CRAY, "up to 2.32x"),
    SpeedUp(12, "stampede2", "bcast", SMALL, INTEL, "up to 1.15x"),
    SpeedUp(12, "stampede2", "bcast", SMALL, MVAPICH2, "up to 2.28x"),
    SpeedUp(12, "stampede2", "bcast", SMALL, OPENMPI, "up to 5.35x"),
    SpeedUp(12, "stampede2", "bcast", LARGE, INTEL, "up to 1.39x"),
    SpeedUp(12, "stampede2", "bcast", LARGE, MVAPICH2, "up to 3.83x"),
    SpeedUp(12, "stampede2", "bcast", LARGE, OPENMPI, "up to 1.73x"),
    SpeedUp(13, "shaheen-ii", "allreduce", SMALL, OPENMPI, "significant improvement"),
    SpeedUp(13, "shaheen-ii", "allreduce", LARGE, OPENMPI, "significant improvement"),
    SpeedUp(13, "shaheen-ii", "allreduce", SMALL, CRAY, "slower, up to 2 MB"),
    SpeedUp(13, "shaheen-ii", "allreduce", LARGE, CRAY, "up to 1.12x, from 2 MB on"),
    SpeedUp(14, "stampede2", "allreduce", SMALL, OPENMPI, "significant improvement"),
    SpeedUp(14, "stampede2", "allreduce", LARGE, OPENMPI, "significant improvement"),
    SpeedUp(14, "stampede2", "allreduce", SMALL, INTEL, "slower, up to 4 MB"),
    SpeedUp(14, "stampede2", "allreduce", SMALL, MVAPICH2, "slower, up to 4 MB"),
    SpeedUp(14, "stampede2", "allreduce", LARGE, INTEL, "fastest from 4 MB on"),
    SpeedUp(14, "stampede2", "allreduce", LARGE, MVAPICH2, "fastest from 4 to 64 MB, then similar"),
)

TABLE_1 = {
    "n": "number of nodes",
    "p": "number of processes per node",
    "m": "message size",
    "t": "type of collective operation",
}
"""The inputs of autotuning."""

TABLE_2 = {
    "fs": "segment size in the HAN module",
    "imod": "submodule used between nodes",
    "smod": "submodule used within a node",
    "ibalg": "algorithm of the broadcast between nodes",
    "iralg": "algorithm of the reduction between nodes",
    "ibs": "segment size of the broadcast between nodes",
    "irs": "segment size of the reduction between nodes",
}
"""The outputs of autotuning."""

SEARCH_COST_PERCENT = {
    "exhaustive": 100.0,
    "exhaustive with heuristics": 26.8,
    "task-based": 23.0,
    "task-based with heuristics": 4.3,
}
"""Figure 8 and section III-C: the time of a search of broadcast and allreduce on 64 nodes of 12 processes."""


BEST_OF_4_MB = {
    "bcast": (128 * KIB, "binary tree, ADAPT"),
    "allreduce": (MIB, "binary tree, ADAPT; SOLO within nodes"),
}
"""The segment size and algorithm for 4 MB that the cost model and the measurements agree on (figures 4 and 7)."""

TABLE_3_COMMUNICATION_PERCENT = {"HAN": 46.41, INTEL: 50.24, MVAPICH2: 69.29, OPENMPI: 81.77}
"""ASP with a matrix of 1M on 1536 processes of Stampede2: the share of communication in the first 1536 iterations."""
TABLE_3_SPEED_UP = {INTEL: 1.08, MVAPICH2: 1.8, OPENMPI: 2.43}
"""The overall speed-up of HAN in ASP."""
FIGURE_15_PERCENT = {OPENMPI: 24.30, INTEL: 9.05}
"""How much faster AlexNet is trained by Horovod with HAN on 1536 processes of Stampede2."""
