"""A wrong entry of the catalogue is refused with its line, by the loader and by the build."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from collwise.algorithms import catalogue, catalogue_check
from collwise.algorithms.catalogue_check import LIBRARIES, CatalogueError, read_catalogue
from collwise.studies.cli.main import main

FOLDER = Path(catalogue_check.__file__).parent
CATALOGUE = (FOLDER / "catalogue.toml").read_text(encoding="utf-8")
ENTRY = """
[[bcast.algorithm]]
name = "kary"
title = "Complete k-ary tree"
function = "collwise_bcast_kary"
topology = "tree"
parameters = ["segment_bytes", "radix"]
defaults = { radix = 3 }
requires = []
selectable = true
openmpi = {}
reference = "a paper"
"""
FIRST = CATALOGUE.count("\n") + 2


def written(tmp_path: Path, entry: str) -> Path:
    path = tmp_path / "catalogue.toml"
    path.write_text(CATALOGUE + entry, encoding="utf-8")
    return path


def test_a_right_entry_is_accepted(tmp_path: Path) -> None:
    document = read_catalogue(written(tmp_path, ENTRY))
    assert document["bcast"]["algorithm"][-1]["name"] == "kary"


# A text of the entry, what stands in its place, and parts of what is said of it.
WRONG = [
    ("openmpi = {}", 'openmpi = { "4.1" = 5 }', "openmpi", "4.1 = 5 already belongs to another algorithm (binary)"),
    ("openmpi = {}", 'openmpi = { "4.1" = 99 }', "Open MPI 4.1 has no algorithm 99 of bcast; valid: 1 to 9"),
    ("openmpi = {}", 'openmpi = { "4.2" = 9 }', "unknown version '4.2'", "valid: 4.0, 4.1, 5.0, 6.0"),
    ("openmpi = {}", 'openmpi = { "4.1" = "9" }', "valid: ids by version"),
    ('name = "kary"', 'name = "binomial"', "the name 'binomial' already belongs to another algorithm"),
    ('name = "kary"', 'name = "k-ary"', "name: is 'k-ary'; valid: lower-case letters, digits and _"),
    ("bcast_kary", "bcast_kari", "function: is 'collwise_bcast_kari'; valid: collwise_bcast_kary"),
    ('"segment_bytes"', '"segment_bites"', "'segment_bites'; did you mean segment_bytes", "max_requests"),
    ('"segment_bytes"', '"chains"', "has chains and radix; valid: at most one of chains, radix"),
    ('"segment_bytes"', '"between_segment_bytes"', "has between_segment_bytes without segment_bytes; valid: both, or"),
    ("true", '"yes"', "selectable: is 'yes'; valid: true or false"),
    ("{ radix = 3 }", "{ chains = 3 }", "defaults has chains; valid: { radix = N }"),
    ("{ radix = 3 }", "{ radix = 1 }", "radix is 1; valid: at least 2"),
    ("defaults = { radix = 3 }\n", "", "defaults has nothing; valid: { radix = N }"),
    ('topology = "tree"\n', "", "the key topology is missing; valid: ", "binary, binomial", "two_tree"),
    ('"tree"', '"kary"', "topology: unknown name 'kary'", "valid: ", "tree"),
    ("reference", "refrence", "refrence: unknown key; did you mean reference"),
    ("requires = []", 'requires = ["prime"]', "unknown name 'prime'", "valid: power_of_two, even, commutative"),
    ('"a paper"', '"a paper', "broken TOML"),
    ('"a paper"', '"a paper"\nmpich = "binomal"', "binomal is not in libraries.toml; did you mean binomial"),
    ('"a paper"', '"a paper"\nmpich = "binomial"', "binomial already belongs to another algorithm (binomial)"),
    ('"a paper"', '"a paper"\nguideline = "GL1"', "selectable: is true despite guideline"),
    ("true\nopenmpi = {}", "false\nopenmpi = {}\ncalls = []", "the key guideline is missing; valid: all of guideline"),
]


@pytest.mark.parametrize(("old", "new", "texts"), [(old, new, texts) for old, new, *texts in WRONG])
def test_a_wrong_entry_is_named_with_its_line(tmp_path: Path, old: str, new: str, texts: list[str]) -> None:
    """The line of the key, or of the entry, if a key is missing or several do not go together."""
    assert old in ENTRY
    entry = ENTRY.replace(old, new, 1)
    before, after = ENTRY.splitlines()[1:], entry.splitlines()[1:]
    path = written(tmp_path, entry)
    with pytest.raises(CatalogueError) as raised:
        read_catalogue(path)
    message = str(raised.value)
    assert "\n" not in message
    assert all(text in message for text in texts), message
    place = int(message.removeprefix(f"{path}:").partition(":")[0]) - FIRST
    changed = {line for line in range(len(after)) if line >= len(before) or after[line] != before[line]}
    named = {"missing": {0}, "nothing": {0}, "despite": {before.index("selectable = true")}}
    assert place in next((lines for word, lines in named.items() if word in message), changed), message


@pytest.mark.parametrize("library", LIBRARIES)
def test_names_that_a_library_does_not_have_are_refused(library: str, tmp_path: Path) -> None:
    name = "77" if library in ("intel", "mvapich2") else '"no_such"'
    path = written(tmp_path, f"{ENTRY}{library} = {name}\n")
    with pytest.raises(CatalogueError, match=rf":{FIRST + 11}: .*{library}: \w+ is not in libraries.toml"):
        read_catalogue(path)


def test_commands_and_the_build_say_it_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, ENTRY.replace("reference", "refrence"))
    built = subprocess.run(
        [sys.executable, "-I", FOLDER / "catalogue_check.py", path], capture_output=True, text=True, timeout=60
    )
    assert built.returncode == 2
    monkeypatch.setattr(catalogue, "CATALOGUE_PATH", path)
    catalogue.Catalogue.load.cache_clear()
    try:
        with pytest.raises(SystemExit) as ended:
            main(["show", "algorithms", "bcast"])
    finally:
        catalogue.Catalogue.load.cache_clear()
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert built.stderr.splitlines() == [line.removeprefix("collwise: ")]
