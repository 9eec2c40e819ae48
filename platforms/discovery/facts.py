"""Facts about a cluster: their values, how each is known, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass

LIVE = "live"
"""The source of facts that stands for Slurm itself, as it answers on a machine of the cluster."""
READ, GIVEN, ESTIMATED, MISSING = "read", "given", "estimated", "missing"


@dataclass(frozen=True)
class Fact:
    """A figure of a cluster: how it is known (READ, GIVEN, ESTIMATED, MISSING), and its source, or how to find it."""

    what: str
    value: int | float | str | None
    how: str
    where: str


Facts = dict[str, Fact]
"""Facts, keyed by their `what`."""


_OF_LINKS = ("interconnect", "Gbit/s", "links")


def facts(*found: Fact) -> Facts:
    """The facts, keyed by their `what`."""
    return {fact.what: fact for fact in found}


def merged(*sources: Facts) -> Facts:
    """The facts of several sources, earlier ones first; facts about links belong together, so all have one source."""
    together: Facts = {}
    for source in sources:
        linked = "interconnect" in together
        together |= {
            what: fact for what, fact in source.items() if what not in together and not (linked and what in _OF_LINKS)
        }
    return together


def read(what: str, value: int | float | str, where: str) -> Fact:
    """A fact that was read."""
    return Fact(what, value, READ, where)


def estimated(what: str, value: int | float | str, where: str) -> Fact:
    """A fact that was estimated; `where` says from what."""
    return Fact(what, value, ESTIMATED, where)
