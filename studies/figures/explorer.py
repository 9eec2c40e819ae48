"""A map with sliders, for notebooks. It is timed and drawn again when a slider moves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from html import escape

import ipywidgets as widgets
import numpy as np

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.platforms import known
from collwise.platforms.changes import Change
from collwise.studies.figures.whatif import LiveFigure
from collwise.validation.times.slowdown import slowdown
from collwise.validation.whatif.live_map import LiveMap, largest_error

_PAUSE_SECONDS = 0.02
"""The pause between a slider's move and the update of the map, which follows all moves within the pause."""

_SAME = "as it is"
_LIMITS = (_SAME, "4KiB", "16KiB", "64KiB", "256KiB", "1MiB")


class Explorer:
    """Sliders for changes of a platform, above two maps: the best choices, and the ratio of their times.

    The ratio is the best time after the changes to the best time before them.

    Notebooks show an Explorer as a widget. `text` says what has changed, and how exact the times are. If `live_map` is
    given, users can also choose the platform and the collective, and `live_map` makes the map for these names.
    """

    def __init__(self, live: LiveMap, live_map: Callable[[str, str], LiveMap] | None = None) -> None:
        self._make = live_map
        self.bandwidth, self.latency, self.reduction = (
            _control(widgets.FloatLogSlider, name, value=1.0, base=2, min=-3, max=3, step=0.25)
            for name in ("bandwidth x", "latency x", "reduction x")
        )
        self.overheads = _control(widgets.FloatSlider, "overheads, us", value=0.0, min=0.0, max=5.0, step=0.25)
        self.background = _control(widgets.FloatSlider, "background", value=0.0, min=0.0, max=0.9, step=0.05)
        self.eager_limit = _control(widgets.SelectionSlider, "eager limit", options=_LIMITS, value=_SAME)
        sliders = [
            *(self.bandwidth, self.latency, self.reduction),
            *(self.overheads, self.background, self.eager_limit),
        ]
        named = live.platform.name
        self.platform = _control(widgets.Dropdown, "platform", options=sorted({named, *known()}), value=named)
        collectives = list(Catalogue.load().collectives)
        self.collective = _control(widgets.Dropdown, "collective", options=collectives, value=live.grid.collective)
        chosen = [self.platform, self.collective] if live_map is not None else []
        # Maps are at most as wide as the window, each on a line of its own if both do not fit.
        self._images = [widgets.Image(format="png", layout=widgets.Layout(max_width="100%")) for _ in range(2)]
        self._label = widgets.HTML()
        self._is_behind = False
        self._task: asyncio.Future[None] | None = None
        self._take(live)
        for slider in sliders:
            slider.observe(self._moved, "value")
        for item in chosen:
            item.observe(self._chosen, "value")
        wrapped = widgets.Layout(flex_flow="row wrap", overflow="hidden")
        rows = (widgets.HBox(row, layout=wrapped) for row in (chosen, sliders, self._images))
        self._widget = widgets.VBox([*rows, self._label])

    def _repr_mimebundle_(self, **options: object) -> object:
        return self._widget._repr_mimebundle_(**options)

    def _take(self, live: LiveMap) -> None:
        """Shows the map of another platform or collective, for the current values of the sliders."""
        self._live = live
        self._figure = LiveFigure(live.grid.timed, live.grid.procs, live.grid.message_bytes)
        self.update()

    def _chosen(self, _: object) -> None:
        assert self._make is not None
        self._label.value = "timing every algorithm ..."
        try:
            self._take(self._make(self.platform.value, self.collective.value))
        except UsageError as problem:
            self._label.value = escape(str(problem))

    @property
    def text(self) -> str:
        """The line below the map."""
        return str(self._label.value)

    @property
    def picture(self) -> bytes:
        """The map of the best choices as a PNG file's bytes."""
        return bytes(self._images[0].value)

    def changes(self) -> list[Change]:
        """The changes that the sliders stand for."""
        factors = {"bandwidth": self.bandwidth, "latency": self.latency, "reduction": self.reduction}
        found = [Change(name, f"x{slider.value:g}") for name, slider in factors.items() if slider.value != 1]
        if self.overheads.value > 0:
            found.append(Change("overheads", f"{self.overheads.value:g}us"))
        if self.background.value > 0:
            found.append(Change("background", f"{self.background.value:g}"))
        if self.eager_limit.value != _SAME:
            found.append(Change("eager_limit", str(self.eager_limit.value)))
        return found

    def update(self) -> None:
        """Times and draws the map for the current sliders. If a change cannot be made, `text` says so."""
        started = time.perf_counter()
        base, changes = self._live.base, self.changes()
        try:
            view = self._live.on(changes)
        except UsageError as problem:
            self._label.value = escape(str(problem))
            return
        best, error = view.at(view.best).values, largest_error(view)
        ratio = best / base.at(base.best).values
        for image, picture in zip(self._images, self._figure.draw(view.best.values, ratio), strict=True):
            image.value = picture
        # Choices that were not timed are slower.
        other = int((~(slowdown(view.at(base.best).values, best) <= error) & ~np.isnan(ratio)).sum())
        what = ", ".join(change.label for change in changes) or "no change"
        self._label.value = (
            f"{what}: another choice is the best at {other} of {ratio.size} points; the best times are multiplied by "
            f"{np.nanmin(ratio):.3g} to {np.nanmax(ratio):.3g}. Times are exact or wrong by at most "
            f"{error * 100:.1f} %; drawn in {time.perf_counter() - started:.2f} s."
        )

    async def drawn(self) -> None:
        """Waits until the map shows the current values of the sliders."""
        if self._task is not None:
            await self._task

    def _moved(self, _: object) -> None:
        self._is_behind = True
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._is_behind = False
            self.update()
            return
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._follow())

    async def _follow(self) -> None:
        """Updates the map until no slider has moved since the last update."""
        while self._is_behind:
            self._is_behind = False
            await asyncio.sleep(_PAUSE_SECONDS)
            self.update()


def _control(kind: type[widgets.Widget], name: str, **settings: object) -> widgets.Widget:
    style = {"description_width": "105px"}
    return kind(description=name, style=style, layout=widgets.Layout(width="395px", max_width="97%"), **settings)
