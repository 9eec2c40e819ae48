"""The figure of a platform: its network, with the rates of its cables, and one of its nodes."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from collwise.common.errors import UsageError
from collwise.platforms import Dragonfly, FatTree, HostPlatform, Platform, Topology, Torus
from collwise.studies.figures.style import PALETTE

_SWITCH, _NODE, _CABLE, _CORE = PALETTE[0], PALETTE[4], PALETTE[7], PALETTE[5]
_MAX_SWITCHES = 32
_MAX_GROUPS = 40
_MAX_CORES = 256

Point = tuple[float, float]


def platform_figure(platform: HostPlatform) -> Figure:
    """The network on the left, a node on the right. Raises UsageError unless the platform describes equal nodes."""
    if not isinstance(platform, Platform):
        raise UsageError(f"platform '{platform.name}' cannot be drawn; expected a description of equal nodes")
    figure, (network, node) = plt.subplots(1, 2, figsize=(13, 6.5), width_ratios=(2.2, 1))
    for axes in (network, node):
        axes.set_axis_off()
    topology = platform.topology
    match topology:
        case None:
            what = _draw_one_switch(network, platform)
        case FatTree():
            what = _draw_fat_tree(network, platform, topology)
        case Dragonfly():
            what = _draw_dragonfly(network, platform, topology)
        case Torus():
            what = _draw_torus(network, platform, topology)
    figure.suptitle(f"{platform.title}: {platform.nodes} nodes")
    near = 1e6 * platform.route[0]
    far = 1e6 * platform.longest_latency_seconds
    reach = f"{near:.3g} us" if far == near else f"{near:.3g} us at one switch, up to {far:.3g} us"
    network.set_title(f"{what}\nlinks of nodes: {_rate(platform.node_bytes_per_second)}; latency {reach}", fontsize=10)
    _draw_node(node, platform)
    return figure


def _rate(bytes_per_second: float) -> str:
    gbits = bytes_per_second * 8e-9
    return f"{gbits / 1000:.4g} Tbit/s" if gbits >= 1000 else f"{gbits:.4g} Gbit/s"


def _box(axes: Axes, at: Point, text: str, width: float = 0.8, height: float = 0.5) -> None:
    """A switch."""
    x, y = at[0] - width / 2, at[1] - height / 2
    style = "round,pad=0,rounding_size=0.08"
    axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=style, facecolor=_SWITCH, edgecolor="none", zorder=2))
    axes.text(*at, text, ha="center", va="center", fontsize=7, color="white", zorder=3)


def _line(axes: Axes, point: Point, other: Point, share: float = 0.0) -> None:
    """Draws a cable. `share` is its rate relative to the fastest cable."""
    axes.plot([point[0], other[0]], [point[1], other[1]], color=_CABLE, linewidth=0.6 + 3.4 * share, zorder=1)


def _fit(axes: Axes, points: list[Point], margin: float = 1.0) -> None:
    xs, ys = [x for x, _ in points], [y for _, y in points]
    axes.set_xlim(min(xs) - margin, max(xs) + margin)
    axes.set_ylim(min(ys) - margin, max(ys) + margin)


def _nodes_below(axes: Axes, at: Point, count: int, width: float = 0.8) -> None:
    """Draws the nodes of a switch as a block of small squares below their number."""
    columns = math.ceil(math.sqrt(count))
    side = width / max(columns, 4)
    for number in range(count):
        x = at[0] - width / 2 + side * (number % columns)
        y = at[1] - 0.55 - side * (1 + number // columns)
        axes.add_patch(Rectangle((x, y), 0.75 * side, 0.75 * side, facecolor=_NODE, edgecolor="none"))
    axes.text(at[0], at[1] - 0.4, str(count), ha="center", va="center", fontsize=7)


def _at_switches(platform: Platform, topology: Topology) -> dict[int, int]:
    """The number of nodes at each switch that has any."""
    return Counter(map(topology.switch_of, range(platform.nodes)))


def _draw_one_switch(axes: Axes, platform: Platform) -> str:
    _box(axes, (0, 1), "switch", width=1.6)
    _nodes_below(axes, (0, 1), platform.nodes, width=1.6)
    _fit(axes, [(-1, -1.2), (1, 1)])
    backbone = platform.backbone_bytes_per_second
    sharing = "shared by all flows" if platform.backbone_is_shared else "for each flow"
    return "one switch" + (f", {_rate(backbone)} {sharing}" if backbone else "")


def _draw_fat_tree(axes: Axes, platform: Platform, tree: FatTree) -> str:
    nodes, count = platform.nodes, tree.switches(platform.nodes)
    cables = tree.cables(nodes, platform.node_bytes_per_second)
    thickest = max(cable.bytes_per_second for cable in cables)
    shown = min(count, _MAX_SWITCHES)
    places: dict[int, Point] = {index: (float(index), 0.0) for index in range(shown)}
    pods = tree.pods(nodes)
    if tree.switches_per_pod:
        for pod in range(pods):
            members = [index for index in range(shown) if index // tree.switches_per_pod == pod]
            if members:
                places[count + pod] = (sum(members) / len(members), 2.5)
    middle = (shown - 1) / 2
    core = count + pods
    places[core] = (middle, 5.0 if pods else 3.0)
    width = max(0.8, shown / 8)
    for cable in cables:
        if cable.one in places and cable.other in places:
            _line(axes, places[cable.one], places[cable.other], cable.bytes_per_second / thickest)
    at = _at_switches(platform, tree)
    for vertex, point in places.items():
        if vertex < count:
            _box(axes, point, str(vertex))
            _nodes_below(axes, point, at.get(vertex, 0))
        else:
            _box(axes, point, tree.vertex_name(nodes, vertex), width=width if vertex == core else max(1.2, width / 3))
    side = _rate(tree.sound_cables(nodes, platform.node_bytes_per_second)[0].bytes_per_second)
    levels = [f"up from a switch {side} ({tree.oversubscription:g}:1)"]
    if pods:
        levels.append(f"uplinks of a pod {_rate(cables[-1].bytes_per_second)} ({tree.pod_oversubscription:g}:1)")
    more = f"; {count - shown} further switches are not drawn" if count > shown else ""
    _fit(axes, [*places.values(), (0, -1.4)])
    return f"fat tree of {3 if pods else 2} levels, {count} switches{more}; {', '.join(levels)}"


def _draw_dragonfly(axes: Axes, platform: Platform, fly: Dragonfly) -> str:
    shown = min(fly.groups, _MAX_GROUPS)
    radius = max(1.5, 0.32 * shown)
    places = [
        (radius * math.sin(2 * math.pi * index / shown), radius * math.cos(2 * math.pi * index / shown))
        for index in range(shown)
    ]
    for pair in combinations(places, 2):
        axes.plot(*zip(*pair, strict=True), color=_CABLE, linewidth=0.5, zorder=1)
    at = _at_switches(platform, fly)
    for group, (x, y) in enumerate(places):
        members = range(group * fly.switches_per_group, (group + 1) * fly.switches_per_group)
        inside = sum(at.get(member, 0) for member in members)
        _box(axes, (x, y), f"{group}", width=0.9, height=0.6)
        axes.text(1.16 * x, 1.16 * y, f"{inside}", ha="center", va="center", fontsize=7)
    _fit(axes, [(1.2 * x, 1.2 * y) for x, y in places], 0.6)
    axes.set_aspect("equal")
    more = f" ({fly.groups - shown} are not drawn)" if fly.groups > shown else ""
    return (
        f"dragonfly of {fly.groups} groups{more}, each with {fly.switches_per_group} switches of "
        f"{fly.nodes_per_switch} nodes\n{_rate(fly.local_bytes_per_second)} from a switch into its group, "
        f"{_rate(fly.global_bytes_per_second)} between two groups; numbers outside: nodes"
    )


def _draw_torus(axes: Axes, platform: Platform, torus: Torus) -> str:
    """Draws the first two dimensions as a grid, with short ends of cables that wrap around."""
    lengths = (*torus.dimensions, 1)[:2]
    columns, rows = min(lengths[0], _MAX_SWITCHES), min(lengths[1], 16)
    at = _at_switches(platform, torus)
    for x in range(columns):
        for y in range(rows):
            for (dx, dy), length in zip(((1, 0), (0, 1)), lengths, strict=True):
                if length > 1:
                    _line(axes, (x - 0.5 * dx, y - 0.5 * dy), (x + 0.5 * dx, y + 0.5 * dy), 0.3)
            number = x + y * lengths[0]
            _box(axes, (x, y), f"{number}", width=0.5, height=0.4)
            axes.text(x + 0.1, y - 0.3, f"{at.get(number, 0)} nodes", fontsize=6, va="center")
    _fit(axes, [(0, 0), (columns - 1, rows - 1)])
    cable = _rate(torus.sound_cables(platform.nodes, platform.node_bytes_per_second)[0].bytes_per_second)
    size = " x ".join(map(str, torus.dimensions))
    layers = math.prod(torus.dimensions[2:])
    more = f"; the first of {layers} layers is drawn" if layers > 1 else ""
    return f"torus of {size} switches{more}; cables of {cable}, also from the last to the first in each row"


def _draw_node(axes: Axes, platform: Platform) -> None:
    cpus, cores = platform.cpus_per_node, platform.cores_per_node
    domains = platform.memory_domains_per_node or cpus
    axes.add_patch(Rectangle((0, 0), 10, 10, facecolor="none", edgecolor=_SWITCH))
    width = 10 / cpus
    for cpu in range(min(cpus, 8)):
        left = cpu * width
        axes.add_patch(Rectangle((left + 0.2, 3.5), width - 0.4, 6.2, facecolor="none", edgecolor=_CABLE))
        own = cores // cpus + (cpu < cores % cpus)
        columns = max(1, math.ceil(math.sqrt(own)))
        side = min((width - 0.8) / columns, 5.2 / max(1, math.ceil(own / columns)))
        for core in range(min(own, _MAX_CORES)):
            x, y = left + 0.4 + side * (core % columns), 8.7 - side * (1 + core // columns)
            axes.add_patch(Rectangle((x, y), 0.8 * side, 0.8 * side, facecolor=_CORE, edgecolor="none"))
        axes.text(left + width / 2, 9.25, f"CPU {cpu}: {own} cores", ha="center", va="center", fontsize=8)
    for domain in range(min(domains, 16)):
        left, each = domain * 10 / domains, 10 / domains
        axes.add_patch(Rectangle((left + 0.2, 2.1), each - 0.4, 1.1, facecolor=_NODE, edgecolor="none", alpha=0.6))
        name = f"memory {domain}" if domains <= 4 else str(domain)
        axes.text(left + each / 2, 2.65, name, ha="center", va="center", fontsize=8)
    memory = platform.memory_bytes_per_second
    together = f"together {memory * 1e-9:.4g} GB/s" if memory else "no common limit"
    pair = f"{platform.loopback_bytes_per_second * 1e-9:.4g} GB/s a pair"
    latency = f"{platform.loopback_latency_seconds * 1e6:.3g} us"
    rate, crossing = platform.between_sockets_bytes_per_second, platform.between_sockets_latency_seconds
    further = [f"{rate * 1e-9:.4g} GB/s"] if rate else []
    further += [f"{crossing * 1e6:.3g} us"] if crossing is not None else []
    between = f"; between sockets {', '.join(further)}" if further else ""
    paths = f"between processes: {pair}, {latency}; {together}{between}"
    axes.text(5, 1.55, paths, ha="center", va="center", fontsize=6 if further else 8)
    axes.add_patch(Rectangle((2.5, 0.15), 5, 0.9, facecolor=_SWITCH, edgecolor="none"))
    links = f"{platform.links_per_node} links, " if platform.links_per_node > 1 else ""
    interface = f"network interface: {links}{_rate(platform.node_bytes_per_second)}"
    axes.text(5, 0.6, interface, ha="center", va="center", fontsize=8, color="white")
    processes = platform.default_processes_per_node
    axes.set_title(f"a node ({processes} process{'es' if processes > 1 else ''} by default)", fontsize=10)
    axes.set_xlim(-0.3, 10.3)
    axes.set_ylim(-0.3, 10.3)
