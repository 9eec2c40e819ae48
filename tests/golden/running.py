"""Runs the commands of a group in a folder, in this process."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collwise.common.errors import warn
from collwise.studies.cli.main import main
from collwise.studies.present.shown import Shown, shown
from tests.golden.commands import GROUPS, MACHINE
from tests.golden.functions import scores, searches
from tests.golden.keys import configurations
from tests.golden.made_up import presentations
from tests.golden.measured import store_launches, write_results
from tests.golden.presented import figures_of, parts_of, plain
from tests.golden.shapes import Ran, configurations as configurations_kept, imported
from tests.run_reports import OF_AN_APPLICATION

HERE = Path(__file__).parent
FUNCTIONS = {"keys": configurations, "scores": scores, "adaptive": searches, "made_up": presentations}
NAMES = (*GROUPS, *FUNCTIONS)
"""Of the groups, each of which has a file."""
SEEN = ("times", "compare", "change", "search", "shown")
"""Groups that also keep what people see of their commands."""
_PROGRESS = re.compile(r"collwise: (building |.*: \d+ %(, \d+ cases?)?$)")
"""Lines that are only said if a program is missing, or if work takes long."""
UNSEEN = (imported, configurations_kept)
"""But not of these, whose tables have times of the day, or are the same in every group."""
NEEDS_SMPI = ("scores",)
TOLERANCES = {"scores": 1e-9, "adaptive": 1e-4, "shown": 1e-4}
"""Of fractions that least squares or a search for a maximum has made, whose last digits libraries decide."""


def run(words: str, folder: Path) -> Ran:
    """Runs a command in the current folder."""
    warn.cache_clear()  # which says each warning once in a process
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    made: list[Shown] = [Shown([], [])]

    def kept(result: Any) -> Shown:
        made.append(shown(result))
        return made[-1]

    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
        patch.setattr("collwise.studies.cli.derive.shown", kept)
        patch.setattr("sys.argv", ["collwise", *shlex.split(words)])
        try:
            main(shlex.split(words))
        except SystemExit as ended:
            code = ended.code or 0
    assert isinstance(code, int), code
    return Ran(out.getvalue(), err.getvalue(), code, folder, made[-1])


@contextlib.contextmanager
def prepared(folder: Path) -> Iterator[None]:
    """The folder, made the current one, with the files that commands of the table read."""
    shutil.copytree(HERE / "files", folder / "files")
    write_results(folder / "results.jsonl")
    store_launches(folder / "trio.sqlite")
    (folder / "report.json").write_text(OF_AN_APPLICATION)
    (folder / "machine.times.csv").write_text(MACHINE)
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _make(words: str, folder: Path) -> None:
    """Runs a command for the file of times that it writes, the same words once a folder."""
    target = folder / words.split(" -o ")[1].split()[0]
    kept = folder / "made" / hashlib.sha256(words.encode()).hexdigest()
    if not kept.exists():
        with pytest.MonkeyPatch.context() as patch:
            # The file is all that is read.
            patch.setattr("tests.golden.running.shown", lambda _: Shown([], []))
            ran = run(words, folder)
        assert ran.code != 2, f"{words}: {ran.err}"
        kept.parent.mkdir(exist_ok=True)
        shutil.copy(target, kept)
    shutil.copy(kept, target)


def results(group: str, folder: Path) -> dict[str, Any]:
    """What is kept of each command of a group, or what its function returns."""
    if group in FUNCTIONS:
        return FUNCTIONS[group](folder)
    found = {}
    with prepared(folder):
        for name, golden in GROUPS[group].items():
            *before, last = golden.words.split(" && ")
            for words in before:
                _make(words, folder)
            ran = run(last, folder)
            assert ran.code != 2, f"{last}: {ran.err}"
            found[name] = golden.keeps(ran)
            if group in SEEN and golden.keeps not in UNSEEN:
                told = [line for line in ran.err.splitlines() if not _PROGRESS.match(line)]
                found[f"{name}, as seen"] = [*parts_of(ran.shown, folder), *(plain(f"! {one}", folder) for one in told)]
            if golden.draws:
                found[f"{name}, as drawn"] = figures_of(ran.shown)
    return found


def file_of(group: str) -> Path:
    return HERE / f"{group}.json"


def expected(group: str) -> Any:
    return json.loads(file_of(group).read_text(encoding="utf-8"))
