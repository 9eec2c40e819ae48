"""Platform XML files that users provide: their elements with line numbers, their hosts and options."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from xml.parsers import expat

from collwise.platforms.hosts import HostPlatform, parse_radical

_QUANTITY = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-z]*)\s*", re.ASCII)
_DECIMAL = {prefix: 1000.0**power for power, prefix in enumerate(("", "k", "M", "G", "T", "P", "E", "Z", "Y"))}
_BINARY = {f"{prefix}i": 1024.0**power for power, prefix in enumerate(("K", "M", "G", "T", "P", "E", "Z", "Y"), 1)}
_LONG = {
    name: 1000.0**power
    for power, name in enumerate(("", "kilo", "mega", "giga", "tera", "peta", "exa", "zeta", "yotta"))
}
BANDWIDTH_UNITS = {f"{p}Bps": scale for p, scale in (_DECIMAL | _BINARY).items()}
BANDWIDTH_UNITS |= {f"{p}bps": scale / 8 for p, scale in (_DECIMAL | _BINARY).items()} | {"": 1.0}
SPEED_UNITS = {f"{p}f": scale for p, scale in _DECIMAL.items()} | {f"{p}flops": scale for p, scale in _LONG.items()}
SPEED_UNITS |= {"": 1.0}
TIME_UNITS = {"w": 604800.0, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0}
TIME_UNITS |= {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}


@dataclass(frozen=True)
class Element:
    """An XML element: its tag, its attributes, its parent's tag ('' for the root) and its line, counted from 1."""

    tag: str
    attributes: dict[str, str]
    parent: str
    line: int


class BrokenXmlError(ValueError):
    """The text is not well-formed XML; `line` is counted from 1."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


def read_elements(text: str) -> list[Element]:
    """All elements in file order. Raises BrokenXmlError if the text is not well-formed."""
    elements: list[Element] = []
    open_tags: list[str] = []
    parser = expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        elements.append(Element(tag, attributes, open_tags[-1] if open_tags else "", parser.CurrentLineNumber))
        open_tags.append(tag)

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: open_tags.pop()
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        where = f" inside <{open_tags[-1]}>" if open_tags else ""
        raise BrokenXmlError(error.lineno, f"broken XML: {expat.ErrorString(error.code)}{where}") from None
    return elements


def host_names(element: Element) -> list[str]:
    """The hosts that an element defines; most elements define none.

    Raises UsageError for a malformed radical and KeyError for a missing attribute.
    """
    if element.tag in ("host", "peer"):
        return [element.attributes["id"]]
    if element.tag in ("cluster", "cabinet"):
        prefix, suffix = element.attributes["prefix"], element.attributes["suffix"]
        return [f"{prefix}{number}{suffix}" for number in parse_radical(element.attributes["radical"])]
    return []


def topology_size(topology: str, parameters: str) -> int | None:
    """Number of nodes of a cluster's topology, from its topo_parameters; None if the topology sets no number.

    Raises ValueError for parameters that SimGrid does not accept.
    """
    if topology == "TORUS":
        factors = parameters.split(",")
    elif topology == "FAT_TREE":
        levels, children, *_ = parameters.split(";")
        factors = children.split(",")
        if len(factors) != int(levels):
            raise ValueError(parameters)
    elif topology == "DRAGONFLY":
        *shape, blades = parameters.split(";")
        factors = [*(part.split(",")[0] for part in shape), blades]
        if len(shape) != 3:
            raise ValueError(parameters)
    else:
        return None
    return math.prod(map(int, factors))


def config_options(elements: list[Element]) -> list[Element]:
    """The <prop> elements of <config>: simulator options as the attributes id and value."""
    return [element for element in elements if element.tag == "prop" and element.parent == "config"]


def quantity(text: str, units: dict[str, float]) -> float:
    """A number with a unit, in the unit whose scale is 1; nan for malformed text."""
    match = _QUANTITY.fullmatch(text)
    return float(match.group(1)) * units[match.group(2)] if match and match.group(2) in units else math.nan


@dataclass(frozen=True, repr=False)
class XmlPlatform(HostPlatform):
    """A platform XML file from the user, simulated unchanged."""

    name: str
    title: str
    text: str
    host_list: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host names in the order of the file."""
        return self.host_list

    @property
    def default_processes_per_node(self) -> int:
        """One, since platform XML does not give the number of CPUs of a host."""
        return 1

    def smpi_options(self) -> dict[str, str]:
        """The smpi/ and network/ options of the file's <config>."""
        return dict(self.options)

    def xml_text(self) -> str:
        """The text of the file, unchanged."""
        return self.text
