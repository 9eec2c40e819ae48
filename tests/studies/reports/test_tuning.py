"""Results of `tune`: gains against the rules file, sentences on them, and the page in a real browser."""

from __future__ import annotations

import base64
import math
import re
import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import collwise
from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError, warn
from collwise.platforms import Platform, load
from collwise.platforms.changes import Change, changed
from collwise.platforms.description import Source
from collwise.studies.present.shown import Table, shown
from collwise.studies.reports import sureness, tuning as report
from collwise.studies.reports.sureness import DISCREPANCY, sure_points
from collwise.tuning import RULES, Tuned
from collwise.validation.compare.scores import Picked
from collwise.validation.libraries.openmpi_rules import parse_rules
from collwise.validation.libraries.sayable import for_consumer
from collwise.validation.measurement.confidence import Discrepancy, outlooks_of
from collwise.validation.select.decisions import loss_of
from collwise.validation.times.choice import Choice
from collwise.validation.times.times import Times
from tests.browser import Browser, browser
from tests.free import free
from tests.needs import need, needs

WIDTHS = (400, 800, 1400)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store") / "timings.sqlite"


@pytest.fixture(scope="module")
def tuned(store: Path) -> Tuned:
    """Made-up times, measured a tenth longer than simulated ones, stand beside those of the broadcast."""
    with collwise.session(store, "schedule") as context:
        asked = {"procs": "4,8", "sizes": "64,128,64KiB", "segments": "8KiB,64KiB"}
        found = collwise.tune("exact", "bcast,allreduce", **asked, output=store.parent / "tuned", context=context)
    right = found.times["bcast"]
    data = right.data.assign(seconds=right.seconds * 1.1, half_width_seconds=right.seconds / 50)
    return replace(found, measured={"bcast": replace(right, source="measured", maker="Open MPI 4.1.4", data=data)})


def test_expected_losses_of_rules_and_untuned_stand_in_one_sentence(tuned: Tuned) -> None:
    gains = [one for name in tuned.scores for one in tuned.gains(name).flat if np.isfinite(one)]
    first, *_ = report.sentences(tuned)
    slower = sum(one < 0.99 for one in gains)
    assert f"(geometric mean of {len(gains)} points). It is over 1 % faster than the rules" in first
    assert f"faster than the rules at {slower or 'none'} of these points" in first
    assert tuned.baseline is not None
    assert shown(tuned).facts["baseline"] == tuned.baseline.name
    facts = shown(tuned).facts["sure"]
    assert (1 + facts["untuned"]) / (1 + facts["mean"]) == pytest.approx(statistics.geometric_mean(gains))
    (said,) = [line for line in report.sentences(tuned) if line.startswith("Expected loss against the fastest choices")]
    assert said.endswith(
        f" of these {len(gains)} points: {100 * facts['mean']:.0f} %; without rules Open MPI 4.1 loses "
        f"{100 * facts['untuned']:.0f} %, and takes {statistics.geometric_mean(gains):.2f} times as long there."
    )


def test_the_library_s_loss_is_the_mean_of_its_own_outlooks(tuned: Tuned) -> None:
    """The loss of untuned Open MPI, drawn from the discrepancy as that of the choices is."""
    assert tuned.baseline is not None
    losses = []
    for table in tuned.said:
        scores = tuned.scores[table.collective]
        rules = {
            procs: [
                (size, scores.pick(tuned.baseline.title, i, j).choice) for j, size in enumerate(right.message_bytes)
            ]
            for right in [scores.right]
            for i, procs in enumerate(right.procs)
        }
        losses += [math.log1p(one.outlook.mean) for one in outlooks_of(replace(table, rules=rules), DISCREPANCY)]
    facts = shown(tuned).facts["sure"]
    assert len(losses) == facts["points"]
    assert math.log1p(facts["untuned"]) == pytest.approx(statistics.fmean(losses), rel=0.02)


@pytest.fixture(scope="module")
def page(tuned: Tuned) -> Path:
    return report.write_report(tuned)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    need("browser")
    with browser() as found:
        yield found


@needs("browser")
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_wider_than_the_window_and_nothing_is_fetched(page: Path, chromium: Browser, dark: bool) -> None:
    for width in WIDTHS:
        chromium.open(page.as_uri(), width, dark=dark)
        chromium.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        assert chromium.evaluate("document.documentElement.scrollWidth") <= width
        wide = (
            "[...document.querySelectorAll('body *')].filter(one => !one.closest('.scroll') && "
            "one.getBoundingClientRect().right > innerWidth + 1).map(one => one.outerHTML.slice(0, 80))"
        )
        assert chromium.evaluate(wide) == []
        assert chromium.requests == [page.as_uri()]
    paper = chromium.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(22, 24, 27)" if dark else "rgb(255, 255, 255)")


@needs("browser")
def test_every_link_leads_somewhere(page: Path, chromium: Browser) -> None:
    chromium.open(page.as_uri())
    links = chromium.evaluate("[...document.links].map(one => one.getAttribute('href'))")
    assert len([link for link in links if link.startswith("#")]) == chromium.evaluate(
        "document.querySelectorAll('main section').length"
    )
    for link in links:
        if not link.startswith("#"):
            assert (page.parent / link).stat().st_size > 0
            continue
        chromium.evaluate(f"document.querySelector('a[href=\"{link}\"]').click()")
        top = chromium.evaluate(f"document.getElementById('{link[1:]}').getBoundingClientRect().top")
        at_end = chromium.evaluate("innerHeight + scrollY >= document.documentElement.scrollHeight - 2")
        assert 0 <= top < 900 if at_end else abs(top) < 2, link


@needs("browser")
def test_every_fold_opens_closes_and_is_open_in_print(page: Path, chromium: Browser) -> None:
    chromium.open(page.as_uri())
    folds = chromium.evaluate("document.querySelectorAll('details').length")
    assert folds >= 4
    for number in range(folds):
        one = f"document.querySelectorAll('details')[{number}]"
        was = chromium.evaluate(f"{one}.open")
        chromium.evaluate(f"{one}.querySelector('summary').click()")
        assert chromium.evaluate(f"{one}.open") is not was
        assert chromium.evaluate(f"{one}.lastElementChild.checkVisibility()") is not was
    assert chromium.printed().startswith(b"%PDF")
    assert chromium.evaluate("[...document.querySelectorAll('details')].every(one => one.open)")


@needs("browser")
def test_figures_are_drawn_and_have_words_for_them(page: Path, chromium: Browser) -> None:
    chromium.open(page.as_uri(), 400)
    chromium.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    figures = chromium.evaluate("[...document.images].map(one => [one.src, one.alt, one.naturalWidth, one.width])")
    assert len(figures) == 2 * 2 + 1  # two maps of each collective, and the gains
    for source, words, natural, wide in figures:
        assert source.startswith("data:image/svg+xml;base64,")
        assert natural > 0
        assert wide >= 640  # readable: it is scrolled, not shrunk to the window
        assert len(words) > 20


def test_gains_are_those_of_the_rules_file(tuned: Tuned) -> None:
    """Rabenseifner's algorithm needs 16 elements, so that rules name it from 256 B on, and untuned Open MPI never."""
    rules = parse_rules(tuned.file("-openmpi-4.1.rules").read_text())
    for name, scores in tuned.scores.items():
        entry = Catalogue.load().collective(name)
        names = {one.openmpi["4.1"]: algorithm for algorithm, one in entry.algorithms.items() if "4.1" in one.openmpi}
        gains, right = tuned.gains(name), scores.right
        assert gains.shape == right.best.shape
        for i, j in np.ndindex(gains.shape):
            rule = rules.lookup(entry.openmpi_collective, right.procs[i], right.message_bytes[j])
            ours: Picked = scores.pick(RULES, i, j)
            untuned = scores.pick("Open MPI 4.1", i, j)
            assert ours.name == (untuned.name if rule is None else names[rule.algorithm])
            assert gains[i, j] == untuned.seconds / ours.seconds
            assert gains[i, j] >= 1 / 1.01


def test_rows_have_what_runs_by_the_rules_and_untuned(tuned: Tuned) -> None:
    presented = shown(tuned)
    assert {(one["collective"], one["procs"], one["message_bytes"]) for one in presented.rows} == {
        (name, *point) for name, times in tuned.times.items() for point in times.grid.points
    }
    assert all(one["gain"] == one["untuned_seconds"] / one["seconds"] for one in presented.rows)
    sure = presented.facts["sure"]["sure"]
    assert sum(one["sure"] for one in presented.rows) == sure
    listed = [row for row in report._sure_table(tuned).rows if row[2] != "-"]
    assert sum(len(str(row[2]).split(", ")) for row in listed) == sure
    (table,) = (one for one in presented.parts if isinstance(one, Table))
    assert [row[0] for row in table.rows] == ["bcast", "allreduce"]
    assert [row[4] for row in table.rows] == ["0 of 6"] * 2
    assert any(str(one).startswith(f"take {tuned.rules.path}") for one in presented.parts)


def test_assumed_memory_is_named_where_processes_share_it(tuned: Tuned) -> None:
    made = collwise.describe("mine", 4, "infiniband-hdr", cpus=1, cores=8, processes=8)
    said = "the messages within a node share 20 GB/s of memory bandwidth"
    shared = replace(tuned, platform=made, times={name: _on_nodes(times, 8) for name, times in tuned.times.items()})
    (first,) = report.assumptions(shared)
    assert said in first
    assert first.endswith(" --factors memory=x0.5:x5")
    assert shown(shared).parts[0] == first
    assert not report.assumptions(replace(tuned, platform=made))
    assert not report.assumptions(replace(shared, platform=replace(made, sources=())))


@pytest.mark.parametrize(("interconnect", "is_fitted"), [("infiniband-hdr", True), ("omni-path", False)])
def test_choices_are_less_sure_where_no_measured_collective_was_fitted(
    tuned: Tuned, interconnect: str, is_fitted: bool
) -> None:
    unmeasured = replace(tuned, measured={}, platform=collwise.describe("mine", 4, interconnect))
    assert unmeasured.is_fitted == is_fitted
    assert ("less sure" in " ".join(map(str, shown(unmeasured).parts))) != is_fitted


def test_choices_that_depend_on_an_assumed_memory_rate_are_not_sure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sureness, "DISCREPANCY", Discrepancy(1e-9, 1e-9, 1e-9, 5.0))
    sizes = "64KiB,1MiB,4MiB"
    with collwise.session(tmp_path / "s.sqlite", "schedule") as context:
        asked = {"procs": 128, "segments": "64KiB", "ppn": 32, "context": context}
        found = collwise.tune("infiniband-hdr100", "bcast,allreduce", sizes=sizes, nodes=4, **asked)
        assert found.platform is not None
        expected = set()
        for factor in ("x0.5", "x5"):
            there = changed(found.platform, [Change("memory", factor)]).platform
            times = collwise.simulate(there, "bcast,allreduce", sizes=sizes, consumer="openmpi-4.1", **asked)
            for table in found.said:
                right = times[table.collective]
                for point in sure_points(table):
                    choice = table.choice_at(*point)
                    assert choice is not None
                    best = float(right.best_seconds.sel(procs=point[0], message_bytes=point[1]))
                    if right.seconds_of(choice, *point) > 1.05 * best:
                        expected.add((table.collective, *point))
    assert expected
    assert found.unsettled == expected
    facts = shown(found).facts["sure"]
    assert (facts["sure"], facts["unsettled"]) == (facts["points"] - len(expected), len(expected))


def _on_nodes(times: Times, per_node: int) -> Times:
    return times.of_grid(replace(times.grid, processes_per_node=per_node))


def test_nothing_decided_between_process_counts_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warn.cache_clear()
    with collwise.session(tmp_path / "s.sqlite", "schedule") as context:
        collwise.tune("gros", "bcast", procs="2,16", sizes="1KiB", output=tmp_path, context=context)
    assert capsys.readouterr().err.count("nothing was decided") == 1


def test_the_table_for_libcollwise_leaves_to_open_mpi_what_its_rules_leave_to_it(tmp_path: Path) -> None:
    """Open MPI's rules cannot have rabenseifner where calls may have fewer elements than processes."""
    with collwise.session(tmp_path / "s.sqlite", "schedule") as context:
        asked = {"nodes": 64, "ppn": 32, "procs": 2048, "sizes": "8KiB:32KiB:x2", "segments": 0, "context": context}
        names = "recursive_doubling,rabenseifner"
        found = collwise.tune("infiniband-hdr100", "allreduce", algorithms=names, output=tmp_path, **asked)
    assert "# from 16 KiB: Open MPI decides" in found.rules.text
    assert "allreduce 2048 32 16384 default" in (tmp_path / f"{found.name}-libcollwise.table").read_text().splitlines()


def test_times_are_taken_as_they_are(tuned: Tuned, tmp_path: Path) -> None:
    again = collwise.tune(tuned.file(".times"), output=tmp_path)
    assert [one.rules for one in again.decisions.tables] == [one.rules for one in tuned.decisions.tables]
    assert again.rules.text == tuned.rules.text
    with pytest.raises(UsageError, match="--procs is for simulated clusters"):
        collwise.tune(tuned.times, procs=4)


def test_replaced_results_are_said_before_the_work_begins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with collwise.session(tmp_path / "s.sqlite", "schedule") as context:
        for said in (False, True):
            collwise.tune("exact", "bcast", procs=4, sizes="8KiB", output=tmp_path, context=context)
            assert ("exact.html and the files that belong to it are replaced" in capsys.readouterr().err) == said


def test_what_is_not_known_of_a_cluster_is_assumed_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with collwise.session(tmp_path / "s.sqlite", "schedule") as context:
        asked = {"procs": 4, "sizes": "64KiB", "segments": "8KiB", "context": context}
        collwise.tune("infiniband-hdr100", "bcast", nodes=4, output=tmp_path, **asked)
        assert "assumed for infiniband-hdr100-x4: one switch" in capsys.readouterr().err
        assert len(load(str(tmp_path / "infiniband-hdr100-x4.toml")).hosts) == 4
        assert collwise.tune(8, "bcast", **asked).name == "infiniband-hdr-x8"
        assert "the interconnect infiniband-hdr" in capsys.readouterr().err
        with pytest.raises(UsageError, match="unknown cluster 'hdr100'; did you mean infiniband-hdr100"):
            collwise.tune("hdr100", "bcast", **asked)
        with pytest.raises(UsageError, match="--nodes applies only to an interconnect"):
            collwise.tune("exact", "bcast", nodes=4, **asked)


def test_what_is_known_of_a_cluster_is_not_assumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = {"nodes": 4, "ppn": 4, "cpus": 2, "memory_bytes_per_second": 5e10, "procs": 8, "sizes": "64KiB"}
    with collwise.session(tmp_path / "s.sqlite", "schedule") as context:
        found = collwise.tune("infiniband-hdr100", "bcast", segments="8KiB", context=context, **known)
    assert isinstance(found.platform, Platform)
    assert (found.platform.cpus_per_node, found.platform.memory_bytes_per_second) == (2, 5e10)
    said = capsys.readouterr().err
    assert "CPU" not in said
    assert "--memory-gbytes" not in said
    with pytest.raises(UsageError, match="--memory-gbytes is for simulated clusters"):
        collwise.tune(found.times, memory_bytes_per_second=5e10)


def test_slowdowns_are_not_against_doubtful_choices(tmp_path: Path) -> None:
    """A linear alltoall of 64 processes is left out of the rules, and so of what they are compared with."""
    with collwise.session(tmp_path / "s.sqlite", "schedule") as context:
        asked = {"procs": 64, "sizes": "8KiB,16KiB", "context": context}
        rules, allowed = (collwise.tune("gros", "alltoall", doubtful=item, **asked) for item in (False, True))
    assert rules.times["alltoall"].best_choice(64, 8192) == Choice("linear")
    assert all(row["slowdown"] <= 0.01 for row in report.points(rules))
    assert all(loss_of(table).worst <= 0.01 for table in rules.decisions.tables)
    assert {row["algorithm"] for row in report.points(allowed)} == {"linear"}


def test_process_counts_are_steps_up_to_all_of_the_cluster() -> None:
    found = collwise.tune("jupiter", "barrier", ppn=1)
    assert found.times["barrier"].procs == (2, 9, 36)


def test_figures_beside_markdown_are_those_of_the_page(page: Path) -> None:
    text = page.with_suffix(".md").read_text(encoding="utf-8")
    html = page.read_text(encoding="utf-8")
    names = re.findall(r"\]\((exact-[\w-]+\.svg)\)", text)
    assert len(names) == html.count("<img ") == 2 * 2 + 1
    for name in names:
        data = (page.parent / name).read_bytes()
        ElementTree.fromstring(data)
        assert base64.b64encode(data).decode() in html


def test_the_page_says_what_is_estimated_and_what_looks_too_good(tuned: Tuned, store: Path) -> None:
    guessed = Source("os and or: estimated: as on another interconnect", "no measurement")
    assert tuned.platform is not None
    doubted = replace(tuned, platform=replace(tuned.platform, sources=(guessed,)), folder=store.parent / "doubted")
    text = report.write_report(doubted).with_suffix(".md").read_text(encoding="utf-8")
    assert f"estimates, not measured:\n\n- {guessed.what}\n" in text
    with collwise.session(store, "schedule") as context:
        found = collwise.tune(
            free(), "bcast", procs="4,8", segments="8KiB", output=store.parent / "free", context=context
        )
    text = found.file(".md").read_text(encoding="utf-8")
    assert "bcast below 8 KiB" in text
    assert "has no overheads (os, or, ois)" in text
    assert "up to the platform's 124, the rules repeat the choices for 8" in text


def test_ways_within_a_node_are_only_in_the_table_of_libcollwise(tmp_path: Path) -> None:
    """Shared memory is the fastest for a short broadcast on a node; rules of Open MPI get a choice they can express."""
    asked: dict[str, Any] = {"procs": 16, "ppn": 4, "sizes": "8,64KiB"}
    with collwise.session(tmp_path / "timings.sqlite", engine="schedule") as context:
        usual = collwise.tune("jupiter", "bcast", consumer="collwise", context=context, **asked)
        found = collwise.tune(
            *("jupiter", "bcast"), consumer="collwise", within="point-to-point,shared-memory", context=context, **asked
        )
        answer = collwise.whatif(
            "jupiter", "bandwidth=x1", "bcast", within="point-to-point,shared-memory", context=context, **asked
        )
    assert {choice.parameter for choice in usual.decisions.tables[0].choices} == {0}
    assert not any(choice.algorithm.startswith("tasks") for choice in usual.times["bcast"].choices)
    assert "within=1" in found.rules.text
    assert (found.times["bcast"].best_seconds <= usual.times["bcast"].best_seconds).all()
    (said,), replaced = for_consumer(found.decisions.tables, "openmpi-4.1")
    assert not any(choice.parameter for choice in said.choices)
    assert any("tasks" in item.chosen.algorithm for item in replaced)
    before = answer["bcast"].times.best_seconds.isel(change=0).values
    assert (before == found.times["bcast"].best_seconds.values).all()
