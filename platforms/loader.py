"""Loading of platforms and interconnects by name or from a file."""

from __future__ import annotations

from pathlib import Path

from collwise.common.errors import UsageError, check_name
from collwise.platforms.check import read_text
from collwise.platforms.description import HeterogeneousPlatform, Platform
from collwise.platforms.description_file import Problem, read_description
from collwise.platforms.hosts import HostPlatform
from collwise.platforms.shipped import FOLDER, INTERCONNECTS, interconnect_names, known
from collwise.platforms.xml_file import XmlPlatform, read_xml


def load(name_or_path: str | Path) -> HostPlatform:
    """Returns the platform with that name, or the one that a .toml or .xml file describes."""
    path = _find(name_or_path)
    if path.suffix == ".xml":
        return _from_xml(path)
    platform, problems = read_description(read_text(path))
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
    """Two nodes at two switches, whose links and calibration new descriptions take over."""
    check_name("interconnect", name, interconnect_names())
    found = load_description(INTERCONNECTS / f"{name}.toml")
    if found.topology is None:
        raise UsageError(f"interconnect '{name}' has no topology; use one with hop_latency_seconds")
    return found


def _find(name_or_path: str | Path) -> Path:
    path = Path(name_or_path)
    if isinstance(name_or_path, Path) or path.suffix or len(path.parts) > 1:
        return path
    files = [f"{name_or_path}{ending}" for ending in (".toml", ".xml") if Path(f"{name_or_path}{ending}").is_file()]
    if files and name_or_path not in known():
        raise UsageError(f"unknown platform '{name_or_path}'; did you mean the file {' or '.join(files)}?")
    check_name("platform", name_or_path, known(), "see 'collwise platforms list'")
    return FOLDER / f"{name_or_path}.toml"


def _from_xml(path: Path) -> XmlPlatform:
    text = read_text(path)
    problems, hosts, options = read_xml(text)
    if problems:
        raise _refusal(path, problems)
    return XmlPlatform(path.stem, f"platform XML {path.name}", text, tuple(hosts), tuple(options.items()))


def _refusal(path: Path, problems: list[Problem]) -> UsageError:
    others = len(problems) - 1
    more = f" [and {others} more: see 'collwise platforms check {path}']" if others else ""
    return UsageError(f"{path}:{problems[0].line}: {problems[0].what}{more}")
