"""A map with sliders, for notebooks: it is timed and drawn again as they move."""

from __future__ import annotations

import asyncio
import time

import ipywidgets as widgets
import numpy as np

from collwise.common.errors import UsageError
from collwise.platforms.changes import Change
from collwise.studies.figures.whatif import LiveFigure
from collwise.validation.times.slowdown import slowdown
from collwise.validation.whatif.live_map import LiveMap, largest_error

_PAUSE_SECONDS = 0.02
"""The pause after a slider's move. Of the moves within it only the last one counts."""

_SAME = "as it is"
_LIMITS = (_SAME, "4KiB", "16KiB", "64KiB", "256KiB", "1MiB")


class Explorer:
    """Sliders for changes of a platform, above the map of a collective's best choices and of the ratio of times.

    `widget` is what a notebook shows. `text` says what has changed, and how exact the times are.
    """

    def __init__(self, live: LiveMap) -> None:
        self._live = live
        grid = live.grid
        self._figure = LiveFigure(grid.timed, grid.procs, grid.message_bytes)
        self.bandwidth, self.latency, self.reduction = (
            _slider(widgets.FloatLogSlider, name, value=1.0, base=2, min=-3, max=3, step=0.25)
            for name in ("bandwidth x", "latency x", "reduction x")
        )
        self.overheads = _slider(widgets.FloatSlider, "overheads, us", value=0.0, min=0.0, max=5.0, step=0.25)
        self.background = _slider(widgets.FloatSlider, "background", value=0.0, min=0.0, max=0.9, step=0.05)
        self.eager_limit = _slider(widgets.SelectionSlider, "eager limit", options=_LIMITS, value=_SAME)
        factors = [self.bandwidth, self.latency, self.reduction]
        others = [self.overheads, self.background, self.eager_limit]
        self._image = widgets.Image(format="png")
        self._label = widgets.Label()
        self._is_behind = False
        self._task: asyncio.Future[None] | None = None
        for slider in (*factors, *others):
            slider.observe(self._moved, "value")
        self.update()
        columns = widgets.HBox([widgets.VBox(factors), widgets.VBox(others)])
        self.widget = widgets.VBox([columns, self._image, self._label])

    @property
    def text(self) -> str:
        """The line below the map."""
        return str(self._label.value)

    @property
    def picture(self) -> bytes:
        """The map as a PNG file's bytes."""
        return bytes(self._image.value)

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
            self._label.value = str(problem)
            return
        best, error = view.at(view.best).values, largest_error(view)
        ratio = best / base.at(base.best).values
        self._image.value = self._figure.draw(view.best.values, ratio)
        # What was not timed is slower.
        other = int((~(slowdown(view.at(base.best).values, best) <= error) & ~np.isnan(ratio)).sum())
        what = ", ".join(change.label for change in changes) or "no change"
        self._label.value = (
            f"{what}: another choice is the best at {other} of {ratio.size} points; the best times are multiplied by "
            f"{np.nanmin(ratio):.3g} to {np.nanmax(ratio):.3g}. Times are exact or wrong by at most "
            f"{error * 100:.1f} %; drawn in {time.perf_counter() - started:.2f} s."
        )

    async def drawn(self) -> None:
        """Waits until the map shows the sliders as they are."""
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
        """Updates until no slider has moved in the meantime."""
        while self._is_behind:
            self._is_behind = False
            await asyncio.sleep(_PAUSE_SECONDS)
            self.update()


def _slider(kind: type[widgets.Widget], name: str, **settings: object) -> widgets.Widget:
    style = {"description_width": "105px"}
    return kind(description=name, style=style, layout=widgets.Layout(width="395px"), **settings)
