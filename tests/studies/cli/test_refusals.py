"""Input that cannot work: one line on stderr that says what is valid, exit code 2, and nothing written or changed."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from collwise.common import errors
from collwise.studies.cli.main import main
from collwise.validation.select.decisions import DecisionTable, decisions_document
from collwise.validation.times.choice import Choice
from tests.models.parameter_examples import EXAMPLES, fitted
from tests.needs import needs
from tests.run_reports import OF_AN_APPLICATION

RECORDED = Path(__file__).parents[2] / "platforms" / "recorded"
RECORDED_FILES = ("laptop.lscpu", "omnipath.scontrol", "hdr/nodes.conf")
FILES = {
    "broken.xml": b'<platform version="4.1">\n<zone',
    "broken.toml": b'name = "x',
    "corrupt.sqlite": bytes(range(256)) * 20,
    "not-parameters.toml": b"format = 0\n",
    "not-decisions.json": b"{}",
    "map.csv": b"host,switch,group\nn1,a,x\nn2,a,x\nn3,b,x\nn4,c,y\n",
    "openmpi.rules": b"1 # collectives\n",
    "before.json": OF_AN_APPLICATION.encode(),
    "slurm.bad": b"NodeName=n[1-\n",
    **{path.name: path.read_bytes() for path in map(RECORDED.joinpath, RECORDED_FILES)},
    "thresholds.toml": b"[thresholds]\nscatter_leap_bytes = 65536\n",
    **dict.fromkeys(("file", "text", "own.toml"), b""),
}
REFUSALS = tomllib.loads(Path(__file__).with_name("refusals.toml").read_text(encoding="utf-8"))


def refusals() -> Iterator[object]:
    for section, lines in REFUSALS.items():
        marks = () if section == "anywhere" else needs(section)
        for words, said in lines.items():
            yield pytest.param(words, [said] if isinstance(said, str) else said, marks=marks, id=words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files of every kind, sound, broken and empty ones."""
    made = tmp_path_factory.mktemp("refused")
    for name, content in FILES.items():
        (made / name).write_bytes(content)
    decided = DecisionTable("bcast", "made up", 1, "simulated", "hand", {2: ((1024, Choice("chain", 8192)),)})
    (made / "decisions.json").write_text(json.dumps(decisions_document([decided])))
    for example in EXAMPLES:
        fitted(example).save(made / f"{example.replace(' ', '-')}.toml")
    return made


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


@pytest.mark.parametrize(("words", "said"), [*refusals()])
def test_it_is_refused_in_one_line(
    words: str,
    said: list[str],
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLLWISE_STORE", str(tmp_path / "timings.sqlite"))
    errors.warn.cache_clear()
    before = contents(folder)
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(words))
    shown = capsys.readouterr()
    # Whoever comes first may have to build a C program.
    lines = [line for line in shown.err.splitlines() if not line.startswith("collwise: building ")]
    assert (ended.value.code, shown.out, len(lines)) == (2, "", 1), shown.err
    assert lines[0].startswith("collwise: ")
    at = 0
    for part in said:
        at = lines[0].find(part, at)
        assert at >= 0, lines
    assert contents(folder) == before
