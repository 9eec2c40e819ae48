"""Each key of a description: where it stands, whether it may be missing, and which values fit, as its message says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, replace

import pytest

from collwise.platforms import (
    Buffers,
    Calibration,
    Dragonfly,
    FatTree,
    HeterogeneousPlatform,
    Platform,
    Ports,
    Source,
    Torus,
    load_description,
    write_description,
)
from collwise.platforms.description import NodeFault, NodeType, Wire
from collwise.platforms.description_file import read_description
from collwise.platforms.topology import TOPOLOGIES, CableFault

# Too long for one line, so that each gets a table of its own.
_SOURCES = (Source("nodes and links" * 8, "a paper"), Source("loopback" * 16, "no measurement"))
_ONE_SWITCH = replace(
    load_description("grisou"),
    calibration=Calibration(
        acknowledged_from_bytes=33,
        copy_seconds_per_byte=1e-10,
        allocate_seconds_per_byte=1e-10,
        tcp_window=False,
        note="a note",
        sources=_SOURCES,
    ),
    processes_per_node=2,
    memory_domains_per_node=4,
    memory_bytes_per_node=2**30,
    memory_bytes_per_second=8e10,
    between_sockets_bytes_per_second=4e10,
    between_sockets_latency_seconds=1e-6,
    flag_latency_seconds=1e-7,
    sources=_SOURCES,
)
_FAULTY = {"cable_faults": (CableFault((1,), 0.5),)}
_KIND = NodeType("fast", 2, 1, 2, 1e9, 1e-6, 1e-9, 1e-6, 1e-9, 1.25e8, 0.0)
# Between them they have every key.
FORMS: dict[str, Platform | HeterogeneousPlatform] = {
    "one-switch": replace(
        _ONE_SWITCH,
        backbone_bytes_per_second=1e11,
        backbone_is_shared=True,
        node_faults=(NodeFault(3, 2.0, 0.5),),
        ports=Ports(1e9, 1e-5, 1e-6, 100.0, 66.0, 0.05, 1e4, 1e-6, 1e9, Buffers(32000, 0.3, 1000, 3)),
    ),
    "fat-tree": replace(_ONE_SWITCH, topology=FatTree(8, 1e-7, 2.0, 2, 1.5, routing="static", **_FAULTY)),
    "dragonfly": replace(_ONE_SWITCH, topology=Dragonfly(4, 1e-7, 4, 4, 4e9, 5e9, routing="static", **_FAULTY)),
    "torus": replace(_ONE_SWITCH, topology=Torus(4, 1e-7, (4, 4), 4e9, **_FAULTY)),
    "node-types": HeterogeneousPlatform(
        name="lab",
        title="Lab",
        site="lab",
        host_prefix="n",
        host_suffix="",
        loopback_bytes_per_second=1e9,
        loopback_latency_seconds=1e-6,
        node_types=(_KIND, replace(_KIND, name="slow", nodes=1, link_bytes_per_second=1.25e7)),
        wires=(Wire("fast", "fast", 2e-5, 1e8), Wire("fast", "slow", 3e-5, 1e8)),
        processes_per_node=1,
        sources=(Source("nodes and links", "a paper"),),
    ),
}
_TABLES = {
    **dict.fromkeys(("", "cluster", "network"), Platform),
    **{"calibration": Calibration, "ports": Ports, "node_faults": NodeFault, "cable_faults": CableFault},
    **{"node_types": NodeType, "wires": Wire, "sources": Source},
    **{"fat-tree": FatTree, "dragonfly": Dragonfly, "torus": Torus},
}
"""The class of whose fields a table, or a topology by its kind, has keys; a field without a default is required."""
_REQUIRED = {f"dragonfly {name}" for name in ("groups", "switches_per_group")} | {"torus dimensions"}
_REQUIRED |= {f"dragonfly {name}_bytes_per_second" for name in ("local", "global")}
_OPTIONAL = {"torus nodes_per_switch"}
_HEAD = re.compile(r"^\[+([\w.]+)\]+$|^(\w+) = \[$", re.MULTILINE)
_KEY = re.compile(r'(?:^|(?<=[{,] ))(\w+) = ("[^"\n]*"|\[[^\[\]{}\n]*\]|[^\s,{}\[\]]+)', re.MULTILINE)
"""A key with its value on one line, also within the braces of a row."""


def keys(text: str) -> Iterator[tuple[re.Match[str], str, int, int]]:
    """Each key, the table that it is in, its line, and the line of the table's header, or of its row."""
    for key in _KEY.finditer(text):
        *_, head = [None, *_HEAD.finditer(text, 0, key.start())]
        line = 1 + text.count("\n", 0, key.start())
        in_row = text[key.start() - 2 : key.start()] in ("{ ", ", ")
        start = line if in_row else 1 + text.count("\n", 0, head.start()) if head else 1
        yield key, (head[1] or head[2]) if head else "", line, start


def without(text: str, key: re.Match[str]) -> str:
    """The text without a key; in a row, one comma goes as well."""
    before, after = text[: key.start()], text[key.end() :]
    return before + after.removeprefix(", ") if before.endswith("{ ") else before.removesuffix(", ") + after


def said(text: str, name: str) -> list[tuple[int, str]]:
    """The line and the rest of each problem of a text that begins with the path of a key."""
    found = [(problem.line, problem.what.partition(": ")) for problem in read_description(text)[1]]
    return [(line, what) for line, (path, _, what) in found if path.rpartition(".")[2] == name]


def values(phrase: str) -> tuple[list[str], list[str]]:
    """Values that fit by a message's phrase, as close to others as possible, and values that do not."""
    numbers, others = re.findall(r"\d+", phrase), ['"fast"', "true", "nan", "inf", "-inf", "[]"]
    if phrase.startswith("a whole number"):
        beyond = [f"{int(number) + 1}" for number in numbers[1:]]
        return numbers, [f"{int(numbers[0]) - 1}", f"{numbers[0]}.0", *beyond, *others]
    if phrase.startswith("a number"):
        lowest = ["1e-300"] if "above 0" in phrase else numbers[:1]
        below = "0" if "above 0" in phrase else f"{int(numbers[0]) - 0.001}"
        most, beyond = (["0.999"], ["1"]) if "below 1" in phrase else (["1e300"], [])
        return [*lowest, *most], [below, "-1", *beyond, *others]
    if phrase == "true or false":
        return ["true", "false"], ["1", "0", '"yes"', "nan", "[]"]
    if phrase.startswith("a list of"):
        several = (["[60]", "[1, 1, 1, 1, 1, 1]"], ["[62]", "[1, 1, 1, 1, 1, 1, 1]", "[0]"])
        one_or_two = (["[0]", "[1, 0]"], ["[1, 1]", "[0, 1, 2]"])
        fitting, misfits = several if "1 to 6" in phrase else one_or_two
        return fitting, [*misfits, "[-1]", "[1.0]", "[true]", '["1"]', *others]
    letters = ['"a b"', '"a/b"', *(['"A"'] if "lower-case" in phrase else [])] if "letters" in phrase else []
    return ['"a-9_"'] if letters else [], ["1", "true", "1.5", "nan", *letters]


@pytest.mark.parametrize("form", FORMS)
def test_each_key_is_known_required_and_bounded_as_its_messages_say(form: str) -> None:
    """The line is that of the key, or, of a missing one, that of its table."""
    written = write_description(FORMS[form])
    text = re.sub(r"\[([\s\d,]+)\]", lambda found: f"[{', '.join(found[1].replace(',', ' ').split())}]", written)
    assert read_description(text) == (FORMS[form], [])
    for head in _HEAD.finditer(text):
        if "published" not in head[0]:
            place, name = head.end(head.lastindex or 0), head[head.lastindex or 0].rpartition(".")[2]
            [(line, what)] = said(f"{text[:place]}x{text[place:]}", f"{name}x")
            assert line == 1 + text.count("\n", 0, place)
            assert re.match(rf"unknown key; did you mean .*\b{name}\b", what), what
    for key, path, line, start in keys(text):
        name, table = key[1], form if path == "topology" else path.rpartition(".")[2]
        # What topologies share with other descriptions is looked at without them.
        if name == "kind" or path.startswith("published") or (form in TOPOLOGIES and "topology" not in path):
            continue

        def put(words: str, key: re.Match[str] = key) -> str:
            return text[: key.start()] + words + text[key.end() :]

        [(found, what)] = said(put(f"{name}x = {key[2]}"), f"{name}x")
        assert (found, re.match(rf"unknown key; did you mean .*\b{name}\b", what) is not None) == (line, True), what
        [(found, what)] = said(put(f"{name} = {{}}"), name)
        valid = what.removeprefix("a dict does not fit (valid: ").removesuffix(")")
        assert found == line
        fitting, misfits = values(valid)
        for value in fitting:
            assert not [what for _, what in said(put(f"{name} = {value}"), name) if "does not fit (" in what], value
        for value in misfits:
            [(found, what)] = said(put(f"{name} = {value}"), name)
            assert (found, what.partition(" does not fit ")[2]) == (line, f"(valid: {valid})"), value
        default = {one.name: one.default for one in fields(_TABLES[table])}.get(name) if table in _TABLES else MISSING
        required = (default is MISSING or f"{table} {name}" in _REQUIRED) and f"{table} {name}" not in _OPTIONAL
        missing = [(start, f"missing (valid: {valid})")] if required else []
        assert [one for one in said(without(text, key), name) if one[1].startswith("missing")] == missing, (table, name)
