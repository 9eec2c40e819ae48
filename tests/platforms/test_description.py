"""The known platforms, their SMPI options, and descriptions written and read back."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from collwise.platforms import (
    Calibration,
    Dragonfly,
    FatTree,
    HeterogeneousPlatform,
    HostPlatform,
    Platform,
    Source,
    Torus,
    check_file,
    known,
    load,
    load_description,
    write_description,
)
from collwise.platforms.description import NodeType, Wire
from collwise.platforms.description_file import read_description
from collwise.platforms.loader import interconnect
from collwise.platforms.smpi import factor_list, factor_rows, list_problems, overhead_list, overhead_rows
from collwise.validation.calibration.figures import amounts, from_data_sheets
from tests.platforms.test_keys import FORMS

_AMOUNT = st.floats(0, 1e12, allow_nan=False)
_POSITIVE = st.floats(1e-12, 1e12, exclude_min=True)
_WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)
_LABEL = st.from_regex(r"[A-Za-z0-9._-]{0,12}", fullmatch=True)
_SIZES = st.lists(st.integers(1, 2**30), max_size=4, unique=True).map(lambda sizes: [0, *sorted(sizes)])


NO_BACKBONE: dict[str, Any] = {
    "backbone_bytes_per_second": None,
    "backbone_latency_seconds": 0.0,
    "backbone_is_shared": False,
}


@st.composite
def _rows(draw: st.DrawFn, values: int, amounts: st.SearchStrategy[float]) -> tuple[tuple[float, ...], ...]:
    return tuple((size, *(draw(amounts) for _ in range(values))) for size in draw(_SIZES))


_SOURCES = st.lists(st.builds(Source, _WORDS, _WORDS), max_size=3).map(tuple)
_CALIBRATIONS = st.builds(
    Calibration,
    latency_factor=_rows(1, _POSITIVE),
    bandwidth_factor=_rows(1, _POSITIVE),
    os=_rows(2, _AMOUNT),
    or_=_rows(2, _AMOUNT),
    ois=_rows(2, _AMOUNT),
    eager_limit_bytes=st.integers(0, 2**31 - 17),
    crosstraffic=st.booleans(),
    reduce_seconds_per_byte=_AMOUNT,
    tcp_window=st.booleans(),
    note=st.text(st.characters(codec="utf-8"), max_size=60),
    sources=_SOURCES,
)
_TOPOLOGIES = st.one_of(
    st.builds(FatTree, st.integers(1, 50), _AMOUNT, st.floats(1, 100)),
    st.builds(FatTree, st.integers(1, 50), _AMOUNT, st.floats(1, 100), st.integers(1, 9), st.floats(1, 100)),
    st.builds(Dragonfly, st.integers(1, 4), _AMOUNT, st.integers(50, 60), st.integers(20, 30), _POSITIVE, _POSITIVE),
    st.builds(Torus, st.integers(2, 4), _AMOUNT, st.sampled_from(((30, 30), (12, 10, 10))), st.none() | _POSITIVE),
)
_PLATFORMS = st.builds(
    Platform,
    name=st.from_regex(r"[a-z0-9][a-z0-9_-]{0,10}", fullmatch=True),
    title=_WORDS,
    site=st.from_regex(r"[A-Za-z0-9._-]{1,10}", fullmatch=True),
    nodes=st.integers(1, 1000),
    host_prefix=_LABEL,
    host_suffix=_LABEL,
    cpus_per_node=st.integers(2, 4),
    cores_per_node=st.integers(1, 10).map(lambda number: 12 * number),  # a multiple of the CPUs
    core_flops=_POSITIVE,
    link_bytes_per_second=_POSITIVE,
    link_latency_seconds=_AMOUNT,
    loopback_bytes_per_second=_POSITIVE,
    loopback_latency_seconds=_AMOUNT,
    first_host=st.integers(0, 1000),
    processes_per_node=st.none() | st.integers(1, 4),
    links_per_node=st.integers(1, 4),
    backbone_bytes_per_second=_POSITIVE,
    backbone_latency_seconds=_AMOUNT,
    backbone_is_shared=st.booleans(),
    memory_domains_per_node=st.none() | st.integers(1, 4),
    memory_bytes_per_second=st.none() | _POSITIVE,
    between_sockets_bytes_per_second=st.none() | _POSITIVE,
    between_sockets_latency_seconds=st.none() | _AMOUNT,
    calibration=_CALIBRATIONS,
    published=st.dictionaries(_WORDS, _AMOUNT | st.dictionaries(_WORDS, _AMOUNT, max_size=3), max_size=3),
    sources=_SOURCES,
)


@st.composite
def _different_nodes(draw: st.DrawFn) -> HeterogeneousPlatform:
    names = draw(st.lists(st.from_regex(r"[A-Za-z0-9._-]{1,12}", fullmatch=True), min_size=1, max_size=4, unique=True))
    kinds = [
        draw(
            st.builds(
                NodeType,
                name=st.just(name),
                nodes=st.integers(1, 3),
                cpus_per_node=st.integers(1, 4),
                cores_per_node=st.just(12),  # a multiple of the CPUs
                core_flops=_POSITIVE,
                send_base_seconds=_AMOUNT,
                send_seconds_per_byte=_AMOUNT,
                receive_base_seconds=_AMOUNT,
                receive_seconds_per_byte=_AMOUNT,
                link_bytes_per_second=_POSITIVE,
                link_latency_seconds=_AMOUNT,
            )
        )
        for name in names
    ]
    pairs = [(a, b) for number, a in enumerate(kinds) for b in kinds[number:] if a is not b or a.nodes > 1]
    ends = [draw(st.permutations([a.name, b.name])) for a, b in pairs]
    return HeterogeneousPlatform(
        name=draw(st.from_regex(r"[a-z0-9][a-z0-9_-]{0,10}", fullmatch=True)),
        title=draw(_WORDS),
        site=draw(st.from_regex(r"[A-Za-z0-9._-]{1,10}", fullmatch=True)),
        host_prefix=draw(_LABEL),
        host_suffix=draw(_LABEL),
        loopback_bytes_per_second=draw(_POSITIVE),
        loopback_latency_seconds=draw(_AMOUNT),
        node_types=tuple(kinds),
        wires=tuple(Wire(one, other, draw(_AMOUNT), draw(_POSITIVE)) for one, other in draw(st.permutations(ends))),
        first_host=draw(st.integers(0, 1000)),
        processes_per_node=draw(st.none() | st.integers(1, 4)),
        calibration=replace(draw(_CALIBRATIONS), os=((0, 0.0, 0.0),), or_=((0, 0.0, 0.0),), ois=((0, 0.0, 0.0),)),
        published=draw(st.dictionaries(_WORDS, _AMOUNT, max_size=3)),
        sources=draw(_SOURCES),
    )


@given(_different_nodes())
def test_heterogeneous_descriptions_round_trip(platform: HeterogeneousPlatform) -> None:
    text = write_description(platform)
    assert read_description(text) == (platform, [])
    assert write_description(platform) == text


@given(_PLATFORMS, st.none() | st.just(NO_BACKBONE) | _TOPOLOGIES.map(lambda one: NO_BACKBONE | {"topology": one}))
def test_round_trip(platform: Platform, changes: dict[str, Any] | None) -> None:
    platform = replace(platform, **(changes or {}))
    text = write_description(platform)
    assert read_description(text) == (platform, [])
    assert write_description(platform) == text


@given(_PLATFORMS | _different_nodes())
def test_the_written_xml_is_a_good_platform_file(
    tmp_path_factory: pytest.TempPathFactory, platform: HostPlatform
) -> None:
    file = tmp_path_factory.mktemp("xml") / "platform.xml"
    file.write_text(platform.xml_text())
    problems, hosts = check_file(file)
    assert problems == []
    assert tuple(hosts) == platform.hosts


def test_known_platforms() -> None:
    found = {name: (len(load(name).hosts), load(name).default_processes_per_node) for name in known()}
    assert found == {
        "aws-c5n-efa": (32, 36),
        "boba": (32, 1),
        "dahu": (32, 2),
        "exact": (8, 1),
        "exact-heterogeneous": (16, 1),
        "exact-sender": (8, 1),
        "exact-symmetric": (8, 1),
        "fat-tree-1024": (1024, 32),
        "frodo": (32, 1),
        "fugaku": (512, 48),
        "google-compute": (150, 56),
        "grisou": (51, 2),
        "gros": (124, 1),
        "hcl16": (16, 1),
        "jupiter": (36, 16),
        "juqueen": (64, 16),
        "leonardo": (3456, 32),
        "lumi": (2978, 64),
        "marenostrum5": (1120, 80),
        "shaheen-ii": (6174, 32),
        "slingshot-2048": (2048, 128),
        "stampede2": (1736, 48),
        "vsc-3": (2000, 16),
    }
    assert known() == sorted(found)


def test_grisou_and_gros_are_the_published_clusters() -> None:
    grisou, gros = load_description("grisou"), load_description("gros")
    assert (grisou.nodes, grisou.cpus_per_node, grisou.cores_per_node) == (51, 2, 16)
    assert (gros.nodes, gros.cpus_per_node, gros.cores_per_node) == (124, 1, 18)
    assert gros.hosts[-1] == "gros-124.nancy.grid5000.fr"
    assert grisou.published["gamma"] == {"3": 1.114, "4": 1.219, "5": 1.283, "6": 1.451, "7": 1.540}
    assert gros.published["gamma"] == {"3": 1.084, "4": 1.170, "5": 1.254, "6": 1.339, "7": 1.424}
    assert grisou.published["gather_binomial"] == {"alpha_seconds": 1.2e-4, "beta_seconds_per_byte": 8.6e-10}
    assert gros.published["gather_linear_sync"] == {"alpha_seconds": 9.5e-5, "beta_seconds_per_byte": 3.9e-10}


@pytest.mark.parametrize("name", known())
def test_known_files_are_as_the_writer_writes_them_and_check_clean(name: str) -> None:
    import collwise.platforms as package

    file = Path(package.__file__).parent / f"{name}.toml"
    platform = load(name)
    assert isinstance(platform, Platform | HeterogeneousPlatform)
    assert file.read_text() == write_description(platform)
    assert check_file(file)[0] == []
    assert all(source["where"] for source in tomllib.loads(file.read_text())["sources"])


def test_smpi_options_count_the_envelope_and_start_rows_at_their_size() -> None:
    calibration = Calibration(
        latency_factor=((0, 1.0), (1000, 3.0)),
        bandwidth_factor=((0, 0.94),),
        os=((0, 1e-5, 1e-9), (1000, 2e-5, 0.0)),
        eager_limit_bytes=4096,
        crosstraffic=False,
    )
    assert replace(load_description("gros"), calibration=calibration).smpi_options() == {
        "smpi/lat-factor": "0:1.0;1015:3.0",
        "smpi/bw-factor": "0:0.94",
        "smpi/os": "0:0.0:0.0;0:1e-05:1e-09;999:2e-05:0.0",
        "smpi/or": "0:0.0:0.0;0:0.0:0.0",
        "smpi/ois": "0:0.0:0.0;0:0.0:0.0",
        "smpi/send-is-detached-thresh": "4096",
        "network/crosstraffic": "no",
    }


@given(_rows(1, _POSITIVE), _rows(2, _AMOUNT))
def test_lists_of_options_are_read_back(
    factors: tuple[tuple[int, float], ...], overheads: tuple[tuple[int, float, float], ...]
) -> None:
    assert factor_rows(factor_list(factors)) == factors
    # Empty messages cost nothing, so that a row from 1 byte on takes the place of that from 0.
    from_1 = [(0, *values) for start, *values in overheads if start == 1]
    assert overhead_rows(overhead_list(overheads)) == ((*from_1, *overheads[2:]) if from_1 else overheads)
    assert not list_problems("smpi/bw-factor", factor_list(factors))
    assert not list_problems("smpi/os", overhead_list(overheads))


def test_without_a_tcp_window_no_flow_is_limited() -> None:
    assert "network/TCP-gamma" not in Calibration().smpi_options()
    assert Calibration(tcp_window=False).smpi_options()["network/TCP-gamma"] == "0"


def test_each_host_of_a_heterogeneous_platform_has_its_overheads() -> None:
    kind = NodeType("a", 1, 1, 1, 1e9, 1e-6, 2e-9, 3e-6, 4e-9, 1e9, 0.0)
    slow = replace(kind, name="b", send_base_seconds=5e-6)
    platform = HeterogeneousPlatform(
        name="two", title="two", site="lab", host_prefix="n", host_suffix="", loopback_bytes_per_second=1e9,
        loopback_latency_seconds=0.0, node_types=(kind, slow), wires=(Wire("b", "a", 1e-5, 1e8),),
        calibration=Calibration(eager_limit_bytes=4096),
    )  # fmt: skip
    head, _, second = platform.xml_text().partition('<host id="n2"')
    first = head[head.index('<host id="n1"') :]
    assert '<prop id="smpi/os" value="0:0.0:0.0;0:1e-06:2e-09"/>' in first
    assert '<prop id="smpi/or" value="0:0.0:0.0;0:3e-06:4e-09"/>' in first
    assert '<prop id="smpi/ois" value="0:0.0:0.0;0:1e-06:2e-09;4095:0.0:0.0"/>' in first
    assert '<prop id="smpi/os" value="0:0.0:0.0;0:5e-06:2e-09"/>' in second
    assert platform.smpi_options()["smpi/os"] == "0:0.0:0.0;0:5e-06:2e-09"
    rendezvous = replace(platform, calibration=Calibration(eager_limit_bytes=0))
    assert rendezvous.xml_text().count('<prop id="smpi/ois" value="0:0.0:0.0;0:0.0:0.0"/>') == 2


def _others(described: Any) -> Iterator[tuple[str, Any]]:
    """The name of each field that is a number, a text, a truth value or rows of numbers, with another value."""
    for field in fields(described):
        value = getattr(described, field.name)
        if isinstance(value, bool):
            yield field.name, not value
        elif isinstance(value, int | float):
            yield field.name, 2 * value + 1
        elif isinstance(value, str):
            yield field.name, f"{value}x"
        elif isinstance(value, tuple) and value and isinstance(value[0], tuple):
            yield field.name, (*value[:-1], tuple(2 * number + 1 for number in value[-1]))


_NOT_IN_XML = {
    *("title", "processes_per_node", "memory_domains_per_node", "memory_bytes_per_node", "flag_latency_seconds"),
    *("between_sockets_bytes_per_second", "between_sockets_latency_seconds", "note"),
}
_OF_TYPES = {"os", "or_", "ois", "kept_memory_bytes", "node_types cpus_per_node"}
"""Node types have their own overheads; without a cost of memory it does not matter how much of it is kept."""


@pytest.mark.parametrize(
    ("form", "unseen"),
    [
        ("cluster", _NOT_IN_XML),
        ("one-switch", _NOT_IN_XML | {"name"}),
        ("fat-tree", _NOT_IN_XML | {"name", "backbone_latency_seconds", "backbone_is_shared"}),
        ("node-types", _NOT_IN_XML | {"name"} | _OF_TYPES),
    ],
)
def test_digests_depend_on_what_is_simulated_and_on_nothing_else(form: str, unseen: set[str]) -> None:
    cluster = {"memory_bytes_per_second": None, "node_faults": ()}
    platform = replace(FORMS["one-switch"], **cluster) if form == "cluster" else FORMS[form]  # type: ignore[arg-type]
    changed: dict[str, Any] = {name: replace(platform, **{name: other}) for name, other in _others(platform)}
    for name, other in _others(platform.calibration):
        changed[name] = replace(platform, calibration=replace(platform.calibration, **{name: other}))
    if isinstance(platform, HeterogeneousPlatform):
        for part in ("node_types", "wires"):
            first, *rest = getattr(platform, part)
            for name, other in _others(first):
                if name not in ("name", "one", "other"):
                    changed[f"{part} {name}"] = replace(platform, **{part: (replace(first, **{name: other}), *rest)})
    same = {name for name, one in changed.items() if one.digest() == platform.digest()}
    assert same == unseen & changed.keys()
    assert len({one.digest() for one in changed.values()}) == 1 + len(changed) - len(same)
    assert replace(platform, published={}, sources=()).digest() == platform.digest()


def test_names_of_types_and_the_order_of_wires_are_not_simulated() -> None:
    hcl = load("hcl16")
    assert isinstance(hcl, HeterogeneousPlatform)
    renamed = tuple(replace(kind, name=f"t{kind.name}") for kind in hcl.node_types)
    wires = tuple(replace(wire, one=f"t{wire.one}", other=f"t{wire.other}") for wire in reversed(hcl.wires))
    assert replace(hcl, node_types=renamed, wires=wires).digest() == hcl.digest()


@pytest.mark.parametrize(("is_shared", "policy"), [(False, "FATPIPE"), (True, "SHARED")])
def test_a_backbone_is_written_only_if_there_is_one(is_shared: bool, policy: str) -> None:
    gros = load_description("gros")
    assert "bb_" not in gros.xml_text()
    backbone = {"backbone_bytes_per_second": 1e11, "backbone_latency_seconds": 1e-6, "backbone_is_shared": is_shared}
    text = replace(gros, **backbone).xml_text()
    assert f'bb_bw="100000000000.0Bps" bb_lat="1e-06s" bb_sharing_policy="{policy}"' in text


def test_links_of_a_node_add_up() -> None:
    platform = replace(load_description("gros"), link_bytes_per_second=3e9, links_per_node=2)
    assert ' bw="6000000000.0Bps"' in platform.xml_text()


@pytest.mark.parametrize(
    ("name", "kind", "interconnect_name"),
    [
        ("marenostrum5", "fat-tree", "infiniband-ndr200"),
        ("leonardo", "dragonfly", "infiniband-hdr100-x2"),
        ("lumi", "dragonfly", "slingshot"),
        ("fugaku", "torus", "tofu-d"),
        ("aws-c5n-efa", "fat-tree", "efa"),
        ("google-compute", None, "gvnic-32g"),
    ],
)
def test_machines_with_public_times_are_their_interconnects(
    name: str, kind: str | None, interconnect_name: str
) -> None:
    """Their overheads and latencies are an interconnect's, by data sheets, but for factors from other machines."""
    fitted = load_description(name)
    platform, preset = from_data_sheets(fitted), from_data_sheets(interconnect(interconnect_name))
    assert getattr(platform.topology, "kind", None) == kind
    theirs, ours = amounts(platform), amounts(preset)
    assert theirs == pytest.approx(ours | {"rate": theirs["rate"]}, rel=0.01)
    assert platform.calibration.eager_limit_bytes == preset.calibration.eager_limit_bytes
    own = fitted.title.partition(",")[0]
    for source in fitted.sources:
        assert "studies/machines" not in source.where or own not in source.what
    assert any("estimated" in one.what for one in platform.sources)
