"""Worklists with a program of one line in place of ours, and without any."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from collwise.simulator.execution.processes import run_command, worklist

# Answers each line of its file, among other words, until there is one that it does not know.
PROGRAM = """
import json, sys
print("hello", flush=True)
for number, line in enumerate(open(sys.argv[1])):
    if line == "end\\n":
        sys.exit("enough")
    print(json.dumps({"id": number, "said": line.strip()}), flush=True)
    print("warning: {'id': 7}", json.dumps({"rank": 0, "id": 7}), sep="\\n", flush=True)
"""


@pytest.mark.parametrize(("lines", "done"), [(["a", "b", "c"], 3), (["a", "b", "end", "c"], 2), ([], 0)])
def test_records_are_kept_and_counted_until_the_program_ends(lines: list[str], done: int) -> None:
    kept: list[dict[str, Any]] = []
    with worklist("".join(f"{line}\n" for line in lines), kept.append) as work:
        run = run_command([sys.executable, "-c", PROGRAM, work.file_name], on_line=work.take)
    assert kept == [{"id": number, "said": line} for number, line in enumerate(lines[:done])]
    assert work.done == done
    assert run.returncode == (0 if done == len(lines) else 1)


def test_a_record_is_kept_as_it_comes() -> None:
    kept: list[dict[str, Any]] = []
    with worklist("", kept.append) as work:
        work.take(json.dumps({"id": 0, "seconds": 1.5}))
        assert kept == [{"id": 0, "seconds": 1.5}]


def test_what_was_cut_off_is_passed_over() -> None:
    kept: list[dict[str, Any]] = []
    with worklist("", kept.append) as work:
        work.take('{"id": 0, "seco')
        work.take('{"id": 1}')
    assert kept == [{"id": 1}]
    assert work.done == 1


def test_the_file_goes_when_keeping_fails() -> None:
    files: list[Path] = []

    def keep(record: dict[str, Any]) -> None:
        raise OSError(str(record["id"]))

    def work_off() -> None:
        with worklist("text", keep) as work:
            files.append(Path(work.file_name))
            assert files[0].read_text() == "text"
            work.take('{"id": 4}')

    with pytest.raises(OSError, match="4"):
        work_off()
    assert not files[0].exists()
