"""Platform XML files that users provide: their hosts, their options, and their problems by line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from xml.parsers import expat

from collwise.common.errors import UsageError, nearest_names, warn
from collwise.platforms.description_file import Problem
from collwise.platforms.hosts import HostPlatform, parse_radical
from collwise.platforms.smpi import FACTOR_OPTIONS, KNOWN_OPTIONS, OVERHEAD_OPTIONS, list_problems

_QUANTITY = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-z]*)\s*", re.ASCII)
_DECIMAL = {prefix: 1000.0**power for power, prefix in enumerate(("", "k", "M", "G", "T", "P", "E", "Z", "Y"))}
_BINARY = {f"{prefix}i": 1024.0**power for power, prefix in enumerate(("K", "M", "G", "T", "P", "E", "Z", "Y"), 1)}
_LONG = {
    name: 1000.0**power
    for power, name in enumerate(("", "kilo", "mega", "giga", "tera", "peta", "exa", "zeta", "yotta"))
}
_BANDWIDTH_UNITS = {f"{p}Bps": scale for p, scale in (_DECIMAL | _BINARY).items()}
_BANDWIDTH_UNITS |= {f"{p}bps": scale / 8 for p, scale in (_DECIMAL | _BINARY).items()} | {"": 1.0}
_SPEED_UNITS = {f"{p}f": scale for p, scale in _DECIMAL.items()} | {f"{p}flops": scale for p, scale in _LONG.items()}
_SPEED_UNITS |= {"": 1.0}
_TIME_UNITS = {"w": 604800.0, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0}
_TIME_UNITS |= {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}
_QUANTITIES = (
    (
        ("bandwidth", "bw", "bb_bw", "loopback_bw", "limiter_link", "bw_in", "bw_out"),
        _BANDWIDTH_UNITS,
        "a bandwidth above 0, for example 1.25GBps",
    ),
    (("latency", "lat", "bb_lat", "loopback_lat"), _TIME_UNITS, "a time of at least 0, for example 10us"),
    (("speed",), _SPEED_UNITS, "a speed above 0, for example 1Gf"),
)
"""(attributes of elements, units, valid values)"""


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


@dataclass(frozen=True)
class _Element:
    """An XML element: its tag, its attributes, its parent's tag ('' for the root) and its line, counted from 1."""

    tag: str
    attributes: dict[str, str]
    parent: str
    line: int


def read_xml(text: str) -> tuple[list[Problem], list[str], dict[str, str]]:
    """The problems of a platform XML by line, its hosts in file order, and its options.

    The options are complete only if there are no problems.
    """
    elements: list[_Element] = []
    open_tags: list[str] = []
    parser = expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        elements.append(_Element(tag, attributes, open_tags[-1] if open_tags else "", parser.CurrentLineNumber))
        open_tags.append(tag)

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: open_tags.pop()
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        where = f" inside <{open_tags[-1]}>" if open_tags else ""
        return [Problem(error.lineno, f"broken XML: {expat.ErrorString(error.code)}{where}")], [], {}
    problems = list(_root_problems(elements[0]))
    hosts: dict[str, int] = {}
    options: dict[str, str] = {}
    for element in elements:
        problems += _host_problems(element, hosts)
        problems += _quantity_problems(element)
        if element.tag == "prop" and element.parent == "config":
            problems += _option_problems(element, options)
    if not hosts:
        what = "no host; at least one <host>, <cluster>, <cabinet> or <peer> is needed"
        problems.append(Problem(elements[0].line, what))
    return sorted(problems), list(hosts), options


def _host_names(element: _Element) -> list[str]:
    """The hosts that an element defines. Raises UsageError for a bad radical, KeyError for a missing attribute."""
    if element.tag in ("host", "peer"):
        return [element.attributes["id"]]
    if element.tag in ("cluster", "cabinet"):
        prefix, suffix = element.attributes["prefix"], element.attributes["suffix"]
        return [f"{prefix}{number}{suffix}" for number in parse_radical(element.attributes["radical"])]
    return []


def _topology_size(topology: str, parameters: str) -> int | None:
    """The number of nodes that a cluster's topology sets, or None. Raises ValueError for malformed parameters."""
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


def _quantity(text: str, units: dict[str, float]) -> float:
    """A number with a unit, in the unit whose scale is 1; nan for malformed text."""
    match = _QUANTITY.fullmatch(text)
    return float(match.group(1)) * units[match.group(2)] if match and match.group(2) in units else math.nan


def _root_problems(root: _Element) -> Iterator[Problem]:
    version = root.attributes.get("version", "none")
    if root.tag != "platform":
        yield Problem(root.line, f"the root element is <{root.tag}> (valid: <platform>)")
    elif version not in ("4", "4.0", "4.1"):
        yield Problem(root.line, f"<platform> has version {version} (valid: 4.1, or 4)")


def _host_problems(element: _Element, hosts: dict[str, int]) -> Iterator[Problem]:
    """Problems with the hosts that an element defines; adds the line of each new host to `hosts`."""
    try:
        names = _host_names(element)
    except UsageError as error:
        yield Problem(element.line, str(error))
        return
    except KeyError as missing:
        valid = "id" if element.tag in ("host", "peer") else "prefix, radical and suffix"
        what = f"<{element.tag}> lacks the attribute {missing.args[0]}; it needs {valid}"
        yield Problem(element.line, what)
        return
    for name in names:
        if name in hosts:
            yield Problem(element.line, f"host '{name}' is also on line {hosts[name]}; each needs its own name")
        hosts.setdefault(name, element.line)
    if element.tag == "cluster":
        yield from _topology_problems(element, len(names))


def _topology_problems(element: _Element, count: int) -> Iterator[Problem]:
    """Reports a cluster whose radical names `count` hosts, if its topology has another number of nodes."""
    topology = element.attributes.get("topology", "FLAT")
    try:
        size = _topology_size(topology, element.attributes.get("topo_parameters", ""))
    except ValueError:
        return
    if size not in (None, count):
        what = f"topology {topology} of <cluster> has {size} nodes, its radical names {count} hosts"
        yield Problem(element.line, f"{what}; the two numbers must be equal")


def _quantity_problems(element: _Element) -> Iterator[Problem]:
    for attributes, units, valid in _QUANTITIES:
        for name in attributes:
            given = element.attributes.get(name, "")
            # Wi-Fi links and hosts with several speeds have lists of values.
            for part in given.replace(";", ",").split(",") if given else ():
                value = _quantity(part, units)
                if not (0 < value < math.inf or (value == 0 and units is _TIME_UNITS)):
                    yield Problem(element.line, f"{name} of <{element.tag}> is '{part.strip()}' (valid: {valid})")
                elif value > 0 and not part.strip()[-1].isalpha():
                    where = f"platform XML, line {element.line}: {name} of <{element.tag}> is '{part.strip()}'"
                    warn(f"{where} without a unit, so taken as bytes per second, seconds or flop/s; expected {valid}")


def _option_problems(option: _Element, options: dict[str, str]) -> Iterator[Problem]:
    """Problems with a simulator option, a <prop> of <config>. Options of the MPI library are added to `options`."""
    name, value = option.attributes.get("id"), option.attributes.get("value")
    if name is None or value is None:
        yield Problem(option.line, "a <prop> of <config> lacks id or value; it needs both")
        return
    if name.startswith(("smpi/", "network/")):
        options[name] = value
    if name in FACTOR_OPTIONS + OVERHEAD_OPTIONS:
        yield from (Problem(option.line, what) for what in list_problems(name, value))
    elif name in options and name not in KNOWN_OPTIONS:
        prefix = name.partition("/")[0] + "/"
        valid = sorted(known for known in KNOWN_OPTIONS if known.startswith(prefix))
        what = f"unknown option '{name}'{nearest_names(name, valid)} (valid: {', '.join(valid)})"
        yield Problem(option.line, what)


bytes_per_second = partial(_quantity, units=_BANDWIDTH_UNITS)
seconds = partial(_quantity, units=_TIME_UNITS)
flops = partial(_quantity, units=_SPEED_UNITS)
