"""Message times in SMPI on generated XML agree with closed formulas. SMPIRUN and SMPICC select another SimGrid."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from collwise.platforms import Calibration, Platform, load_description
from collwise.platforms.smpi import charges_overheads
from tests.needs import needs

pytestmark = needs("smpi")

_ENVELOPE_BYTES = 16
_PLAIN = replace(load_description("grisou"), calibration=Calibration(), link_bytes_per_second=1.25e9)

# The second round of each exchange is timed: in it the receiver waits for the sender.
_PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double ping_pong(int rank, char *buffer, int bytes) {
    double start = 0.0;
    for (int round = 0; round < 2; round++) {
        start = MPI_Wtime();
        if (rank == 0)
            MPI_Send(buffer, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(buffer, bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - start) / 2;
}

static double exchange(int rank, char *buffer, int bytes) {
    double start = 0.0;
    for (int round = 0; round < 2; round++) {
        start = MPI_Wtime();
        MPI_Sendrecv(buffer, bytes, MPI_CHAR, 1 - rank, 0, buffer + bytes, bytes, MPI_CHAR, 1 - rank, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return MPI_Wtime() - start;
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i < argc; i++) {
        int bytes = atoi(argv[i]);
        char *buffer = calloc(2, bytes + 1);
        double one_way = ping_pong(rank, buffer, bytes);
        double both_ways = exchange(rank, buffer, bytes);
        if (rank == 0)
            printf("%.12e %.12e\n", one_way, both_ways);
        free(buffer);
    }
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("smpi")
    (folder / "messages.c").write_text(_PROGRAM)
    subprocess.run(["smpicc", "-O1", "messages.c", "-o", "messages"], cwd=folder, check=True, capture_output=True)
    return folder / "messages"


def _times(program: Path, platform: Platform, per_node: int, sizes: list[int]) -> dict[int, tuple[float, float]]:
    """Seconds of a message and of an exchange of two, by bytes, between ranks 0 and 1."""
    folder = program.parent
    (folder / "platform.xml").write_text(platform.xml_text())
    (folder / "hosts").write_text("\n".join(platform.hosts_for(2, per_node)) + "\n")
    command = ["smpirun", "-np", "2", "-platform", "platform.xml", "-hostfile", "hosts"]
    options = ["--cfg=smpi/simulate-computation:no", "--cfg=smpi/wtime:0", "--log=root.thresh:warning"]
    done = subprocess.run(
        [*command, *options, str(program), *map(str, sizes)], cwd=folder, capture_output=True, text=True, check=True
    )
    rows = [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
    return {size: (row[0], row[1]) for size, row in zip(sizes, rows, strict=True)}


@pytest.mark.parametrize("name", ["grisou", "gros"])
def test_between_nodes(program: Path, name: str) -> None:
    platform = replace(load_description(name), calibration=Calibration())
    latency = 2 * platform.link_latency_seconds
    for size, (one_way, both_ways) in _times(program, platform, 1, [0, 1, 8192, 65535, 65536, 4194304]).items():
        seconds = (size + _ENVELOPE_BYTES) / platform.link_bytes_per_second
        assert one_way == pytest.approx(latency + seconds, rel=1e-6)
        # Each direction also carries 5 % of the other flow.
        assert both_ways == pytest.approx(latency + 1.05 * seconds, rel=1e-6)


def test_within_a_node(program: Path) -> None:
    for size, (one_way, both_ways) in _times(program, _PLAIN, 2, [0, 8192, 1048576]).items():
        seconds = (size + _ENVELOPE_BYTES) / _PLAIN.loopback_bytes_per_second
        expected = _PLAIN.loopback_latency_seconds + seconds
        assert (one_way, both_ways) == pytest.approx((expected, expected), rel=1e-6)


def test_the_backbone_limits_flows_one_by_one(program: Path) -> None:
    platform = replace(_PLAIN, backbone_bytes_per_second=1e9, backbone_latency_seconds=3e-6)
    ((one_way, both_ways),) = _times(program, platform, 1, [1000000]).values()
    expected = 2 * platform.link_latency_seconds + 3e-6 + (1000000 + _ENVELOPE_BYTES) / 1e9
    assert one_way == pytest.approx(expected, rel=1e-6)
    assert both_ways == pytest.approx(expected, rel=1e-6)


def test_the_calibration_holds_from_its_exact_sizes_on(program: Path) -> None:
    eager_limit = 3000
    calibration = Calibration(
        latency_factor=((0, 1.0), (1000, 3.0)),
        bandwidth_factor=((0, 0.5), (2000, 0.8)),
        os=((0, 1e-5, 1e-9), (500, 2e-5, 2e-9)),
        or_=((0, 1e-6, 0.0), (700, 4e-6, 0.0)),
        eager_limit_bytes=eager_limit,
        crosstraffic=False,
    )
    platform = replace(_PLAIN, calibration=calibration)
    latency, bandwidth = 2 * platform.link_latency_seconds, platform.link_bytes_per_second
    sizes = [0, 1, 499, 500, 699, 700, 999, 1000, 1999, 2000, 2999, 3000, 65536]
    for size, (one_way, _) in _times(program, platform, 1, sizes).items():
        seconds = (size + _ENVELOPE_BYTES) / (bandwidth * (0.5 if size < 2000 else 0.8))
        expected = latency * (1.0 if size < 1000 else 3.0) + seconds
        if 0 < size < eager_limit:
            expected += 1e-5 + 1e-9 * size if size < 500 else 2e-5 + 2e-9 * size
            expected += 1e-6 if size < 700 else 4e-6
        assert one_way == pytest.approx(expected, rel=1e-6), size


@pytest.mark.parametrize(
    ("options", "charged"),
    [
        ({}, False),
        ({"smpi/os": "0:0:0:0:0"}, False),
        ({"smpi/os": "0:0.0:0.0;1024:5e-06:1e-10"}, True),
        ({"smpi/or": "0:1e-6:0"}, True),
        ({"smpi/async-small-thresh": "5"}, False),
    ],
)
def test_whether_overheads_are_charged(options: dict[str, str], charged: bool) -> None:
    assert charges_overheads(options) is charged
