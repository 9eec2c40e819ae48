"""Checks of platform files that report the line of each problem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from collwise.common.errors import UsageError, nearest_names
from collwise.platforms.description import Description, HeterogeneousPlatform, Platform
from collwise.platforms.reader import Problem, line_of, read_description
from collwise.platforms.smpi import FACTOR_OPTIONS, KNOWN_OPTIONS, OVERHEAD_OPTIONS, list_problems
from collwise.platforms.xml_file import (
    BANDWIDTH_UNITS,
    SPEED_UNITS,
    TIME_UNITS,
    BrokenXmlError,
    Element,
    config_options,
    host_names,
    quantity,
    read_elements,
    topology_size,
)

DEFAULT_TCP_GAMMA_BYTES = 4194304.0
"""SimGrid's default TCP window: it limits a flow to this divided by twice its route's latency."""

_LEAST_LINK_BYTES_PER_SECOND = 1e6

_QUANTITIES = (
    (
        ("bandwidth", "bw", "bb_bw", "loopback_bw", "limiter_link", "bw_in", "bw_out"),
        BANDWIDTH_UNITS,
        "a bandwidth above 0, for example 1.25GBps",
    ),
    (("latency", "lat", "bb_lat", "loopback_lat"), TIME_UNITS, "a time of at least 0, for example 10us"),
    (("speed",), SPEED_UNITS, "a speed above 0, for example 1Gf"),
)
"""(attributes of elements, units, valid values)"""


@dataclass(frozen=True)
class CheckReport:
    """Result of a check: one line for each problem (FILE:LINE: what (valid: ...)), and the hosts found."""

    problems: tuple[str, ...]
    hosts: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """True if there are no problems."""
        return not self.problems


def check_file(path: str | Path) -> CheckReport:
    """Returns all problems of a platform file, TOML or XML, except those that only SimGrid itself can detect.

    Raises UsageError if the file cannot be read or is of another type.
    """
    path = Path(path)
    text = read_text(path)
    problems, hosts = _check_toml(text) if path.suffix == ".toml" else read_xml(text)[:2]
    return CheckReport(tuple(f"{path}:{problem.line}: {problem.what}" for problem in problems), tuple(hosts))


def read_text(path: Path) -> str:
    """Reads a platform file. Raises UsageError if it is unreadable or its name ends neither in .toml nor in .xml."""
    if path.suffix not in (".toml", ".xml"):
        raise UsageError(f"platform file '{path}' has an unknown type (valid: names that end in .toml or .xml)")
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        raise UsageError(f"platform file '{path}' does not exist (valid: the path of a .toml or .xml file)") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"platform file '{path}' is not text at byte {error.start} (valid: UTF-8)") from None
    except OSError as error:
        raise UsageError(f"platform file '{path}' cannot be read: {error.strerror} (valid: a readable file)") from None


def read_xml(text: str) -> tuple[list[Problem], list[str], list[Element]]:
    """Returns the problems of a platform XML by line, its host names and its elements, both in file order."""
    try:
        elements = read_elements(text)
    except BrokenXmlError as error:
        return [Problem(error.line, str(error))], [], []
    problems = _root_problems(elements[0])
    hosts: dict[str, int] = {}
    for element in elements:
        problems += _host_problems(element, hosts)
        problems += _topology_problems(element)
        problems += _quantity_problems(element)
    for option in config_options(elements):
        problems += _option_problems(option)
    if not hosts:
        what = "no host (valid: at least one <host>, <cluster>, <cabinet> or <peer>)"
        problems.append(Problem(elements[0].line, what))
    return sorted(problems), list(hosts), elements


def _check_toml(text: str) -> tuple[list[Problem], list[str]]:
    platform, problems = read_description(text)
    if platform is None:
        return problems, []
    links, routes = _links_and_routes(platform)
    problems = [problem for link in links for problem in _slow_link_problems(*link, text)]
    if platform.calibration.tcp_window:
        problems += [problem for route in routes for problem in _window_problems(*route, text)]
    return sorted(problems), list(platform.hosts)


def _links_and_routes(platform: Description) -> tuple[list[tuple[str, float]], list[tuple[str, float, float]]]:
    """Links as (key, bytes per second) and routes between nodes as (key of the latency, latency, bandwidth)."""
    if isinstance(platform, Platform):
        link = ("network.link_bytes_per_second", platform.link_bytes_per_second)
        latency, bandwidth = platform.longest_latency_seconds, platform.route[1]
        return [link], [("network.link_latency_seconds", latency, bandwidth)]
    assert isinstance(platform, HeterogeneousPlatform)
    kinds = {kind.name: kind for kind in platform.node_types}
    links, routes = [], []
    for number, kind in enumerate(platform.node_types, start=1):
        links.append((f"node_types[{number}].link_bytes_per_second", kind.link_bytes_per_second))
    for number, wire in enumerate(platform.wires, start=1):
        key = f"network.wires[{number}]"
        links.append((f"{key}.bytes_per_second", wire.bytes_per_second))
        routes.append((f"{key}.latency_seconds", *platform.route(kinds[wire.one], kinds[wire.other])))
    return links, routes


def _slow_link_problems(key: str, bytes_per_second: float, text: str) -> list[Problem]:
    """Reports links below 1 MB/s, whose bandwidth was probably given in Gbit/s instead of bytes per second."""
    if bytes_per_second >= _LEAST_LINK_BYTES_PER_SECOND:
        return []
    what = f"{key}: {bytes_per_second:g} bytes per second is too slow for a link of a cluster"
    return [Problem(line_of(text, key), f"{what} (valid: bytes per second, 3.125e9 for 25 Gbit/s)")]


def _window_problems(key: str, latency: float, bandwidth: float, text: str) -> list[Problem]:
    if 2 * latency * bandwidth <= DEFAULT_TCP_GAMMA_BYTES:
        return []
    most = DEFAULT_TCP_GAMMA_BYTES / (2 * bandwidth)
    what = f"{key}: a route of {latency:g} s makes SimGrid's TCP window the bottleneck"
    valid = f"routes of up to {most:.3g} s at {bandwidth:g} B/s, or calibration.tcp_window = false"
    return [Problem(line_of(text, key), f"{what} (valid: {valid})")]


def _root_problems(root: Element) -> list[Problem]:
    if root.tag != "platform":
        return [Problem(root.line, f"the root element is <{root.tag}> (valid: <platform>)")]
    version = root.attributes.get("version", "none")
    if version not in ("4", "4.0", "4.1"):
        return [Problem(root.line, f"<platform> has version {version} (valid: 4.1, or 4)")]
    return []


def _host_problems(element: Element, hosts: dict[str, int]) -> list[Problem]:
    """Problems with the hosts that an element defines; adds the line of each new host to `hosts`."""
    try:
        names = host_names(element)
    except UsageError as error:
        return [Problem(element.line, str(error))]
    except KeyError as missing:
        valid = "id" if element.tag in ("host", "peer") else "prefix, radical and suffix"
        what = f"<{element.tag}> without the attribute {missing.args[0]} (valid: {valid} given)"
        return [Problem(element.line, what)]
    problems = []
    for name in names:
        if name in hosts:
            problems.append(Problem(element.line, f"host '{name}' is also on line {hosts[name]} (valid: unique names)"))
        hosts.setdefault(name, element.line)
    return problems


def _topology_problems(element: Element) -> list[Problem]:
    """Reports a cluster whose topology has another number of nodes than its radical, if both are readable."""
    topology = element.attributes.get("topology", "FLAT")
    try:
        size = topology_size(topology, element.attributes.get("topo_parameters", ""))
        count = len(host_names(element)) if element.tag == "cluster" else 0
    except (UsageError, KeyError, ValueError):
        return []
    if not count or size in (None, count):
        return []
    what = f"topology {topology} of <cluster> has {size} nodes, its radical names {count} hosts"
    return [Problem(element.line, f"{what} (valid: as many of both)")]


def _quantity_problems(element: Element) -> list[Problem]:
    problems = []
    for attributes, units, valid in _QUANTITIES:
        for name in attributes:
            given = element.attributes.get(name, "")
            # Wi-Fi links and hosts with several speeds have lists of values.
            for part in given.replace(";", ",").split(",") if given else ():
                value = quantity(part, units)
                if not (0 < value < math.inf or (value == 0 and units is TIME_UNITS)):
                    what = f"{name} of <{element.tag}> is '{part.strip()}' (valid: {valid})"
                    problems.append(Problem(element.line, what))
    return problems


def _option_problems(option: Element) -> list[Problem]:
    name, value = option.attributes.get("id"), option.attributes.get("value")
    if name is None or value is None:
        return [Problem(option.line, "a <prop> of <config> lacks id or value (valid: both)")]
    if name in FACTOR_OPTIONS + OVERHEAD_OPTIONS:
        return [Problem(option.line, what) for what in list_problems(name, value)]
    if name.startswith(("smpi/", "network/")) and name not in KNOWN_OPTIONS:
        prefix = name.partition("/")[0] + "/"
        valid = sorted(known for known in KNOWN_OPTIONS if known.startswith(prefix))
        return [
            Problem(option.line, f"unknown option '{name}'{nearest_names(name, valid)} (valid: {', '.join(valid)})")
        ]
    return []
