"""Figures of one family: styles of algorithms, cells without a value, and digits that can be read."""

from __future__ import annotations

import itertools
import math
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text

from collwise.algorithms.catalogue import Catalogue
from collwise.studies.figures.map_cells import PERCENT, _rectangles, borders
from collwise.studies.figures.maps import cell_panels, closeness_map, method_map
from collwise.studies.figures.picks import fastest_said, markers_and_lines
from collwise.studies.figures.style import (
    MAX_RATIO,
    algorithm_style,
    apart,
    head,
    ink,
    label_lines,
    least_and_most,
    svg,
)
from collwise.validation.hierarchy.space import WITHIN
from collwise.validation.times.choice import Choice

ALL = Catalogue.load().collectives.values()
SIZES, PROCS = (1024, 8192, 65536), (4, 8)


@pytest.fixture(autouse=True)
def closed() -> object:
    yield
    plt.close("all")


def texts(figure: Figure) -> list[str]:
    """The digits in a figure's panels."""
    return [text.get_text() for axis in figure.axes for text in axis.texts]


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for one in figure.legends for text in one.get_texts()]


def test_each_algorithm_has_a_style_of_its_own() -> None:
    names = {name for collective in ALL for name in collective.algorithms}
    assert len({algorithm_style(name) for name in names}) == len(names)


def test_forms_within_nodes_have_the_colour_of_their_algorithm_and_markers_of_their_own() -> None:
    styles = [algorithm_style("tasks_chain"), *(algorithm_style(f"tasks_chain, {form}") for form in WITHIN[1:])]
    assert len({colour for colour, _ in styles}) == 1
    assert len({marker for _, marker in styles}) == len(WITHIN)
    names = ("tasks_chain", "tasks_chain, one-sided")
    plt.close(markers_and_lines([8, 16], {name: [1.0, 2.0] for name in names}, {}, "a title"))


@pytest.mark.parametrize("collective", ALL, ids=lambda one: one.name)
def test_the_algorithms_to_choose_from_have_eight_colours_and_differ(collective: object) -> None:
    names = collective.selectable  # type: ignore[attr-defined]
    assert len({algorithm_style(name)[0] for name in names}) == min(len(names), 8)
    assert len({algorithm_style(name) for name in names}) == len(names)


@given(arrays(np.bool_, st.tuples(st.integers(1, 7), st.integers(1, 7))))
def test_rectangles_cover_each_cell_once(where: np.ndarray) -> None:
    covered = np.zeros(where.shape, dtype=int)
    for first, past, lowest, above in _rectangles(where):
        covered[lowest:above, first:past] += 1
    assert (covered == where).all()


def test_a_plain_area_is_one_rectangle() -> None:
    assert _rectangles(np.ones((2000, 12), dtype=bool)) == [(0, 12, 0, 2000)]


def test_ink_can_be_read_on_every_colour() -> None:
    def luminance(colour: str) -> float:
        parts = [part / 12.92 if part <= 0.04 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
        return float(np.dot(parts, (0.2126, 0.7152, 0.0722)))

    for name in {name for collective in ALL for name in collective.algorithms}:
        colour, _ = algorithm_style(name)
        lighter, darker = sorted((luminance(colour), luminance(ink(colour))), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 3, name  # what WCAG asks of large text and graphics


@pytest.mark.parametrize("count", [3, 30])
def test_maps_show_every_cell_and_nothing_else(count: int) -> None:
    sizes = [8 << k for k in range(count)]
    axis = closeness_map({"next": np.full((2, count), 0.1)}, PROCS, sizes).axes[0]
    for shown, centres in ((axis.get_xlim(), sizes), (axis.get_ylim(), PROCS)):
        assert shown == pytest.approx(tuple(borders(centres)[[0, -1]]))


@pytest.mark.parametrize("rows", [1, 2, 30])
def test_only_panels_at_the_bottom_and_on_the_left_name_their_axes(rows: int) -> None:
    for count in range(1, 7):
        _, shown = cell_panels([str(number) for number in range(count)], range(2, 2 + rows), SIZES)
        places = [one.get_subplotspec() for one in shown]
        cells = {(place.rowspan.start, place.colspan.start) for place in places if place is not None}
        for axis, (row, column) in zip(shown, sorted(cells), strict=True):
            is_lowest, is_first = (row + 1, column) not in cells, column == 0
            is_labelled = any(label.get_visible() for label in axis.get_xticklabels())
            assert (axis.get_xlabel() != "", is_labelled) == (is_lowest, is_lowest)
            assert (axis.get_ylabel() != "") == is_first
        plt.close("all")


def test_a_figure_is_as_high_as_its_legend() -> None:
    methods = [
        Choice(name, segment) for segment in (0, 8192) for name in ("linear", "chain", "binary", "binomial", "knomial")
    ]
    sizes = [2**k for k in range(10)]
    for count in (4, 6, 20):
        chosen = np.arange(count * len(sizes)).reshape(count, len(sizes)) % len(methods)
        figure = method_map({"times": chosen, "model": chosen}, methods, range(2, 2 + count), sizes, timed="times")
        head(figure, "message", "title")
        figure.draw_without_rendering()
        (keys,) = figure.legends
        assert keys.get_window_extent().y0 >= 0


def test_two_algorithms_of_one_colour_have_markers_and_lines_of_their_own() -> None:
    names = Catalogue.load().collective("bcast").selectable
    more = [*names, "linear_nonblocking"]
    assert len({algorithm_style(name)[1] for name in more}) == len(more)
    times = {name: [1.0 + number] * 3 for number, name in enumerate(more)}
    figure = markers_and_lines(SIZES, {}, times, "title")
    drawn = [(line.get_color(), line.get_linestyle()) for line in figure.axes[0].get_lines()]
    assert len(set(drawn)) == len(more)


def test_ratios_to_the_best_are_those_of_the_same_source() -> None:
    measured = {"chain": [2.0, 4.0, math.nan], "linear": [1.0, 8.0, 5.0]}
    simulated = {"chain": [3.0, 3.0, 3.0], "linear": [3.0, 30.0, 300.0]}
    figure = markers_and_lines(SIZES, measured, simulated, "measured (markers), simulated (lines)")
    _, ratios = figure.axes
    drawn = [list(line.get_ydata()) for line in ratios.lines]
    assert drawn[:2] == [[1, 1, 1], [1, 10, 100]]
    assert drawn[2][:2] == [2, 1]
    assert math.isnan(drawn[2][2])
    assert drawn[3] == [1, 2, 1]
    assert ratios.get_ylim()[1] <= MAX_RATIO * 1.1
    assert "not shown" in ratios.get_ylabel()


def test_an_svg_of_the_same_data_is_the_same() -> None:
    def drawn() -> bytes:
        return svg(closeness_map({"next": np.array([[0.1, 0.2, np.nan]] * 2)}, PROCS, SIZES))

    first = drawn()
    ElementTree.fromstring(first)
    assert first == drawn()


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 0.12)), min_size=1, max_size=8))
def test_labels_are_apart_and_as_near_as_can_be(asked: list[tuple[float, float]]) -> None:
    wanted, heights = np.array(sorted(asked)).T
    places = apart(wanted, heights)
    gaps = (heights[1:] + heights[:-1]) / 2
    assert (np.diff(places) >= gaps - 1e-9).all()
    assert places[0] >= heights[0] / 2 - 1e-9
    assert places[-1] <= 1 - heights[-1] / 2 + 1e-9

    # The optimum of a convex problem: no group of labels in touch gets nearer by a move for which there is room.
    def distance(moved: np.ndarray) -> float:
        return float(((moved - wanted) ** 2).sum())

    for first in range(len(wanted)):
        for past in range(first + 1, len(wanted) + 1):
            for step in (-1e-4, 1e-4):
                moved = places.copy()
                moved[first:past] += step
                ends = moved[0] >= heights[0] / 2 and moved[-1] <= 1 - heights[-1] / 2
                if ends and (np.diff(moved) >= gaps).all():
                    assert distance(moved) >= distance(places) - 1e-9


def labels(figure: Figure) -> list[list[str]]:
    """The names of lines by panel."""
    notes = [[one for one in axis.texts if isinstance(one, Annotation)] for axis in figure.axes]
    return [[one.get_text().replace("\n", "") for one in mine] for mine in notes]


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_lines_are_named_at_their_ends_and_nothing_overlaps(scale: str) -> None:
    figure, axis = plt.subplots(figsize=(5, 3))
    for number in range(9):
        axis.plot([1, 2, 4], [5, 1 + number, 3 if number % 2 else 3.0001], label=f"a line with a long name, {number}")
    axis.axvline(2)
    axis.set_yscale(scale)
    label_lines(axis)
    figure.draw_without_rendering()
    assert labels(figure) == [[f"a line with a long name, {number}" for number in range(9)]]
    boxes = sorted((Text.get_window_extent(one) for one in axis.texts), key=lambda box: box.y0)
    assert all(above.y0 >= below.y1 - 0.01 for below, above in itertools.pairwise(boxes))
    assert all(box.x0 > axis.bbox.x1 and box.x1 <= figure.bbox.x1 for box in boxes)
    assert {tuple(one.xy) for one in axis.texts} != {(1.0, 0.5)}


def test_titles_name_the_algorithms_that_are_fastest_in_turn() -> None:
    sizes = (1024, 8192, 65536, 1 << 20)
    binomial, chain = [1.0, 2, 4, 8], [2.0, 3, 3, 3]
    assert fastest_said(sizes, {"chain": chain, "binomial": binomial}) == "binomial is fastest up to 8 KiB, then chain"
    ring = [9.0, 9, 9, 1]
    assert fastest_said(sizes, {"chain": chain, "ring": ring, "binomial": binomial}) == (
        "binomial is fastest up to 8 KiB, chain up to 64 KiB, then ring"
    )
    assert fastest_said(sizes, {"chain": chain, "ring": [math.nan, 9, 9, 9]}) == "chain is fastest at every size"
    assert fastest_said(sizes, {"chain": chain}) == ""
    assert fastest_said(sizes, {"a": [1.0, 2, 1, 2], "b": [2.0, 1, 2, 1]}) == "a is fastest at 2 of 4 sizes, b at 2"


def test_titles_name_no_winner_within_the_intervals() -> None:
    times, wide = {"chain": [1.0, 2.1], "ring": [1.1, 2.0]}, np.full((2, 2), 0.06)
    assert fastest_said((1, 2), times) == "chain is fastest up to 1 B, then ring"
    assert fastest_said((1, 2), times, {"chain": wide, "ring": wide}) == "ring is fastest at every size"


def test_shares_are_listed_from_the_least() -> None:
    assert least_and_most({"loggp": 0.5, "plogp": 0.031, "none": math.nan}) == "plogp 3.1 %, loggp 50.0 %"
    assert least_and_most({str(k): k / 100 for k in range(5)}) == "from 0 0.0 % to 4 4.0 %"


def test_the_bar_of_slowdowns_is_labelled_from_end_to_end_in_even_steps() -> None:
    bar = closeness_map({"next": np.full((2, 30), 0.1)}, PROCS, [8 << k for k in range(30)]).axes[1]
    ticks = np.union1d(bar.get_xticks() if len(bar.get_xticks()) > 1 else [], bar.get_yticks())
    assert (ticks.min(), ticks.max()) == (PERCENT.vmin, PERCENT.vmax)
    assert np.diff(np.log10(ticks)) == pytest.approx(0.5, abs=0.03)
