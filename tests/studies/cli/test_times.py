"""collwise times: what the store holds, as users see it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pandas as pd
import pytest

import collwise
from collwise.simulator.store import Store
from collwise.simulator.timing import Case, Configuration, Timing
from collwise.studies.cli.main import main
from tests.command_line import printed
from tests.needs import needs

MEASURED = Configuration("measured", "bed", "Open MPI 4.1.4", (("launch", "2"), ("timing", "maximum")))
SIMULATED = Configuration("simulated", "gros", "SimGrid 3.32", (("platform_digest", "abc"),))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "s.sqlite"
    with Store(path) as opened:
        opened.add(
            MEASURED,
            [
                Timing(Case("bcast", "chain", 4, 8192, 8192), 1e-3, half_width_seconds=1e-4, repetitions=7),
                Timing(Case("bcast", "binomial", 4, 8192), 2e-3, half_width_seconds=float("inf")),
                Timing(Case("gather", "linear", 8, 1024), float("nan"), error="it broke"),
            ],
        )
        opened.add(SIMULATED, [Timing(Case("bcast", "chain", 4, 8192, 8192), 5e-4)])
    return path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["times", *words])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_configurations_are_listed(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "list", "--store", str(store))
    assert code == 0
    for word in (MEASURED.key[:12], SIMULATED.key[:12], "bcast,gather", "Open MPI 4.1.4"):
        assert word in out
    first, second = printed(run(capsys, "list", "--store", str(store), "--json")[1]).rows
    assert (first["rows"], first["failed"], first["details"]) == (3, 1, {"launch": "2", "timing": "maximum"})
    assert (second["platform"], second["source"]) == ("gros", "simulated")


def test_rows_are_shown_with_filters(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def shown(*words: str) -> list[dict[str, object]]:
        found: list[dict[str, object]] = printed(run(capsys, "show", "--store", str(store), "--json", *words)[1]).rows
        return found

    assert len(shown()) == 4
    assert [row["platform"] for row in shown("--algorithms", "chain", "--procs", "4")] == ["bed", "gros"]
    assert [row["algorithm"] for row in shown("--configuration", MEASURED.key[:6], "--sizes", "8KiB")] == [
        "chain",
        "binomial",
    ]
    assert [row["error"] for row in shown("--collective", "gather")] == ["it broke"]
    code, out, _ = run(capsys, "show", "--store", str(store), "--source", "measured")
    assert code == 0
    for word in ("1.00 ms", "100 us", "it broke", "3 times"):
        assert word in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "--platform", "grosss"), ("unknown platform 'grosss'", "gros", "bed", "(those in the store ")),
        (("show", "--configuration", "zz"), (MEASURED.key[:12], "times list")),
        (("show", "--collective", "bcst"), ("bcast",)),
        (("show", "-o", "x.txt"), (".csv", ".parquet")),
        (("delete",), ("--configuration", "--before")),
        (("delete", "--before", "yesterday"), ("yesterday", "2026-11-01")),
        (("delete", "--platform", "bed"), ("3 times", "--yes")),
    ],
)
def test_bad_input_is_one_line(
    store: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: tuple[str, ...]
) -> None:
    code, _, err = run(capsys, *words, "--store", str(store))
    assert (code, err.count("\n")) == (2, 1)
    for word in said:
        assert word in err


def test_a_store_that_is_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "none.sqlite"
    for words in (("show",), ("delete", "--platform", "gros", "--yes")):
        code, _, err = run(capsys, *words, "--store", str(missing))
        assert (code, str(missing) in err, missing.exists()) == (2, True, False)
    assert collwise.configurations(missing).empty


def test_exports_read_back_as_the_rows(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = collwise.results(store, source="measured")
    for ending in ("csv", "json"):
        file = tmp_path / f"times.{ending}"
        assert run(capsys, "show", "--store", str(store), "--source", "measured", "-o", str(file))[0] == 0
        text = file.read_text()
        found = pd.read_csv(io.StringIO(text)) if ending == "csv" else pd.DataFrame(json.loads(text))
        assert found.columns.tolist() == expected.columns.tolist()
        for column in ("algorithm", "procs", "message_bytes", "segment_bytes", "made_at", "maker"):
            assert found[column].tolist() == expected[column].tolist()
        assert found.seconds[:2].tolist() == [1e-3, 2e-3]
        assert found.seconds.isna()[2]
        assert found.half_width_seconds[0] == 1e-4
        details = found.details.map(json.loads) if ending == "csv" else found.details
        assert details[0] == {"launch": "2", "timing": "maximum"}


def test_parquet_needs_its_package(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object, **__: object) -> bytes:
        raise ImportError

    monkeypatch.setattr(pd.DataFrame, "to_parquet", missing)
    code, _, err = run(capsys, "show", "--store", str(store), "-o", str(tmp_path / "a.parquet"))
    assert (code, "pip install pyarrow" in err, (tmp_path / "a.parquet").exists()) == (2, True, False)


@needs("pyarrow")
def test_parquet_reads_back(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.parquet"
    assert run(capsys, "show", "--store", str(store), "-o", str(file))[0] == 0
    found = pd.read_parquet(file)
    assert found.seconds.tolist()[:2] == [1e-3, 2e-3]
    assert json.loads(found.details[0]) == {"launch": "2", "timing": "maximum"}


def test_pruning_deletes_after_consent_only(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("delete", "--store", str(store), "--source", "measured")
    assert run(capsys, *words)[0] == 2
    assert len(collwise.results(store)) == 4
    assert run(capsys, *words, "--before", "2000-01-01", "--yes")[1].endswith("nothing to delete\n")
    assert run(capsys, *words, "--yes")[1] == "deleted: 3 times\n"
    assert collwise.configurations(store).platform.tolist() == ["gros"]
    assert collwise.prune(store, platform="gros") == 1
    with pytest.raises(collwise.UsageError, match="name what to delete"):
        collwise.prune(store)
