from __future__ import annotations

import math
import statistics
from pathlib import Path

import pytest

from collwise.common.errors import UsageError
from collwise.validation.calibration.calibration_points import CalibrationPoint, read_points, write_points

POINTS = [
    CalibrationPoint("eager", 0, 1, 1, False, 65481, 1, (0.0,)),
    CalibrationPoint("ping_pong", 0, 1, 4, False, 17, 1, (1e-5, 3e-5, 1.1e-5)),
    CalibrationPoint("row", 0, 1, 4, False, 8, 8, (2e-4, 2.1e-4)),
    CalibrationPoint("ping_pong", 0, 1, 1, True, 17, 1, (1e-6,)),
]


def test_points_read_back_as_they_were(tmp_path: Path) -> None:
    write_points(tmp_path / "points.csv", POINTS)
    assert read_points(tmp_path / "points.csv") == POINTS


@pytest.mark.parametrize(
    ("old", "new", "telling"),
    [
        ("kind,first", "kin,first", "points.csv:1: expected the columns"),
        ("ping_pong,0,1,4,0,17,1,1", "ping_pongs,0,1,4,0,17,1,1", "points.csv:4: unknown kind 'ping_pongs'"),
        ("ping_pong,0,1,4,0,17,1,2", "ping_pong,0,1,4,0,-17,1,2", "points.csv:5: message_bytes '-17'"),
        (",3e-05", ',"3e-05', "points.csv:4: seconds '\"3e-05'"),
        (",3e-05", ",nan", "points.csv:4: seconds 'nan'"),
        (",3e-05", "", "points.csv:4: 8 fields"),
        (",3e-05", ",3e-05,", "points.csv:4: 10 fields"),
        (",0.0002", ",", "points.csv:6: seconds ''"),
        ("0,1,1,1,17", "0,1,1,2,17", "points.csv:8: within_node '2'; valid: a whole number from 0 to 1"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, old: str, new: str, telling: str) -> None:
    file = tmp_path / "points.csv"
    write_points(file, POINTS)
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(UsageError) as problem:
        read_points(file)
    assert telling in str(problem.value)


def test_further_columns_are_passed_over(tmp_path: Path) -> None:
    write_points(tmp_path / "points.csv", POINTS)
    header, *rows = (tmp_path / "points.csv").read_text().splitlines()
    (tmp_path / "more.csv").write_text("\n".join([f"{header},send_seconds", *(f"{row},5e-05" for row in rows)]) + "\n")
    assert read_points(tmp_path / "more.csv") == POINTS


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        read_points(tmp_path / "none.csv")
    write_points(tmp_path / "empty.csv", [])
    with pytest.raises(UsageError, match="no points"):
        read_points(tmp_path / "empty.csv")


def test_the_error_of_a_median_is_that_of_a_normal_distribution() -> None:
    """sqrt(pi / 2) times the standard error of the mean, whose deviation the quartiles 2 and 4 tell."""
    point = CalibrationPoint("row", 0, 1, 4, False, 8, 8, (1.0, 2.0, 3.0, 4.0, 5.0))
    deviation = (4 - 2) / (2 * statistics.NormalDist().inv_cdf(0.75))
    assert point.relative_error == pytest.approx(math.sqrt(math.pi / 2) * deviation / math.sqrt(5) / 3, rel=1e-3)
