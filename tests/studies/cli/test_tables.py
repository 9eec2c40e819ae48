"""Tables at every width: each cell whole, no line wider than the terminal."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from rich.console import Console

from collwise.studies.cli.tables import WholeTable, stdout_console
from collwise.studies.present.shown import Table
from tests.command_line import called

UNITS = ("", " us", " ms", " KiB", " MiB", " %", " s", " Gbit/s")
HEADS = st.sampled_from(["P", "m", "smallest gaps left", "reduce_scatter_block", "sent again, dropped"])
WORDS = st.sampled_from(["bcast", "split_binary", "implementation_aware", "of a long, long text", "-", ""])


@st.composite
def tables(draw: st.DrawFn) -> WholeTable:
    """Tables whose numbers are all different, so that one that is cropped cannot be mistaken for another."""
    columns = draw(st.integers(1, 14))
    kinds = draw(st.lists(st.tuples(st.integers(2, 17), st.sampled_from(UNITS), WORDS), min_size=1, max_size=4))
    rows = [
        [f"{kinds[(row + column) % len(kinds)][2]} {number(kinds, row, column)}".strip() for column in range(columns)]
        for row in range(draw(st.integers(0, 4)))
    ]
    heads = draw(st.lists(HEADS, min_size=columns, max_size=columns))
    keys = draw(st.one_of(st.none(), st.integers(0, columns)))
    return WholeTable(Table("A title, P = 100", heads, rows, draw(st.integers(0, columns)), draw(st.booleans()), keys))


def number(kinds: list[tuple[int, str, str]], row: int, column: int) -> str:
    """A number of so many digits that no other cell has, with its unit."""
    digits, unit, _ = kinds[(row + column) % len(kinds)]
    return f"{10**digits + 14 * row + column}{unit}"


def shown(one: WholeTable, width: int) -> str:
    console = Console(file=StringIO(), width=width, no_color=True)
    console.print(one)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


@settings(max_examples=100)
@given(tables(), st.integers(60, 220))
def test_every_number_and_its_unit_is_whole(one: WholeTable, width: int) -> None:
    text = shown(one, width)
    for row in one.rows:
        for cell in row:
            found = re.search(rf"[0-9]+({'|'.join(filter(None, UNITS))})?$", cell)
            assert found is not None
            assert re.search(rf"(?<![0-9]){re.escape(found[0])}(?![0-9A-Za-z/])", text), (found[0], text)
    assert all(len(line) <= width for line in text.splitlines())


@settings(max_examples=50)
@given(tables())
def test_nothing_is_split_where_nothing_bounds_the_width(one: WholeTable) -> None:
    text = shown(one, 100_000)
    assert one.wrap or ("part 1" not in text and "row by row" not in text)


def test_parts_repeat_the_columns_that_name_a_row_and_say_so() -> None:
    heads = ["P", *(f"algorithm_number_{i}" for i in range(6))]
    text = shown(WholeTable(Table("bcast", heads, [(100, *(f"{i}.25 ms" for i in range(6)))])), 60)
    assert "bcast (part 1 of 3: the table is wider than 60 columns)" in text
    assert text.count(" 100 ") == 3


def test_rows_become_lists_where_no_column_fits_beside_the_keys() -> None:
    text = shown(WholeTable(Table("times", ["file", "P"], [("/long/folder" * 8, 100)])), 60)
    assert "times (the table is wider than 60 columns: row by row)" in text
    assert "\nP: 100\n" in text


def test_columns_says_the_width_and_a_pipe_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert stdout_console().width == 60
    monkeypatch.delenv("COLUMNS")
    assert stdout_console().width > 10_000
    monkeypatch.setenv("COLUMNS", "0")
    assert stdout_console().width > 10_000


def printed(arguments: tuple[str, ...], columns: int | None, cwd: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", str(columns))
    run = called(*arguments, cwd=cwd)
    assert run.returncode == 0, run.stderr
    return run.stdout


BCAST = ("--collective", "bcast", "--procs", "100", "--sizes", "8KiB,4MiB")
COMMANDS = {
    "simulate": ("simulate", "--platform", "grisou", "--engine", "schedule", *BCAST),
    "platforms": ("platforms", "show"),
    "show algorithms": ("show", "algorithms"),
    "models": ("show", "models"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_show_the_same_numbers_at_any_width(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = r"(?<![\w.-])[0-9.]+(?: (?:us|ms|s|KiB|MiB|Gbit/s)\b| %)?(?![\w-])"
    wide = printed(COMMANDS[command], None, tmp_path, monkeypatch)
    told = {one for line in wide.splitlines() if line.startswith("│") for one in re.findall(numbers, line)}
    for columns in (60, 80, 100):
        narrow = printed(COMMANDS[command], columns, tmp_path, monkeypatch)
        assert all(len(line) <= columns for line in narrow.splitlines() if line.startswith(("│", "┃")))
        assert told <= set(re.findall(numbers, narrow)), columns


def test_numbers_are_aligned_right_and_names_left() -> None:
    text = shown(WholeTable(Table("t", ["name", "P"], [("a", 1), ("long name", 1000)])), 60)
    assert "│ a         │    1 │" in text
    assert "│ long name │ 1000 │" in text
