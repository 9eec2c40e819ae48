"""Decision tables in programs that choose for themselves, linked to libcollwise (collwise_decisions.h)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import collwise
from collwise.common.folders import SOURCES
from tests.interpose.running import COMPILERS, installation_of, launched
from tests.needs import each

HERE = Path(__file__).parent
TABLE = """\
bcast 2 1 0 default
bcast 2 1 1024 split_binary segment_bytes=256
bcast 4 1 0 binomial
"""
each_library = pytest.mark.parametrize("name", each("openmpi", "mpich"))
yielding = pytest.mark.usefixtures("yielding_mpich")


def linked(name: str, folder: Path) -> Path:
    """The program as a user links it."""
    library, program = installation_of(name).program("libcollwise.so"), folder / "decided"
    words = [COMPILERS[name], str(HERE / "decided.c"), f"-I{SOURCES / 'algorithms'}", f"-L{library.parent}"]
    words += ["-lcollwise", f"-Wl,-rpath,{library.parent}", "-o", str(program)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


@each_library
@yielding
def test_a_program_runs_what_a_table_says(name: str, tmp_path: Path) -> None:
    program, table = linked(name, tmp_path), tmp_path / "rules.txt"
    table.write_text(TABLE)
    for procs, message_bytes, said in (
        (3, 1000, "MPI's own 0 0"),
        (3, 5000, "split_binary 256 0"),
        (4, 5000, "binomial 0 0"),
    ):
        done = launched(name, procs, [str(program), str(table), str(message_bytes)], {})
        assert (done.returncode, done.stdout) == (0, said), done.stderr
    table.write_text("# no rule\n")
    assert launched(name, 3, [str(program), str(table), "10"], {}).stdout == "MPI's own 0 0"
    for text, said in (("bcast 2 1 0 chian\n", "rules.txt:1: unknown bcast algorithm 'chian'; did you mean chain?"),):
        table.write_text(text)
        done = launched(name, 2, [str(program), str(table), "10"], {})
        assert (done.returncode != 0, done.stdout.endswith(said)) == (True, True), done.stdout
    assert "No such file" in launched(name, 2, [str(program), str(tmp_path / "none"), "10"], {}).stdout


@each_library
@yielding
def test_exported_decisions_are_what_it_decides(name: str, tmp_path: Path) -> None:
    times = collwise.simulate(
        "gros", "bcast", procs=4, sizes="1KiB,64KiB", algorithms="binomial,chain", segments="8KiB"
    )
    decisions = collwise.select(times)
    table = tmp_path / "rules.txt"
    collwise.export(decisions, format_name="collwise", output=table)
    [decided] = decisions.tables
    program = linked(name, tmp_path)
    for message_bytes, choice in decided.row(4):
        done = launched(name, 4, [str(program), str(table), str(message_bytes)], {})
        assert done.stdout == f"{choice.algorithm} {choice.segment_bytes} 0", done.stderr
