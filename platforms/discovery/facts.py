"""Facts about a cluster, each with its source; the ports of a node give the facts about links."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import log
from typing import Any

LIVE = "live"
"""The source of facts that stands for Slurm itself, which is asked on a machine of the cluster."""
READ, GIVEN, ESTIMATED, MISSING = "read", "given", "estimated", "missing"


@dataclass(frozen=True)
class Fact:
    """A fact about a cluster; `how` is READ, GIVEN, ESTIMATED or MISSING, `where` its source or how to find it."""

    what: str
    value: Any
    how: str
    where: str


Facts = dict[str, Fact]
"""Facts, keyed by their `what`."""


_OF_LINKS = ("interconnect", "Gbit/s", "links")


def facts(*found: Fact) -> Facts:
    """The facts, keyed by their `what`."""
    return {fact.what: fact for fact in found}


def merged(*sources: Facts) -> Facts:
    """The facts of several sources, from the earliest if they differ; all facts about links are from one source."""
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


class Fabric(StrEnum):
    """The kinds of networks, in the order of preference."""

    SLINGSHOT = "Slingshot"
    OMNI_PATH = "Omni-Path"
    INFINIBAND = "InfiniBand"
    ARIES = "Aries"
    ROCE = "RoCE"
    ETHERNET = "Ethernet"


_PRESETS = {
    Fabric.ROCE: "infiniband-hdr",
    Fabric.OMNI_PATH: "omni-path",
    Fabric.SLINGSHOT: "slingshot",
    Fabric.ARIES: "aries",
}
_BY_ETHERNET_GBITS = {1: "tcp-1g", 10: "tcp-10g", 25: "tcp-25g"}
NOMINAL_GBITS = {
    "infiniband-edr": 100.0,
    "infiniband-hdr100": 100.0,
    "infiniband-hdr": 200.0,
    "infiniband-hdr100-x2": 200.0,
    "infiniband-ndr200": 200.0,
    "infiniband-ndr": 400.0,
    "omni-path": 100.0,
    "slingshot": 200.0,
    "efa": 100.0,
    "gvnic-32g": 32.0,
    "tofu-d": 54.4,
    "tcp-1g": 1.0,
    "tcp-10g": 10.0,
    "tcp-25g": 25.0,
}
"""The nominal rates of the links in the descriptions of interconnects; the description of Aries has none."""
UNKNOWN_NETWORK = "tcp-10g"
"""The interconnect that is assumed if nothing is known."""
_NAMED_RATES = {"qdr": 40.0, "fdr": 56.0, "edr": 100.0, "hdr100": 100.0, "hdr": 200.0, "hdr200": 200.0, "ndr": 400.0}
_BY_INFINIBAND_GBITS = {100: "infiniband-edr", 200: "infiniband-hdr", 400: "infiniband-ndr"}
_NAMED_KINDS = {
    **dict.fromkeys(("ib", "infiniband", *_NAMED_RATES), Fabric.INFINIBAND),
    **dict.fromkeys(("opa", "opa100", "omnipath", "omni-path"), Fabric.OMNI_PATH),
    **dict.fromkeys(("slingshot", "ss10", "ss11", "cxi"), Fabric.SLINGSHOT),
    "aries": Fabric.ARIES,
}
_ETHERNET_WORD = re.compile(r"(\d+)(?:gbe|gige|geth)")


@dataclass(frozen=True)
class Port:
    """An active port of a node, and `where` it was read; `generation` is the InfiniBand generation, such as hdr100."""

    kind: Fabric
    gbits: float | None
    where: str
    generation: str = ""


def port_of_word(word: str, where: str) -> Port | None:
    """The port that a word such as hdr100, opa or 25gbe stands for; None for any other word."""
    word = word.lower()
    if match := _ETHERNET_WORD.fullmatch(word):
        return Port(Fabric.ETHERNET, float(match[1]), where)
    kind = _NAMED_KINDS.get(word)
    return Port(kind, _NAMED_RATES.get(word), where, word) if kind else None


def link_facts(ports: Sequence[Port]) -> Facts:
    """The interconnect that MPI would use on a node with these ports, with its rate and links per node.

    If there are several networks, the one made for MPI is used, with its fastest ports.
    """
    if not ports:
        return {}
    kind = min((port.kind for port in ports), key=list(Fabric).index)
    of_kind = [port for port in ports if port.kind == kind]
    rate = max((port.gbits for port in of_kind if port.gbits is not None), default=None)
    fastest = [port for port in of_kind if port.gbits == rate]
    where, preset = fastest[0].where, _preset(fastest[0])
    why = f"{kind}: {where}"
    if kind == Fabric.ROCE:
        why += "; if MPI uses TCP there, give --interconnect tcp-25g"
    # MPI rarely uses a second port of an Ethernet card, but uses a second port of a network made for MPI.
    links = 1 if kind == Fabric.ETHERNET else len({port.where for port in fastest})
    if rate is None:
        why += ", which has no rate; --gbits N"
    how = estimated if kind == Fabric.ETHERNET and not rate else read
    found = [how("interconnect", preset, why)]
    if rate:
        found.append(read("Gbit/s", rate, where))
    if links > 1:
        found.append(read("links", links, ", ".join(port.where for port in fastest)))
    return facts(*found)


def _preset(port: Port) -> str:
    """The interconnect of a port: HDR for InfiniBand of unknown rate; for Ethernet, the one with the nearest rate."""
    if port.kind == Fabric.INFINIBAND:
        if port.gbits == NOMINAL_GBITS["infiniband-hdr100"] and "hdr" in port.generation.lower():
            return "infiniband-hdr100"
        return _BY_INFINIBAND_GBITS.get(round(port.gbits or 0), "infiniband-hdr")
    if port.kind in _PRESETS:
        return _PRESETS[port.kind]
    rate = port.gbits
    if rate is None:
        return UNKNOWN_NETWORK
    return _BY_ETHERNET_GBITS[min(_BY_ETHERNET_GBITS, key=lambda known: abs(log(known / rate)))]
