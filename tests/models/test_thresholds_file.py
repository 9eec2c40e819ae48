"""The LMO model's thresholds as a file: what is read, and what is said where there is something wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from collwise.common.errors import UsageError
from collwise.models.parameters import read_thresholds
from collwise.models.single_messages import Thresholds

# Those of the LAM-Ethernet cluster (O'Flynn 2009, section 7.2), among other tables.
WHOLE = """
name = "lam"
[thresholds]
scatter_leap_bytes = 65536
gather_irregular_from_bytes = 5120
gather_regular_from_bytes = 65536
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (WHOLE, Thresholds(65536, 5120, 65536)),
        ("[thresholds]", Thresholds()),
        ("[thresholds]\ngather_irregular_from_bytes = 1", Thresholds(None, 1, None)),
        ("thresholds = { gather_irregular_from_bytes = 7, gather_regular_from_bytes = 7 }", Thresholds(None, 7, 7)),
    ],
)
def test_what_is_read(tmp_path: Path, text: str, expected: Thresholds) -> None:
    file = tmp_path / "x.toml"
    file.write_text(text)
    assert read_thresholds(file) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"no table \[thresholds\]; 'collwise fit --model lmo' or 'collwise platforms thresholds' makes one"),
        ("thresholds = 3", "thresholds = 3; valid: a table"),
        ("[thresholds", "broken TOML"),
        (
            "[thresholds]\nscatter_leap_byte = 3",
            "unknown threshold 'scatter_leap_byte'; did you mean scatter_leap_bytes",
        ),
        *(
            (
                f"[thresholds]\nscatter_leap_bytes = {value}",
                r"thresholds\.scatter_leap_bytes = .*; valid: a whole number of at least 1",
            )
            for value in ("0", "-1", "1.0", "true", '"64KiB"')
        ),
        (
            WHOLE.replace("5120", "65537"),
            r"thresholds\.gather_regular_from_bytes = 65536; valid: at least gather_irregular_from_bytes, 65537",
        ),
    ],
)
def test_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "x.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=rf"x\.toml: {said}"):
        read_thresholds(file)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*x\.toml: No such file"):
        read_thresholds(tmp_path / "x.toml")
    (tmp_path / "x.toml").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"cannot read .*x\.toml: not text"):
        read_thresholds(tmp_path / "x.toml")
