"""Loading of platforms and interconnects by name or from a file; checks that report the line of each problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from collwise.common.errors import UsageError, check_name
from collwise.platforms import FOLDER, INTERCONNECTS, interconnect_names, known
from collwise.platforms.description import Description, HeterogeneousPlatform, Platform
from collwise.platforms.description_file import Problem, line_of, read_description
from collwise.platforms.hosts import HostPlatform
from collwise.platforms.xml_file import XmlPlatform, read_xml

DEFAULT_TCP_GAMMA_BYTES = 4194304.0
"""SimGrid's default TCP window, which limits a flow to the window divided by twice the latency of the flow's route."""

_MIN_LINK_BYTES_PER_SECOND = 1e6
_MAX_ROUTE_SECONDS = 0.01

# Equal texts are one platform, whose hosts, topology and digest are made once.
_read = lru_cache(maxsize=64)(read_description)


def load(name_or_path: str | Path) -> HostPlatform:
    """Returns the platform with that name, or the platform that a .toml or .xml file describes."""
    path = _find(name_or_path)
    if path.suffix == ".xml":
        text = read_text(path)
        problems, hosts, options = read_xml(text)
        if problems:
            raise _refusal(path, problems)
        return XmlPlatform(path.stem, f"platform XML {path.name}", text, tuple(hosts), tuple(options.items()))
    platform, problems = _read(read_text(path))
    if platform is None:
        raise _refusal(path, problems)
    return platform


def load_description(name_or_path: str | Path) -> Platform:
    """Like `load`, for homogeneous descriptions only. Raises UsageError for platform XML and heterogeneous clusters."""
    platform = load(name_or_path)
    if isinstance(platform, HeterogeneousPlatform):
        raise UsageError(f"platform '{name_or_path}' has nodes that differ; use a platform of equal nodes")
    if not isinstance(platform, Platform):
        raise UsageError(
            f"platform '{name_or_path}' has no description; expected a .toml file or one of {', '.join(known())}"
        )
    return platform


def interconnect(name: str) -> Platform:
    """The description of an interconnect, from which new platforms take links and calibration."""
    check_name("interconnect", name, interconnect_names())
    found = load_description(INTERCONNECTS / f"{name}.toml")
    if found.topology is None:
        raise UsageError(f"interconnect '{name}' has no topology; it needs one with hop_latency_seconds")
    return found


def read_text(path: Path) -> str:
    """Reads a platform file. Raises UsageError if it is unreadable or its name ends neither in .toml nor in .xml."""
    if path.suffix not in (".toml", ".xml"):
        raise UsageError(f"platform file '{path}' has an unknown type; its name must end in .toml or .xml")
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        raise UsageError(f"platform file '{path}' does not exist; expected the path of a .toml or .xml file") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"platform file '{path}' is not UTF-8 text (at byte {error.start})") from None
    except OSError as error:
        raise UsageError(f"platform file '{path}' cannot be read: {error.strerror}") from None


def _find(name_or_path: str | Path) -> Path:
    path = Path(name_or_path)
    if isinstance(name_or_path, Path) or path.suffix or len(path.parts) > 1:
        return path
    files = [f"{name_or_path}{ending}" for ending in (".toml", ".xml") if Path(f"{name_or_path}{ending}").is_file()]
    if files and name_or_path not in known():
        raise UsageError(f"unknown platform '{name_or_path}'; did you mean the file {' or '.join(files)}?")
    if name_or_path in interconnect_names():
        raise UsageError(
            f"'{name_or_path}' is an interconnect, not a platform; describe a cluster with it by 'collwise platforms "
            f"new NAME --interconnect {name_or_path} --nodes N', or name the .toml file that 'collwise tune' wrote"
        )
    check_name("platform", name_or_path, known(), "see 'collwise platforms show'")
    return FOLDER / f"{name_or_path}.toml"


def _refusal(path: Path, problems: list[Problem]) -> UsageError:
    others = len(problems) - 1
    more = f" [and {others} more: see 'collwise platforms show {path} --check']" if others else ""
    return UsageError(f"{path}:{problems[0].line}: {problems[0].what}{more}")


def check_file(path: str | Path) -> tuple[list[str], Sequence[str]]:
    """All problems of a platform's file, TOML or XML, and its hosts; only SimGrid itself can detect some problems.

    A problem is a line 'FILE:LINE: what is wrong (valid: ...)'.
    """
    path = _find(path)
    text = read_text(path)
    hosts: Sequence[str] = ()
    if path.suffix == ".xml":
        problems, hosts, _ = read_xml(text)
    else:
        platform, problems = read_description(text)
        if platform is not None:
            unlikely = _unlikely_figures(platform)
            problems = sorted(Problem(line_of(text, key), f"{key}: {what}") for key, what in unlikely)
            hosts = platform.hosts
    return [f"{path}:{problem.line}: {problem.what}" for problem in problems], hosts


def _unlikely_figures(platform: Description) -> Iterator[tuple[str, str]]:
    """The keys whose values probably have a wrong unit: links below 1 MB/s, routes above 10 ms."""
    links, routes = _links_and_routes(platform)
    for key, rate in links:
        if rate < _MIN_LINK_BYTES_PER_SECOND:
            what = f"{rate:g} bytes per second is too slow for a link of a cluster"
            yield key, f"{what}; write bytes per second, 3.125e9 for 25 Gbit/s"
    for key, latency, rate in routes:
        if platform.calibration.tcp_window and 2 * latency * rate > DEFAULT_TCP_GAMMA_BYTES:
            most = DEFAULT_TCP_GAMMA_BYTES / (2 * rate)
            what = f"a route of {latency:g} s makes SimGrid's TCP window the bottleneck"
            yield key, f"{what}; shorten it to {most:.3g} s at {rate:g} B/s, or set calibration.tcp_window = false"
        elif latency > _MAX_ROUTE_SECONDS:
            yield key, f"a route of {latency:g} s is too long for a cluster; write seconds, 12e-6 for 12 us"


def _links_and_routes(platform: Description) -> tuple[list[tuple[str, float]], list[tuple[str, float, float]]]:
    """Links as (key, bytes per second) and routes between nodes as (key of the latency, latency, bandwidth)."""
    if isinstance(platform, Platform):
        link = ("network.link_bytes_per_second", platform.link_bytes_per_second)
        latency, bandwidth = platform.longest_latency_seconds, platform.route[1]
        return [link], [("network.link_latency_seconds", latency, bandwidth)]
    assert isinstance(platform, HeterogeneousPlatform)
    kinds = {kind.name: kind for kind in platform.node_types}
    links = [
        (f"node_types[{number}].link_bytes_per_second", kind.link_bytes_per_second)
        for number, kind in enumerate(platform.node_types, start=1)
    ]
    routes = []
    for number, wire in enumerate(platform.wires, start=1):
        key = f"network.wires[{number}]"
        links.append((f"{key}.bytes_per_second", wire.bytes_per_second))
        routes.append((f"{key}.latency_seconds", *platform.route(kinds[wire.one], kinds[wire.other])))
    return links, routes
