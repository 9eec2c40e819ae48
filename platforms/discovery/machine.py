"""Facts that a machine reports about itself through lstopo (of hwloc), lscpu and Linux's /sys."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree import ElementTree

from collwise.common.errors import UsageError
from collwise.common.files import read_text
from collwise.platforms.discovery.facts import Fabric, Facts, Port, facts, link_facts, merged, read

SYS = Path("/sys")
_RATE = re.compile(r"([\d.]+) Gb/sec")
_LSCPU = {"sockets": r"Socket\(s\)", "per_socket": r"Core\(s\) per socket", "domains": r"NUMA node\(s\)"}
_OF_NODES = ("CPUs", "cores", "memory domains")
_MEMORY = "bytes of memory"
_SECONDS = 30
# hwloc's names of network interfaces and of the devices of InfiniBand and similar networks.
_HWLOC_NETWORKS = ("2", "3", "Network", "OpenFabrics")
_CONNECTX_GBITS = {"ConnectX-7": 400.0, "ConnectX-6": 200.0, "ConnectX-5": 100.0, "ConnectX-4": 100.0}


def machine_facts(saved: Path | None = None, sys: Path | None = None) -> Facts:
    """The facts of a machine, from its files; by default those of this machine.

    `saved` is lstopo's XML or lscpu's output, and `sys` a copy of /sys.
    """
    of_file: Facts = {}
    if saved is not None:
        text = read_text(saved)
        of_file = (lstopo_facts if text.lstrip().startswith("<") else lscpu_facts)(text, str(saved))
        if not of_file:
            how = "write it with 'lstopo --of xml FILE' or 'lscpu > FILE'"
            raise UsageError(f"{saved}: neither lstopo's XML nor lscpu's output; {how}")
    elif sys is None:
        of_file = lstopo_facts(_output("lstopo-no-graphics", "--of", "xml", "--disallowed", "-"), "lstopo")
        sys = SYS
    of_sys = sys_facts(sys) if sys is not None else {}
    # hwloc knows nodes best, and /sys the rates of links.
    node = {what: fact for what, fact in of_file.items() if what in (*_OF_NODES, _MEMORY)}
    return merged(node, of_sys, of_file)


def lstopo_facts(text: str, where: str) -> Facts:
    """CPUs, cores, memory, memory domains and network devices in hwloc's XML; empty for other text."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return {}
    kinds = [element.get("type") for element in root.iter("object")]
    if root.tag != "topology" or "Core" not in kinds:
        return {}
    # Before hwloc 2, packages were named sockets, and a machine of one domain had no NUMANode.
    sockets = max(kinds.count("Package") + kinds.count("Socket"), 1)
    node = _node_facts(sockets, kinds.count("Core"), max(kinds.count("NUMANode"), 1), where)
    node |= _memory_facts([element.get("local_memory", "") for element in root.iter("object")], where)
    return node | link_facts(list(_hwloc_ports(root, where)))


def lscpu_facts(text: str, where: str) -> Facts:
    """CPUs, cores and memory domains in lscpu's output; empty if the output lacks these lines."""
    numbers = {}
    for name, label in _LSCPU.items():
        if match := re.search(rf"^\s*{label}:\s*(\d+)\s*$", text, re.MULTILINE):
            numbers[name] = int(match[1])
    if not {"sockets", "per_socket"} <= numbers.keys():
        return {}
    cores = numbers["sockets"] * numbers["per_socket"]
    return _node_facts(numbers["sockets"], cores, numbers.get("domains", 1), where)


def sys_facts(sys: Path) -> Facts:
    """The facts of a machine's /sys. Raises UsageError for a folder with neither processors nor networks."""
    if not (sys / "class").is_dir() and not (sys / "devices/system/cpu").is_dir():
        raise UsageError(f"{sys}: not a copy of /sys; expected a folder with class/net or devices/system/cpu")
    return _cpus_of(sys) | link_facts(list(_ports(sys)))


def _node_facts(sockets: int, cores: int, domains: int, where: str) -> Facts:
    numbers = zip(_OF_NODES, (sockets, cores, domains), strict=True)
    return facts(*(read(what, number, where) for what, number in numbers))


def _memory_facts(numbers: Iterable[str], where: str) -> Facts:
    """The sum of the domains' memories in bytes, as a fact; no fact if none of them has a number."""
    total = sum(int(number) for number in numbers if number.isdecimal())
    return facts(read(_MEMORY, total, where)) if total else {}


def _hwloc_ports(root: ElementTree.Element, where: str) -> Iterator[Port]:
    """The network ports in hwloc's XML, which gives no rates; for InfiniBand, the card's model determines the rate."""
    for card in root.iter("object"):
        model = next((info.get("value", "") for info in card.findall("info") if info.get("name") == "PCIDevice"), "")
        for device in card.findall("object"):
            name = device.get("name", "")
            if device.get("type") != "OSDev" or device.get("osdev_type") not in _HWLOC_NETWORKS:
                continue
            infos = {info.get("name"): info.get("value") for info in device.findall("info")}
            if name.startswith("hfi1"):
                yield Port(Fabric.OMNI_PATH, 100.0, f"{where}: {name}")
            elif name.startswith("cxi"):
                yield Port(Fabric.SLINGSHOT, None, f"{where}: {name}")
            elif name.startswith("mlx") and infos.get("Port1State") == "4" and infos.get("Port1LID") != "0x0":
                gbits = next((rate for known, rate in _CONNECTX_GBITS.items() if known in model), None)
                yield Port(Fabric.INFINIBAND, gbits, f"{where}: {name}{f', {model}' if model else ''}")


def _cpus_of(sys: Path) -> Facts:
    sockets, cores = set(), set()
    for topology in (sys / "devices/system/cpu").glob("cpu[0-9]*/topology"):
        package = _text(topology / "physical_package_id")
        sockets.add(package)
        siblings = _text(topology / "thread_siblings_list") or _text(topology / "core_id")
        cores.add((package, siblings))
    if not cores:
        return {}
    folders = list((sys / "devices/system/node").glob("node[0-9]*"))
    domains = sum(bool(_text(folder / "cpulist")) for folder in folders)
    totals = [re.search(r"MemTotal:\s*(\d+) kB", _text(folder / "meminfo")) for folder in folders]
    memory = [str(int(match[1]) * 1024) for match in totals if match]
    node = _node_facts(len(sockets), len(cores), max(domains, 1), str(sys / "devices/system/cpu"))
    return node | _memory_facts(memory, str(sys / "devices/system/node"))


def _ports(sys: Path) -> Iterator[Port]:
    """The ports of a machine that are up."""
    for device in sorted((sys / "class/infiniband").glob("*")):
        for port in sorted((device / "ports").glob("*")):
            if "ACTIVE" not in _text(port / "state"):
                continue
            rate = _RATE.match(_text(port / "rate"))
            kind = Fabric.OMNI_PATH if device.name.startswith("hfi1") else Fabric.INFINIBAND
            if _text(port / "link_layer") == "Ethernet":
                kind = Fabric.ROCE
            yield Port(kind, float(rate[1]) if rate else None, str(port / "rate"), _text(port / "rate"))
    cxi = sorted((sys / "class/cxi").glob("cxi*"))
    interfaces = sorted((sys / "class/net").glob("*"))
    # The Ethernet sides of Slingshot cards, as Cray's software names them.
    slingshot = [interface for interface in interfaces if cxi and interface.name.startswith("hsn")]
    for interface in interfaces:
        if _text(interface / "operstate") == "down" or (interface / "wireless").exists():
            continue
        if interface.name.startswith("ipogif"):
            yield Port(Fabric.ARIES, None, str(interface))
        elif (interface / "device").exists() and _text(interface / "type") == "1":
            kind = Fabric.SLINGSHOT if interface in slingshot else Fabric.ETHERNET
            yield Port(kind, _gbits(interface, sys), str(interface / "speed"))
    if not slingshot:
        yield from (Port(Fabric.SLINGSHOT, None, str(device)) for device in cxi)


def _gbits(interface: Path, sys: Path) -> float | None:
    """The rate of an interface from the kernel or, on this machine, from ethtool; None if neither knows it."""
    speed = _text(interface / "speed")
    if not speed.isdecimal() and sys == SYS:
        match = re.search(r"Speed: (\d+)Mb/s", _output("ethtool", interface.name))
        speed = match[1] if match else ""
    return int(speed) / 1000 if speed.isdecimal() and int(speed) else None


def _text(file: Path) -> str:
    """The contents of a file in /sys; empty if it cannot be read, like the speed of an interface that is down."""
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _output(*command: str) -> str:
    """The output of a program; '' if it is not installed or fails."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
