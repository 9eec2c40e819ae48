"""The report in a real browser, and what it says."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.common.units import format_size
from collwise.platforms import load
from collwise.platforms.description import Source
from collwise.simulator.store import Store
from collwise.simulator.sweeps.context import ENGINES, SimulationContext
from collwise.studies.reports.choices import PlatformChoices, compared_on
from collwise.studies.reports.collective_sections import largest_decided
from collwise.studies.reports.comparison_table import compared_places
from collwise.studies.reports.report import few_elements_line, sections_of, write_report, write_rules
from collwise.validation.libraries.baselines import BASELINES
from collwise.validation.libraries.openmpi_file import parse_rules
from collwise.validation.libraries.sayable import Substitution
from collwise.validation.select.consumers import algorithms_for, consumers_of
from collwise.validation.select.select import select
from collwise.validation.times.choice import Choice
from collwise.validation.times.defaults import DECISION_SIZES, TOLERANCE_PERCENT
from collwise.validation.times.grid import Grid
from collwise.validation.times.sources import predicted
from collwise.validation.times.times import Times
from tests.browser import Browser, browser
from tests.needs import need, needs

WIDTHS = (400, 800, 1400)
COLLECTIVES = ("bcast", "gather")


def decided(found: PlatformChoices, sizes: Mapping[str, Sequence[int]]) -> PlatformChoices:
    """With decisions by the compared times."""
    return found.decided(found.times_to_decide(sizes), sizes)


@pytest.fixture(scope="module")
def choices(tmp_path_factory: pytest.TempPathFactory) -> PlatformChoices:
    need("smpi")
    sizes = {name: (65536, 262144, 1048576) for name in COLLECTIVES}
    with Store(tmp_path_factory.mktemp("store") / "timings.sqlite") as store:
        found = compared_on(
            load("exact"), COLLECTIVES, (4, 6), SimulationContext(store), BASELINES["openmpi-4.1"],
            segments=(8192, 65536), sizes=sizes,
        )  # fmt: skip
    return found.decided(found.predictions_to_decide(DECISION_SIZES), DECISION_SIZES)


@pytest.fixture(scope="module")
def measured(choices: PlatformChoices) -> dict[str, Times]:
    """Made-up measured broadcasts, which take a tenth longer than simulated ones."""
    right = choices.compared["bcast"].right
    data = right.data.assign(seconds=right.seconds * 1.1, half_width_seconds=right.seconds / 50)
    return {"bcast": replace(right, source="measured", maker="Open MPI 4.1.4", data=data)}


@pytest.fixture(scope="module")
def page(choices: PlatformChoices, measured: dict[str, Times], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_rules([choices], folder)
    return write_report([choices], folder, [sections_of(choices, folder, measured)], "collwise report --platform exact")


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
def test_what_to_do_first_comes_first(page: Path, choices: PlatformChoices) -> None:
    text = page.with_suffix(".md").read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    assert headings[1].startswith("What to do first on ")
    assert headings[-1] == "How it was made"
    for said in (
        f"coll_tuned_dynamic_rules_filename {page.parent / 'exact-openmpi-4.1.rules'} --mca coll ^han,hcoll,ucc -n P ",
        f"collwise program run --library openmpi --procs P --table {page.parent / 'exact-collwise.table'} -- PROGRAM",
        "collwise report --platform exact",
        f"export OMPI_MCA_coll_tuned_dynamic_rules_filename={page.parent / 'exact-openmpi-4.1.rules'}\n",
        "export OMPI_MCA_coll=^han,hcoll,ucc\n",
        "srun --mpi=pmix -n P PROGRAM",
        f"coll_tuned_dynamic_rules_filename = {page.parent / 'exact-openmpi-4.1.rules'}\n",
        f"program gain {page.parent / 'exact-decisions.json'} --procs ",
        "differ from measured ones by 9.1 % in the median",
        choices.compared["gather"].right.facts["configuration"][:12],
    ):
        assert said in text
    assert text.index("mpirun --mca") < text.index("By simulated times")  # what to do comes before why
    assert "nothing was measured" not in text
    assert re.search(r"^\| bcast \| 6 \| x [\d.]+ \|", text, re.MULTILINE)


@needs("smpi")
def test_gains_are_ratios_of_simulated_times(choices: PlatformChoices) -> None:
    scores = choices.compared["bcast"]
    gains = {(one.i, one.j): one for one in choices.gains("bcast")}
    assert list(gains) == compared_places(scores)
    for (i, j), gain in gains.items():
        procs, size = scores.right.procs[i], scores.right.message_bytes[j]
        assert gain.rules.choice == choices.decisions["bcast"].choose(procs, size)
        assert gain.rules.seconds == scores.right.seconds_of(gain.rules.choice, procs, size)
        assert gain.ratio == scores.pick("Open MPI 4.1", i, j).seconds / gain.rules.seconds
        assert gain.rules.slowdown == pytest.approx(gain.rules.seconds / scores.pick(None, i, j).seconds - 1)


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
def without_model(tmp_path_factory: pytest.TempPathFactory) -> PlatformChoices:
    """The choices of the schedule engine for 4 of 8 processes, with no model."""
    sizes = {"allreduce": (1024, 65536)}
    with Store(tmp_path_factory.mktemp("engine") / "timings.sqlite") as store:
        context = SimulationContext(store, ENGINES["schedule"])
        found = compared_on(
            load("exact"), ("allreduce",), (4,), context, BASELINES["openmpi-4.1"],
            segments=(8192,), sizes=sizes, model=None,
        )  # fmt: skip
    return decided(found, sizes)


def test_a_report_without_a_model_says_nothing_of_one(without_model: PlatformChoices, tmp_path: Path) -> None:
    page = write_report([without_model], tmp_path, [sections_of(without_model, tmp_path)])
    text = page.with_suffix(".md").read_text(encoding="utf-8")
    assert "model" not in text.lower().replace(str(tmp_path), "")
    assert re.search(r"^\| allreduce \| 2 \| ", text, re.MULTILINE)
    assert not without_model.compared["allreduce"].times
    with pytest.raises(UsageError, match="without a model"):
        without_model.predictions_to_decide(DECISION_SIZES)


def test_the_page_says_what_free_messages_make_look_good(tmp_path: Path) -> None:
    with Store(tmp_path / "timings.sqlite") as store:
        context = SimulationContext(store, ENGINES["schedule"])
        found = compared_on(
            load("gros"), ("allreduce", "barrier"), (4,), context, BASELINES["openmpi-4.1"],
            segments=(8192,), sizes={"allreduce": (65536,), "barrier": (0,)}, model=None,
        )  # fmt: skip
    made = decided(found, {"allreduce": (65536,), "barrier": (0,)})
    assert list(made.decisions) == ["allreduce"]
    text = write_report([made], tmp_path, [sections_of(made, tmp_path)]).with_suffix(".md").read_text()
    assert "has no overheads (os, or, ois)" in text
    assert "The barrier therefore has no rules." in text
    assert "### Barrier on " in text


def test_the_page_says_which_short_messages_the_rules_leave_out(without_model: PlatformChoices, tmp_path: Path) -> None:
    def said(choices: PlatformChoices) -> list[str]:
        notes = sections_of(choices, tmp_path)[0].notes
        return [line for line in notes[0].lines if line.startswith("Shorter messages")]

    (line,) = said(without_model)
    assert "library's own decision: the rules decide allreduce from 1 KiB on; a report with smaller --sizes" in line
    (other,) = said(replace(without_model, platform=load("gros")))
    assert other.endswith("without overheads in the description these cannot be decided.")
    with Store(tmp_path / "timings.sqlite") as store:
        sizes = {"allreduce": (8, 65536)}
        context = SimulationContext(store, ENGINES["schedule"])
        baseline = BASELINES["openmpi-4.1"]
        found = compared_on(
            load("exact"), ("allreduce",), (4,), context, baseline, segments=(0,), sizes=sizes, model=None
        )
    assert not said(decided(found, sizes))


def test_rules_are_drawn_up_to_the_largest_count_that_was_timed(without_model: PlatformChoices, tmp_path: Path) -> None:
    platform, decisions = without_model.platform, without_model.decisions["allreduce"]
    assert largest_decided(platform, decisions) == 4 < platform.max_procs(1)
    text = (
        write_report([without_model], tmp_path, [sections_of(without_model, tmp_path)]).with_suffix(".md").read_text()
    )
    most = platform.max_procs(1)
    assert f"decided for up to 4 processes. For more, up to the {most} of the platform, they repeat" in text
    assert "What the rules choose at P = 4 and every m" in text


def test_sizes_that_are_asked_for_are_decided(without_model: PlatformChoices) -> None:
    assert min(start for start, _ in without_model.decisions["allreduce"].rules[4]) == 1024
    usual = decided(without_model, DECISION_SIZES).decisions["allreduce"]
    assert usual.rules[4][0][0] == 65536  # by default nothing below 8 KiB is


@needs("smpi")
def test_formulas_decide_for_every_count(choices: PlatformChoices) -> None:
    assert largest_decided(choices.platform, choices.decisions["bcast"]) == choices.platform.max_procs(1)


def test_gains_are_those_of_the_rules_file(tmp_path: Path) -> None:
    """Rabenseifner's algorithm needs 16 elements, so that rules name it from 256 B on, and untuned Open MPI never."""
    sizes = {"allreduce": (64, 128, 65536)}
    with Store(tmp_path / "timings.sqlite") as store:
        context = SimulationContext(store, ENGINES["schedule"])
        found = compared_on(
            load("exact"), ("allreduce",), (4, 8), context, BASELINES["openmpi-4.1"],
            segments=(0,), sizes=sizes, model=None,
        )  # fmt: skip
    choices = decided(found, sizes)
    write_rules([choices], tmp_path)
    rules = parse_rules((tmp_path / "exact-openmpi-4.1.rules").read_text())
    entry = Catalogue.load().collective("allreduce")
    names = {one.openmpi["4.1"]: name for name, one in entry.algorithms.items() if "4.1" in one.openmpi}
    gains = choices.gains("allreduce")
    assert len(gains) == 6
    for one in gains:
        grid = choices.compared["allreduce"].right.grid
        rule = rules.lookup(entry.openmpi_collective, grid.procs[one.i], grid.message_bytes[one.j])
        assert one.rules.choice.algorithm == ("library decides" if rule is None else names[rule.algorithm])
        if rule is None:
            assert one.ratio == 1
        assert one.ratio >= 1 / 1.01
    page = write_report([choices], tmp_path, [sections_of(choices, tmp_path)])
    text = page.with_suffix(".md").read_text(encoding="utf-8")
    assert ("too few elements" in text) == bool(choices.substituted)
    assert "slower than the default at" in text
    assert "0 of 6" in text
    guessed = Source("os and or: estimated: as on another interconnect", "no measurement")
    doubtful = replace(choices, platform=replace(choices.platform, sources=(guessed,)))
    notes = {one.title: one.lines for one in sections_of(doubtful, tmp_path)[0].notes}
    assert notes["Figures of this description that are estimates, not measured"] == [guessed.what]


@needs("smpi")
def test_predicted_rules_are_those_of_select_and_say_what_they_lose(choices: PlatformChoices, page: Path) -> None:
    decisions, grid = choices.decisions["bcast"], choices.compared["bcast"].right.grid
    procs = tuple(range(2, choices.platform.max_procs(1) + 1))
    expressible = algorithms_for("bcast", *consumers_of("bcast"))
    grid = Grid.of("bcast", procs, DECISION_SIZES["bcast"], 1, (8192, 65536), expressible)
    assert choices.model is not None
    selected = select(predicted(choices.model, grid), tolerance=TOLERANCE_PERCENT / 100)
    assert (decisions.rules, decisions.between) == (selected.rules, selected.between)
    assert decisions.between is not None
    assert f"slower than the best by {decisions.between}" in page.with_suffix(".md").read_text(encoding="utf-8")


def test_the_points_have_what_the_rules_say(choices: PlatformChoices, page: Path) -> None:
    text = (page.parent / "report.md").read_text()
    section = text[text.index("### Broadcast") :]
    (heads,) = re.findall(r"^\| P \|.*\| rules \(%\) \|$", section[: section.index("### Gather")], re.MULTILINE)
    grid = choices.compared["bcast"].right.grid
    for one in choices.gains("bcast"):
        cell = rf"\**{re.escape(one.rules.label)} \(\d+\)\**"
        point = rf"{grid.procs[one.i]} \| {format_size(grid.message_bytes[one.j])}"
        assert re.search(rf"^\| {point} .*\| {cell} \|$", section, re.MULTILINE)
    assert len(heads.split("|")) == len(section[section.index(heads) :].splitlines()[2].split("|"))


def test_the_terminal_says_where_messages_may_have_few_elements(choices: PlatformChoices) -> None:
    few = Substitution("allreduce", 8, 1024, Choice("ring"), Choice("linear"), 0.5, too_few=True)
    assert few_elements_line(replace(choices, substituted=(replace(few, too_few=False),))) == ""
    line = few_elements_line(replace(choices, substituted=(few, few)))
    assert "2 choices of allreduce" in line
    assert str(few) in line
    assert line.endswith("the report lists all")
