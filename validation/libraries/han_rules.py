"""Writes decisions for hierarchical collectives as dynamic rules of Open MPI's component HAN (4.1 and 5.0).

The file (`coll_han_dynamic_rules_filename`, with `coll_han_use_dynamic_file_rules`) names a component by collective,
topological level, communicator size and message size. It is a stream of words; `#` starts a comment:

    collectives, then for each: id, levels, then for each: level, sizes, then for each:
        communicator size, message sizes, then for each: message size, component

An entry for a size applies up to the next size; the first communicator size is 1, and the first message size is 0.
Components are written by name, since Open MPI 4.1.4 rejects the numbers that its header file documents for components.
The rules cannot set the segment sizes and the modules of HAN's pipelined algorithms. These are parameters with one
value for all sizes, which a comment in the file lists for the choice with the smallest mean slowdown over all points.
The rules of the two lower levels apply to HAN's simple algorithms (`coll_han_use_simple_bcast`), which do not pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from collwise.algorithms.catalogue import Catalogue
from collwise.common.errors import UsageError
from collwise.common.grouping import grouped
from collwise.common.units import format_size
from collwise.validation.hierarchy.space import PREFIX, WITHIN
from collwise.validation.select.consumers import series
from collwise.validation.select.decisions import DecisionTable, merged
from collwise.validation.times.choice import Choice

INTRA_NODE, INTER_NODE, GLOBAL = 0, 1, 2
"""HAN's topological levels."""

VERSIONS = ("4.1", "5.0")

_COLLECTIVES = ("allgather", "allreduce", "bcast", "gather", "reduce", "scatter")
"""Collectives that HAN has, by the names of the catalogue."""

_BETWEEN = {"library": "libnbc"}
_USUAL_BETWEEN = "adapt"
_WITHIN = dict(zip(WITHIN, ("tuned", "sm", "sm", "tuned"), strict=True))
"""HAN's component for each kind of communication in WITHIN. HAN's one-sided component, SOLO, is in no release."""

_UP_MODULES, _LOW_MODULES = ("libnbc", "adapt"), ("tuned", "sm")
_ADAPT_ALGORITHMS = {"binomial": 1, "binary": 3, "chain": 4}
"""The value of coll_adapt_bcast_algorithm for each of our algorithms; 4 is Open MPI's pipeline, a single chain."""


def han_rules(tables: Sequence[DecisionTable], version: str = VERSIONS[0]) -> str:
    """Rules that make HAN run the calls for which the tables decide, with HAN's parameters in a comment."""
    from collwise.validation.hierarchy.tuning import usual_choice

    by_name = grouped(tables, lambda table: table.collective)
    for table in tables:
        name = table.collective
        if name not in _COLLECTIVES:
            raise UsageError(f"HAN has no {name}; valid: {', '.join(_COLLECTIVES)}")
        for choice in table.choices:
            if not choice.algorithm.startswith(PREFIX):
                raise UsageError(f"{name} {choice.algorithm} is not made of tasks; valid: algorithms named {PREFIX}*")
    usual = {name: usual_choice(by_name[name]) for name in sorted(by_name)}
    lines = [
        f"# Rules for HAN of Open MPI {han_version(version)}, from collwise. They need these parameters:",
        *(f"#   {name} = {value}" for name, value in _parameters(usual).items()),
        *(
            f"# {name}: segments of {format_size(choice.segment_bytes)} for all sizes, which HAN cannot distinguish"
            for name, choice in usual.items()
        ),
        f"{len(by_name)} # collectives",
    ]
    for name in usual:
        lines += _collective_lines(name, by_name[name])
    return "\n".join(lines) + "\n"


def han_version(openmpi_version: str) -> str:
    """The series of a version, such as '4.1' of '4.1.4'. Raises UsageError for a version without HAN."""
    version = series(openmpi_version)
    if version not in VERSIONS:
        raise UsageError(f"Open MPI {openmpi_version} has no HAN; valid: {', '.join(VERSIONS)}")
    return version


def _collective_lines(name: str, tables: Sequence[DecisionTable]) -> Iterator[str]:
    """The rules of a collective on three levels: within a node, between node leaders, and the whole communicator."""
    within: dict[int, list[tuple[int, str]]] = {}
    between: dict[int, list[tuple[int, str]]] = {}
    # HAN of Open MPI 4.1 ends with a segmentation fault when it passes an allreduce on to another component.
    others = "han" if name == "allreduce" else "tuned"
    whole: dict[int, list[tuple[int, str]]] = {1: [(0, others)]}
    for table in sorted(tables, key=lambda item: item.processes_per_node):
        for procs, row in table.rules.items():
            by_size = [(0, row[0][1]), *row[1:]]
            nodes = -(-procs // table.processes_per_node)
            within[table.processes_per_node] = [(start, _WITHIN[WITHIN[choice.parameter]]) for start, choice in by_size]
            between[nodes] = [(start, _component_between(choice)) for start, choice in by_size]
            first = row[0][0]
            whole[procs] = [(0, "han")] if first == 0 else [(0, others), (first, "han")]
    entry = Catalogue.load().collective(name)
    yield f"{entry.openmpi_collective} # {name}"
    yield "3 # levels"
    for level, rules, what in (
        (INTRA_NODE, within, "within a node, by its processes"),
        (INTER_NODE, between, "between nodes, by their number"),
        (GLOBAL, whole, "the whole, by processes"),
    ):
        yield f"{level} # {what}"
        yield from _level_lines(rules)


def _level_lines(rules: Mapping[int, Sequence[tuple[int, str]]]) -> Iterator[str]:
    """The rules of a level; the smallest size is written as 1, since HAN demands that the first one is 1."""
    ordered = dict(sorted(rules.items()))
    first = min(ordered)
    yield f"{len(ordered)} # sizes"
    for size, by_message in ordered.items():
        shortest = merged(by_message)
        yield f"{1 if size == first else size} {len(shortest)}"
        yield from (f"{start} {component}" for start, component in shortest)


def _component_between(choice: Choice) -> str:
    return _BETWEEN.get(choice.algorithm.removeprefix(PREFIX), _USUAL_BETWEEN)


def _parameters(usual: Mapping[str, Choice]) -> dict[str, str]:
    found = {
        "coll_han_priority": "100",
        "coll_adapt_priority": "1",
        "coll_sm_priority": "1",
        "coll_han_use_dynamic_file_rules": "1",
    }
    for name, choice in usual.items():
        up, low = _component_between(choice), _WITHIN[WITHIN[choice.parameter]]
        if name in ("bcast", "reduce", "allreduce"):
            found[f"coll_han_{name}_segsize"] = str(choice.segment_bytes)
        found[f"coll_han_{name}_up_module"] = str(_UP_MODULES.index(up))
        found[f"coll_han_{name}_low_module"] = str(_LOW_MODULES.index(low))
        if up != "adapt":
            continue
        for part in {"bcast": ("bcast",), "reduce": ("reduce",), "allreduce": ("bcast", "reduce")}.get(name, ()):
            found.setdefault(f"coll_adapt_{part}_algorithm", str(_ADAPT_ALGORITHMS[choice.algorithm[len(PREFIX) :]]))
            found.setdefault(f"coll_adapt_{part}_segment_size", str(choice.limit_bytes))
    return found
