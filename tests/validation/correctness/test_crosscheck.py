"""Ours against what others wrote: the judge on made-up rows, a few real comparisons, and (slow) all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from collwise.algorithms.catalogue import Catalogue
from collwise.platforms import load
from collwise.studies.cli import check
from collwise.studies.cli.main import main
from collwise.validation.correctness import crosscheck, crosscheck_openmpi, crosscheck_smpi
from collwise.validation.correctness.crosscheck import Explanation, findings
from collwise.validation.correctness.crosscheck_openmpi import (
    OpenmpiRow,
    compare_with_openmpi,
    misnamed_algorithms,
    openmpi_names,
)
from collwise.validation.correctness.crosscheck_smpi import SmpiRow, compare_with_smpi
from tests.command_line import printed, succeeded
from tests.needs import needs

SAME = SmpiRow("gather", "linear", "ompi_basic_linear", 16, 1920, 0, 0, 1e-3, 1.01e-3)
SLOWER = replace(SAME, algorithm="binomial", ours_seconds=1.3e-3, theirs_seconds=1e-3)
FORCED = OpenmpiRow("bcast", "chain", 3, "pipeline", 5, 0, (3840,), 2, True, 24, 24, 800, 800, True)
WHY = Explanation("Other order.", 1.0, 1.4)


@pytest.mark.parametrize(
    ("rows", "explanations", "said"),
    [
        ([SAME], {}, []),
        ([SAME, SLOWER], {("gather", "binomial"): WHY}, []),
        ([SLOWER], {}, ["differs for no known reason"]),
        ([SLOWER], {("gather", "binomial"): replace(WHY, max_ratio=1.2)}, ["differs for no known reason"]),
        ([SAME], {("gather", "linear"): WHY}, ["gather linear: explained, but nothing differs"]),
        ([SAME], {("gather", "linear"): replace(WHY, by_default=False)}, []),
        ([replace(SAME, theirs_seconds=float("nan"), problem="deadlock")], {}, ["deadlock"]),
        ([FORCED], {}, []),
        ([replace(FORCED, results_agree=False)], {}, ["results differ"]),
        ([replace(FORCED, same_traffic=False)], {}, ["differs for no known reason"]),
        ([replace(FORCED, same_traffic=False)], {("bcast", "chain"): Explanation("Empty messages.")}, []),
        ([replace(FORCED, results_agree=False, same_traffic=False, problem="stopped")], {}, ["stopped"]),
    ],
)
def test_findings(rows: list, explanations: dict, said: list[str]) -> None:
    found = findings(rows, explanations, complete=True)
    assert len(found) == len(said)
    assert all(text in line for text, line in zip(said, found, strict=True))


def test_a_part_says_nothing_about_idle_explanations() -> None:
    assert findings([SAME], {("gather", "linear"): WHY, ("bcast", "chain"): WHY}, complete=False) == []


def test_two_per_cent_either_way() -> None:
    ratios = (0.97, 0.981, 1.019, 1.03)
    rows = [replace(SAME, ours_seconds=ratio, theirs_seconds=1.0) for ratio in ratios]
    assert [row.differs for row in rows] == [True, False, False, True]
    assert replace(SAME, theirs_seconds=float("nan")).differs
    assert replace(SAME, theirs_seconds=0.0).differs
    assert not replace(SAME, ours_seconds=0.0, theirs_seconds=0.0).differs


def test_tables_name_algorithms_of_the_catalogue() -> None:
    catalogue = Catalogue.load()
    for key in (*crosscheck.SMPI, *crosscheck.OPENMPI, *crosscheck.NOT_IN_SMPI, *crosscheck.OPENMPI_NAMES):
        catalogue.algorithm(*key)
    for key in crosscheck.SMPI:
        assert catalogue.algorithm(*key).smpi
    for key in crosscheck.NOT_IN_SMPI:
        assert not catalogue.algorithm(*key).smpi


@pytest.mark.parametrize("name", ["grisou", "hcl16"])
def test_reductions_cost_nothing_where_they_are_compared_with_those_of_smpi(name: str) -> None:
    platform = load(name)
    costly = replace(platform, calibration=replace(platform.calibration, reduce_seconds_per_byte=1e-9))
    assert 'value="1e-09"' in costly.xml_text()
    assert crosscheck_smpi.without_processor_costs(costly).xml_text() == (
        crosscheck_smpi.without_processor_costs(platform).xml_text()
    )


@needs("smpi")
def test_the_same_algorithm_takes_the_same_simulated_time(monkeypatch: pytest.MonkeyPatch) -> None:
    names = (("gather", "linear"), ("gather", "binomial"), ("scatter", "linear"), ("bcast", "chain"))
    chosen = [Catalogue.load().algorithm(*name) for name in names]
    monkeypatch.setattr(crosscheck_smpi, "compared_algorithms", lambda _: chosen)
    rows = compare_with_smpi(load("grisou"), None, [6, 8], [1920])
    assert len(rows) == 2 * len(names)
    assert all(not row.problem and row.ratio == pytest.approx(1, abs=1e-9) for row in rows), rows


@needs("smpi")
def test_segments_are_those_that_smpi_chooses_at_its_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our times equal SMPI's to the last digits only with the same segments."""
    known = Catalogue.load().algorithms()
    chosen = [one for one in known if (one.collective, one.smpi) in crosscheck_smpi._DECISIONS]
    monkeypatch.setattr(crosscheck_smpi, "compared_algorithms", lambda _: chosen)
    rows = compare_with_smpi(load("grisou"), None, [12], [2040, 2048, 20480, 400000])
    same = [row for row in rows if (row.collective, row.algorithm) not in crosscheck.SMPI]
    same += [row for row in rows if row.algorithm == "linear_sync" and row.message_bytes <= 2048]
    same += [row for row in rows if (row.collective, row.algorithm) == ("bcast", "chain")]  # its segments are long here
    assert len(same) == 14
    assert all(not row.problem and row.ratio == pytest.approx(1, abs=1e-9) for row in same), same


@needs("smpi")
def test_another_algorithm_takes_another_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The option that names SMPI's algorithm reaches SMPI."""
    linear = replace(Catalogue.load().algorithm("gather", "linear"), smpi="ompi_binomial")
    monkeypatch.setattr(crosscheck_smpi, "compared_algorithms", lambda _: [linear])
    (row,) = compare_with_smpi(load("grisou"), "gather", [16], [1920])
    assert row.ratio > 2


@needs("smpi")
def test_barriers_take_a_byte_longer_each_message(monkeypatch: pytest.MonkeyPatch) -> None:
    bruck = Catalogue.load().algorithm("barrier", "bruck")
    monkeypatch.setattr(crosscheck_smpi, "compared_algorithms", lambda _: [bruck])
    a_byte = 1 / load("grisou").link_bytes_per_second
    (row,) = compare_with_smpi(load("grisou"), "barrier", [8])
    assert 3 * a_byte < row.ours_seconds - row.theirs_seconds < 2 * 3 * a_byte
    assert not row.differs


@needs("smpi")
def test_an_algorithm_that_smpi_does_not_have_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    linear = replace(Catalogue.load().algorithm("gather", "linear"), smpi="nonsense")
    monkeypatch.setattr(crosscheck_smpi, "compared_algorithms", lambda _: [linear])
    (row,) = compare_with_smpi(load("grisou"), "gather", [4], [1920])
    assert row.problem
    assert row.ours_seconds > 0


@needs("openmpi")
def test_forced_algorithms_send_the_same_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    names = (("gather", "binomial"), ("barrier", "bruck"), ("bcast", "k_chain"))
    chosen = [Catalogue.load().algorithm(*name) for name in names]
    monkeypatch.setattr(crosscheck_openmpi, "forced_algorithms", lambda *_: chosen)
    rows = compare_with_openmpi(None, [5], [4096])
    assert {(row.collective, row.algorithm) for row in rows} == set(names)
    assert all(not row.problem and row.results_agree and row.same_traffic for row in rows), rows


@needs("openmpi")
def test_another_algorithm_sends_other_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    binomial = Catalogue.load().algorithm("gather", "binomial")
    wrong = replace(binomial, openmpi=dict.fromkeys(binomial.openmpi, 1))
    monkeypatch.setattr(crosscheck_openmpi, "forced_algorithms", lambda *_: [wrong])
    (row,) = compare_with_openmpi("gather", [5], [4096])
    assert row.results_agree
    assert not row.same_traffic
    assert row.openmpi_name == "basic_linear"


@needs("openmpi")
def test_open_mpi_has_our_algorithms_under_the_ids_of_the_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    assert openmpi_names()["bcast"][6] == "binomial"
    assert misnamed_algorithms() == []
    monkeypatch.setattr(crosscheck_openmpi, "OPENMPI_NAMES", {})
    assert any("calls id 3 'pipeline'" in line for line in misnamed_algorithms("bcast"))


@needs("smpi")
def test_the_command(tmp_path: Path) -> None:
    part = ("check", "others", "--library", "smpi", "--collective", "barrier", "--procs", "8")
    told = succeeded(*part, cwd=tmp_path)
    assert "ompi_bruck" in told.stdout
    document = printed(succeeded(*part, "--json", cwd=tmp_path).stdout)
    assert document.facts["findings"] == []
    assert all(1 < row["ratio"] < 1.001 for row in document.rows)


@pytest.mark.parametrize(
    ("asked", "complete"),
    [
        ((), ["smpi", "openmpi"]),
        (("--library", "smpi"), ["smpi"]),
        (("--library", "openmpi"), ["openmpi"]),
        (("--collective", "gather"), []),
        (("--procs", "16"), []),
        (("--sizes", "1KiB"), []),
        (("--platform", "gros"), ["openmpi"]),
    ],
)
def test_only_a_complete_comparison_finds_idle_explanations(
    asked: tuple[str, ...], complete: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    idle = Explanation("Idle.", 1.0, 1.0)
    monkeypatch.setattr(check, "compare_with_smpi", lambda *_, **__: [SAME])
    monkeypatch.setattr(check, "compare_with_openmpi", lambda *_, **__: [FORCED])
    monkeypatch.setattr(check, "misnamed_algorithms", lambda _: [])
    monkeypatch.setattr(crosscheck, "SMPI", {("smpi", "idle"): idle})
    monkeypatch.setattr(crosscheck, "OPENMPI", {("openmpi", "idle"): idle})
    with pytest.raises(SystemExit) as ended:
        main(["check", "others", *asked, "--json"])
    assert (ended.value.code or 0) == bool(complete)
    found = printed(capsys.readouterr().out).facts["findings"]
    assert found == [f"{library} idle: explained, but nothing differs" for library in complete]


@pytest.mark.slow
@needs("smpi")
def test_all_that_smpi_has() -> None:
    assert findings(compare_with_smpi(load("grisou")), crosscheck.SMPI, complete=True) == []


@pytest.mark.slow
@needs("openmpi")
def test_all_that_open_mpi_has() -> None:
    assert findings(compare_with_openmpi(), crosscheck.OPENMPI, complete=True) == []
