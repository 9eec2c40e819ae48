"""collwise platforms experiment: what a person types, what comes out, and the exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from collwise.studies.cli.main import main
from tests.command_line import printed
from tests.needs import needs

pytestmark = needs("smpi")


def run(
    arguments: str, folder: Path, capsys: pytest.CaptureFixture[str], platform: str = "--platform grisou --procs 6"
) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "platforms",
                "experiment",
                *platform.split(),
                *arguments.split(),
                "--store",
                str(folder / "timings.sqlite"),
            ]
        )
    output = capsys.readouterr()
    return ended.value.code, output.out, output.err


def measurements(output: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = printed(output).rows
    return found


def test_all_pairs_of_two_sizes_as_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, output, _ = run("--processes all-pairs --sizes 1,1KiB", tmp_path, capsys)
    assert code == 0
    rows = [line for line in output.splitlines() if "roundtrip" in line]
    assert len(rows) == 30
    assert sum("1 KiB" in row for row in rows) == 15
    assert "SimGrid" in output
    assert "30 measurements, " in output.splitlines()[-1]


def test_side_by_side_takes_less_platform_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, parallel, _ = run("one_to_two --processes all-triplets --json", tmp_path, capsys)
    _, serial, _ = run("one_to_two --processes all-triplets --one-after-another --json", tmp_path, capsys)
    assert len(measurements(parallel)) == len(measurements(serial)) == 60
    effort, more = (printed(text).facts["effort"] for text in (parallel, serial))
    assert effort["measurements"] == more["measurements"] == 60
    assert effort["seconds"] == pytest.approx(more["seconds"] / 2, rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", {"kind": "roundtrip", "processes": [0, 1], "message_bytes": 1, "reply_bytes": 1}),
        ("--sizes 2KiB", {"message_bytes": 2048, "reply_bytes": 2048}),
        ("--sizes 2KiB --reply 3", {"message_bytes": 2048, "reply_bytes": 3}),
        ("send --sizes 2KiB", {"message_bytes": 2048, "reply_bytes": 1}),
        ("saturation", {"count": 10, "delay_seconds": 0.0}),
        ("prtt --count 3 --delay 0.25", {"count": 3, "delay_seconds": 0.25}),
        ("sendrecv", {"count": 10, "reply_bytes": 0}),
        ("unexpected_receive", {"message_bytes": 1, "reply_bytes": 1, "delay_seconds": 0.001}),
        ("one_to_two --processes 3,1,2", {"processes": [3, 1, 2]}),
        ("linear_barrier", {"processes": [0, 1, 2, 3, 4, 5], "message_bytes": 0, "reply_bytes": 0}),
        ("scatter --processes 1,0", {"processes": [1, 0], "message_bytes": 1, "reply_bytes": 0}),
    ],
)
def test_what_is_not_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: str, expected: dict[str, object]
) -> None:
    code, output, _ = run(f"{arguments} --json", tmp_path, capsys)
    assert code == 0
    (found,) = measurements(output)
    assert expected.items() <= found.items()
    assert found["repetitions"] == 1


@needs("openmpi")
def test_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = "--repetitions 2:6 --confidence 0.9 --relative-error 0.1 --json"
    code, output, _ = run(options, tmp_path, capsys, "--library openmpi --procs 2")
    assert code == 0
    (found,) = measurements(output)
    assert 2 <= int(str(found["repetitions"])) <= 6
    assert found["message_bytes"] == 0
