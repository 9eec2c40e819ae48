"""The report in a real browser, and what it says."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.common.units import format_size
from collwise.models.implementation_aware.model import ImplementationAware
from collwise.models.registry import BY_PARTS
from collwise.platforms import load
from collwise.platforms.description import Source
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import ENGINES, SimulationContext
from collwise.studies.reports.report import few_elements_line, sections_of, write_report, write_rules
from collwise.studies.reports.tuning_sections import largest_decided
from collwise.validation.exports.expressed import Substitution
from collwise.validation.library_defaults.baselines import BASELINES
from collwise.validation.openmpi.rules_file import parse_rules
from collwise.validation.select.consumers import algorithms_for, consumers_of
from collwise.validation.select.select import select_by_model
from collwise.validation.select.tuning import Tuning, decided, tune
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import DECISION_SIZES, TOLERANCE_PERCENT
from collwise.validation.times.measured import Measurement
from tests.browser import Browser, browser
from tests.needs import need, needs

WIDTHS = (400, 800, 1400)
COLLECTIVES = ("bcast", "gather")


@pytest.fixture(scope="module")
def tuning(tmp_path_factory: pytest.TempPathFactory) -> Tuning:
    need("smpi")
    sizes = {name: (65536, 262144, 1048576) for name in COLLECTIVES}
    with Store(tmp_path_factory.mktemp("store") / "timings.sqlite") as store:
        found = tune(
            load("exact"), COLLECTIVES, (4, 6), SimulationContext(store), BASELINES["openmpi-4.1"],
            segments=(8192, 65536), sizes=sizes,
        )  # fmt: skip
    return decided(found)


@pytest.fixture(scope="module")
def measured(tuning: Tuning) -> dict[str, Measurement]:
    """Made-up measured broadcasts, which take a tenth longer than simulated ones."""
    timings = {
        case: replace(one, seconds=one.seconds * 1.1, half_width_seconds=one.seconds / 50)
        for case, one in tuning.comparisons["bcast"].sweep.timings.items()
    }
    return {"bcast": Measurement("exact", "bcast", "Open MPI 4.1.4", 1, timings, ("0",))}


@pytest.fixture(scope="module")
def page(tuning: Tuning, measured: dict[str, Measurement], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_rules([tuning], folder)
    return write_report([tuning], folder, [sections_of(tuning, folder, measured)], "collwise report --platform exact")


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
    figures = chromium.evaluate("[...document.images].map(one => [one.src, one.alt, one.naturalWidth, one.width])")
    assert len(figures) == 5 * len(COLLECTIVES) + 2  # one of measured times, one of errors
    for source, words, natural, shown in figures:
        assert source.startswith("data:image/svg+xml;base64,")
        assert natural > 0
        assert shown >= 640  # readable: it is scrolled, not shrunk to the window
        assert len(words) > 20


@needs("smpi")
def test_what_to_do_first_comes_first(page: Path, tuning: Tuning) -> None:
    text = page.with_suffix(".md").read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    assert headings[1].startswith("What to do first on ")
    assert headings[-1] == "How it was made"
    for said in (
        f"coll_tuned_dynamic_rules_filename {page.parent / 'exact-openmpi-4.1.rules'} --mca coll ^han,hcoll,ucc -n P ",
        f"collwise run --library openmpi --procs P --table {page.parent / 'exact-collwise.table'} -- PROGRAM",
        "collwise report --platform exact",
        f"export OMPI_MCA_coll_tuned_dynamic_rules_filename={page.parent / 'exact-openmpi-4.1.rules'}\n",
        "export OMPI_MCA_coll=^han,hcoll,ucc\n",
        "srun --mpi=pmix -n P PROGRAM",
        f"coll_tuned_dynamic_rules_filename = {page.parent / 'exact-openmpi-4.1.rules'}\n",
        f"--decisions {page.parent / 'exact-decisions.json'} --procs ",
        "differ from measured ones by 9.1 % in the median",
        tuning.comparisons["gather"].sweep.configuration.key[:12],
    ):
        assert said in text
    assert text.index("mpirun --mca") < text.index("By simulated times")  # what to do comes before why
    assert "nothing was measured" not in text
    assert re.search(r"^\| bcast \| 6 \| x [\d.]+ \|", text, re.MULTILINE)


@needs("smpi")
def test_gains_are_ratios_of_simulated_times(tuning: Tuning) -> None:
    result = tuning.comparisons["bcast"]
    gains = {(one.procs, one.message_bytes): one for one in tuning.gains("bcast")}
    assert set(gains) == {(row.procs, row.message_bytes) for row in result.rows}
    for row in result.rows:
        gain = gains[row.procs, row.message_bytes]
        assert gain.rules.choice == tuning.decisions["bcast"].choose(row.procs, row.message_bytes)
        assert gain.rules.seconds == row.simulated[gain.rules.choice.label]
        assert gain.ratio == row.baseline.seconds / gain.rules.seconds
        assert gain.rules.slowdown == pytest.approx(gain.rules.seconds / row.best.seconds - 1)


@needs("smpi")
def test_figures_beside_markdown_are_those_of_the_page(page: Path) -> None:
    text = page.with_suffix(".md").read_text(encoding="utf-8")
    html = page.read_text(encoding="utf-8")
    names = re.findall(r"\]\((report-[\w-]+\.svg)\)", text)
    assert len(names) == html.count("<img ")
    for name in names:
        data = (page.parent / name).read_bytes()
        ElementTree.fromstring(data)
        assert base64.b64encode(data).decode() in html


@pytest.fixture(scope="module")
def without_model(tmp_path_factory: pytest.TempPathFactory) -> Tuning:
    """The choices of the schedule engine for 4 of 8 processes, with no model."""
    sizes = {"allreduce": (1024, 65536)}
    with Store(tmp_path_factory.mktemp("engine") / "timings.sqlite") as store:
        context = SimulationContext(store, ENGINES["schedule"])
        found = tune(
            load("exact"), ("allreduce",), (4,), context, BASELINES["openmpi-4.1"],
            segments=(8192,), sizes=sizes, model=None,
        )  # fmt: skip
    return decided(found, "simulated", sizes)


def test_a_report_without_a_model_says_nothing_of_one(without_model: Tuning, tmp_path: Path) -> None:
    page = write_report([without_model], tmp_path, [sections_of(without_model, tmp_path)])
    text = page.with_suffix(".md").read_text(encoding="utf-8")
    assert "model" not in text.lower().replace(str(tmp_path), "")
    assert re.search(r"^\| allreduce \| 2 \| ", text, re.MULTILINE)
    result = without_model.comparisons["allreduce"]
    assert not result.has_model
    assert [row.best.seconds for row in result.rows] == [min(row.simulated.values()) for row in result.rows]
    with pytest.raises(UsageError, match="without a model"):
        decided(without_model, "predicted")


def test_the_page_says_what_free_messages_make_look_good(tmp_path: Path) -> None:
    with Store(tmp_path / "timings.sqlite") as store:
        context = SimulationContext(store, ENGINES["schedule"])
        found = tune(
            load("gros"), ("allreduce", "barrier"), (4,), context, BASELINES["openmpi-4.1"],
            segments=(8192,), sizes={"allreduce": (65536,), "barrier": (0,)}, model=None,
        )  # fmt: skip
    made = decided(found, "simulated", {"allreduce": (65536,), "barrier": (0,)})
    assert list(made.decisions) == ["allreduce"]
    text = write_report([made], tmp_path, [sections_of(made, tmp_path)]).with_suffix(".md").read_text()
    assert "has no overheads (os, or, ois)" in text
    assert "The barrier therefore has no rules." in text
    assert "### Barrier on " in text


def test_the_page_says_which_short_messages_the_rules_leave_out(without_model: Tuning, tmp_path: Path) -> None:
    def said(tuning: Tuning) -> list[str]:
        notes = sections_of(tuning, tmp_path)[0].notes
        return [line for line in notes[0].lines if line.startswith("Shorter messages")]

    (line,) = said(without_model)
    assert "library's own decision: the rules decide allreduce from 1 KiB on; a report with smaller --sizes" in line
    (other,) = said(replace(without_model, platform=load("gros")))
    assert other.endswith("without overheads in the description these cannot be decided.")
    with Store(tmp_path / "timings.sqlite") as store:
        sizes = {"allreduce": (8, 65536)}
        context = SimulationContext(store, ENGINES["schedule"])
        baseline = BASELINES["openmpi-4.1"]
        found = tune(load("exact"), ("allreduce",), (4,), context, baseline, segments=(0,), sizes=sizes, model=None)
    assert not said(decided(found, "simulated", sizes))


def test_rules_are_drawn_up_to_the_largest_count_that_was_timed(without_model: Tuning, tmp_path: Path) -> None:
    platform, decisions = without_model.platform, without_model.decisions["allreduce"]
    assert largest_decided(platform, decisions) == 4 < platform.max_procs(1)
    text = (
        write_report([without_model], tmp_path, [sections_of(without_model, tmp_path)]).with_suffix(".md").read_text()
    )
    most = platform.max_procs(1)
    assert f"decided for up to 4 processes. For more, up to the {most} of the platform, they repeat" in text
    assert "What the rules choose at P = 4 and every m" in text


def test_sizes_that_are_asked_for_are_decided(without_model: Tuning) -> None:
    assert min(start for start, _ in without_model.decisions["allreduce"].rules[4]) == 1024
    usual = decided(without_model, "simulated").decisions["allreduce"]
    assert usual.rules[4][0][0] == 65536  # by default nothing below 8 KiB is


@needs("smpi")
def test_formulas_decide_for_every_count(tuning: Tuning) -> None:
    assert largest_decided(tuning.platform, tuning.decisions["bcast"]) == tuning.platform.max_procs(1)


def test_gains_are_those_of_the_rules_file(tmp_path: Path) -> None:
    """Rabenseifner's algorithm needs 16 elements, so that rules name it from 256 B on, and untuned Open MPI never."""
    sizes = {"allreduce": (64, 128, 65536)}
    with Store(tmp_path / "timings.sqlite") as store:
        context = SimulationContext(store, ENGINES["schedule"])
        found = tune(
            load("exact"), ("allreduce",), (4, 8), context, BASELINES["openmpi-4.1"],
            segments=(0,), sizes=sizes, model=None,
        )  # fmt: skip
    tuning = decided(found, "simulated", sizes)
    write_rules([tuning], tmp_path)
    rules = parse_rules((tmp_path / "exact-openmpi-4.1.rules").read_text())
    entry = Catalogue.load().collective("allreduce")
    names = {one.openmpi["4.1"]: name for name, one in entry.algorithms.items() if "4.1" in one.openmpi}
    gains = tuning.gains("allreduce")
    assert len(gains) == 6
    for one in gains:
        rule = rules.lookup(entry.openmpi_collective, one.procs, one.message_bytes)
        assert one.rules.choice.algorithm == ("library decides" if rule is None else names[rule.algorithm])
        if rule is None:
            assert one.ratio == 1
        assert one.ratio >= 1 / 1.01
    page = write_report([tuning], tmp_path, [sections_of(tuning, tmp_path)])
    text = page.with_suffix(".md").read_text(encoding="utf-8")
    assert ("too few elements" in text) == bool(tuning.substituted)
    assert "slower than the default at" in text
    assert "0 of 6" in text
    guessed = Source("os and or: estimated: as on another interconnect", "no measurement")
    doubtful = replace(tuning, platform=replace(tuning.platform, sources=(guessed,)))
    notes = {one.title: one.lines for one in sections_of(doubtful, tmp_path)[0].notes}
    assert notes["Figures of this description that are estimates, not measured"] == [guessed.what]


@needs("smpi")
def test_predicted_rules_are_those_of_select_and_the_page_says_what_they_lose(tuning: Tuning, page: Path) -> None:
    decisions, grid = tuning.decisions["bcast"], tuning.comparisons["bcast"].grid
    procs = tuple(range(2, tuning.platform.max_procs(1) + 1))
    model = ImplementationAware(tuning.parameters, BY_PARTS)
    expressible = algorithms_for("bcast", *consumers_of("bcast"))
    grid = replace(grid, procs=procs, message_bytes=DECISION_SIZES["bcast"], algorithms=expressible)
    selected = select_by_model(model, grid, sampled=True, tolerance=TOLERANCE_PERCENT / 100, switches=True)
    assert (decisions.rules, decisions.between) == (selected.rules, selected.between)
    assert decisions.between is not None
    assert f"slower than the best by {decisions.between}" in page.with_suffix(".md").read_text(encoding="utf-8")


def test_the_points_have_what_the_rules_say(tuning: Tuning, page: Path) -> None:
    text = (page.parent / "report.md").read_text()
    section = text[text.index("### Broadcast") :]
    (heads,) = re.findall(r"^\| P \|.*\| rules \(%\) \|$", section[: section.index("### Gather")], re.MULTILINE)
    for one in tuning.gains("bcast"):
        cell = rf"\**{re.escape(one.rules.choice.label)} \(\d+\)\**"
        assert re.search(rf"^\| {one.procs} \| {format_size(one.message_bytes)} .*\| {cell} \|$", section, re.MULTILINE)
    assert len(heads.split("|")) == len(section[section.index(heads) :].splitlines()[2].split("|"))


def test_the_terminal_says_where_messages_may_have_few_elements(tuning: Tuning) -> None:
    few = Substitution("allreduce", 8, 1024, Choice("ring"), Choice("linear"), 0.5, too_few=True)
    assert few_elements_line(replace(tuning, substituted=(replace(few, too_few=False),))) == ""
    line = few_elements_line(replace(tuning, substituted=(few, few)))
    assert "2 choices of allreduce" in line
    assert str(few) in line
    assert line.endswith("the report lists all")
