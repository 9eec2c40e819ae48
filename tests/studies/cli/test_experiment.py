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
    _, parallel, _ = run("--kind one_to_two --processes all-triplets --json", tmp_path, capsys)
    _, serial, _ = run("--kind one_to_two --processes all-triplets --one-after-another --json", tmp_path, capsys)
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
        ("--kind send --sizes 2KiB", {"message_bytes": 2048, "reply_bytes": 1}),
        ("--kind saturation", {"count": 10, "delay_seconds": 0.0}),
        ("--kind prtt --count 3 --delay 0.25", {"count": 3, "delay_seconds": 0.25}),
        ("--kind sendrecv", {"count": 10, "reply_bytes": 0}),
        ("--kind unexpected_receive", {"message_bytes": 1, "reply_bytes": 1, "delay_seconds": 0.001}),
        ("--kind one_to_two --processes 3,1,2", {"processes": [3, 1, 2]}),
        ("--kind linear_barrier", {"processes": [0, 1, 2, 3, 4, 5], "message_bytes": 0, "reply_bytes": 0}),
        ("--kind scatter --processes 1,0", {"processes": [1, 0], "message_bytes": 1, "reply_bytes": 0}),
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


@pytest.mark.parametrize(
    ("arguments", "platform", "said"),
    [
        (
            "",
            "",
            "name either --platform, to simulate, or an execution target to measure on: --library, --hosts",
        ),
        ("--library mpich", "--platform grisou", "name either --platform"),
        ("--confidence 0.9", "--platform grisou", "simulated time is exact"),
        ("--simgrid 4.1", "--library openmpi", "--simgrid is for --platform"),
        ("--relative-error 2", "--library openmpi", "relative error 2.0; valid: between 0 and 1"),
        ("--processes 0,b", "--platform grisou", "--processes: malformed '0,b': write ranks by commas"),
        ("--processes 0,51", "--platform grisou", "processes 0,51: valid ranks are 0 to 50"),
        ("--processes 0,1,2", "--platform grisou", "it takes 2 processes"),
        ("--processes all-triplets --kind one_to_two", "--platform grisou --procs 2", "valid: P from 3 on"),
        ("--sizes 2GiB", "--platform grisou", "valid: 0 B to 1 GiB"),
        ("--procs 52", "--platform grisou", "cannot hold P = 52"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: str, platform: str, said: str
) -> None:
    code, output, errors = run(arguments, tmp_path, capsys, platform)
    assert (code, output) == (2, "")
    assert len(errors.strip().splitlines()) == 1
    assert said in errors
