from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from collwise.common.errors import UsageError, warn
from collwise.common.units import format_seconds, format_size, parse_counts, parse_ratio, parse_size, parse_sizes

UNITS = {"": 1, "B": 1, "K": 2**10, "KiB": 2**10, "M": 2**20, "MiB": 2**20, "G": 2**30, "GiB": 2**30,
         "KB": 10**3, "MB": 10**6, "GB": 10**9}  # fmt: skip


@given(st.integers(0, 10**6), st.sampled_from([*UNITS]), st.sampled_from(["", " ", "  "]), st.integers(0, 3))
def test_a_size_is_a_number_times_its_unit(number: int, unit: str, space: str, zeros: int) -> None:
    for written in (unit, unit.lower() if unit.endswith("iB") else unit):
        assert parse_size(f"{space}{'0' * zeros}{number}{space}{written} ") == number * UNITS[unit]


@pytest.mark.parametrize(
    "text", ["", " ", "KiB", "8 KiB 2", "-8", "+8", "1.5KiB", "8XB", "8TiB", "0x10", "1e3", "٣", "8KiB\nx", "9" * 5000]
)
def test_malformed_sizes(text: str) -> None:
    with pytest.raises(UsageError, match=r"^malformed size '.*': write a whole number with B, KiB") as caught:
        parse_size(text.replace("\n", " "))
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["8Kib", "8Kb", "1Mb", "1Gib"])
def test_bits_are_no_size(text: str) -> None:
    with pytest.raises(UsageError, match=rf"^malformed size '{text}': b stands for bits; write a whole number"):
        parse_size(text)


@pytest.mark.parametrize(("text", "ratio"), [("4:1", 4), (" 3 : 2 ", 1.5), ("2.5", 2.5), ("4", 4)])
def test_ratios(text: str, ratio: float) -> None:
    assert parse_ratio(text) == ratio


@pytest.mark.parametrize("text", ["", "0", "0:1", "4:0", "4:", ":1", "-4:1", "4:1:1", "four", "1e3", "nan"])
def test_malformed_ratios(text: str) -> None:
    with pytest.raises(UsageError, match=r"^malformed ratio '.*': write two numbers above 0"):
        parse_ratio(text)


@given(st.integers(0, 2**50))
def test_what_is_written_reads_back(size_bytes: int) -> None:
    text = format_size(size_bytes)
    assert parse_size(text) == parse_size(text.replace(" ", "")) == size_bytes


@given(st.integers(1, 1023), st.sampled_from([("B", 1), ("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30)]))
def test_the_largest_unit_that_divides_is_written(number: int, unit: tuple[str, int]) -> None:
    assert format_size(number * unit[1]) == f"{number} {unit[0]}"
    assert (format_size(1025), format_size(1536 * 1024), format_size(0)) == ("1025 B", "1536 KiB", "0 B")


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("8KiB", [8192]),
        ("64KiB,8KiB", [8192, 65536]),
        ("8KiB,8192,8K", [8192]),
        ("8KiB:64KiB:x2", [8192, 16384, 32768, 65536]),
        ("8KiB:63KiB:x2", [8192, 16384, 32768]),
        ("1:1000:x10", [1, 10, 100, 1000]),
        ("8KiB:32KiB:+8KiB", [8192, 16384, 24576, 32768]),
        ("0:10:+4", [0, 4, 8]),
        ("5:5:x2", [5]),
        ("1:4:x2, 3, 100B", [1, 2, 3, 4, 100]),
    ],
)
def test_lists_and_ranges_of_sizes(text: str, sizes: list[int]) -> None:
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize(
    ("parse", "text", "warning"),
    [
        (
            parse_sizes,
            "8:1MiB:x8",
            "size range '8:1MiB:x8' ends at 256 KiB, since the steps miss 1MiB; 8:1MiB:x8,1MiB includes it",
        ),
        (parse_sizes, "0:10:+4", "size range '0:10:+4' ends at 8 B, since the steps miss 10"),
        (
            parse_counts,
            "64, 2:30:x2",
            "process count range '2:30:x2' ends at 16, since the steps miss 30; 64, 2:30:x2,30 includes",
        ),
        (parse_sizes, "8:1MiB:x8,1MiB", ""),
        (parse_sizes, "8:8KiB:x4,8:16KiB:x2", ""),
        (parse_counts, "2:32:x2", ""),
    ],
)
def test_a_range_that_misses_its_end_is_warned_of(
    parse: Callable[[str], list[int]], text: str, warning: str, capsys: pytest.CaptureFixture[str]
) -> None:
    warn.cache_clear()  # each warning is printed once
    parse(text)
    said = capsys.readouterr().err
    assert said.startswith(f"collwise: warning: {warning}") if warning else not said


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(2, 9))
def test_a_multiplying_range_holds_every_step_up_to_its_end(low: int, more: int, factor: int) -> None:
    sizes = parse_sizes(f"{low}:{low + more}:x{factor}")
    assert sizes[0] == low
    assert all(after == before * factor for before, after in itertools.pairwise(sizes))
    assert sizes[-1] <= low + more < sizes[-1] * factor


@given(st.integers(0, 10**6), st.integers(0, 1000), st.integers(1, 50))
def test_an_adding_range_is_pythons_range(low: int, more: int, step: int) -> None:
    assert parse_sizes(f"{low}:{low + more}:+{step}") == list(range(low, low + more + 1, step))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "malformed size ''"),
        ("8KiB,", "malformed size ''"),
        ("8KiB;16KiB", "malformed size '8KiB;16KiB'"),
        ("8KiB:16KiB", "malformed size range '8KiB:16KiB'"),
        ("1:2:3:4", "malformed size range '1:2:3:4'"),
        ("1:8:2", "malformed size range '1:8:2'"),
        ("1:8:", "malformed size range '1:8:'"),
        ("1:8:x", "malformed factor ''"),
        ("1:8:x2KiB", "malformed factor '2KiB'"),
        ("1:8:x1.5", "malformed factor '1.5'"),
        ("1:8:+", "malformed size ''"),
        ("a:8:x2", "malformed size 'a'"),
        ("1:8:x1", "never ends or is empty"),
        ("1:8:x0", "never ends or is empty"),
        ("1:8:+0", "never ends or is empty"),
        ("0:8:x2", "never ends or is empty"),
        ("8:1:x2", "never ends or is empty"),
        ("8:1:+2", "never ends or is empty"),
        ("0:1GiB:+1", "more than 100000 values"),
    ],
)
def test_malformed_series_of_sizes(text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_sizes(text)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_counts() -> None:
    assert parse_counts("90, 50,80,50") == [50, 80, 90]
    assert parse_counts("2:128:x2") == [2, 4, 8, 16, 32, 64, 128]
    assert parse_counts("10:90:+40,7") == [7, 10, 50, 90]


@pytest.mark.parametrize("text", ["", "abc", "8KiB", "-4", "4.5", "2:8KiB:x2", "2:8:+1KiB", "0", "0:4:+2", "9" * 5000])
def test_malformed_counts_are_called_counts(text: str) -> None:
    with pytest.raises(UsageError, match=r"^malformed process count") as caught:
        parse_counts(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 ns"), (1e-9, "1.00 ns"), (9.999e-6, "10.0 us"), (99.96e-3, "100 ms"), (999.4e-6, "999 us"),
     (999.6e-6, "1.00 ms"), (999.6e-3, "1.00 s"), (3600.0, "3600 s"), (-18.4e-6, "-18.4 us")],
)  # fmt: skip
def test_seconds(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@given(st.floats(1e-9, 999.0))
def test_seconds_keep_three_digits(seconds: float) -> None:
    number, unit = format_seconds(seconds).split()
    assert float(number) * {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit] == pytest.approx(seconds, rel=5.01e-3)
    assert 1 <= float(number) < 1000
    assert len(number.replace(".", "")) == 3
