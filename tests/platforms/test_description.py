"""The known platforms, what SMPI is told, and descriptions written and read back."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.platforms import (
    Calibration,
    Platform,
    Source,
    check_file,
    known,
    load_description,
    write_description,
)
from collwise.platforms.reader import read_description

_AMOUNT = st.floats(0, 1e12, allow_nan=False)
_POSITIVE = st.floats(1e-12, 1e12, exclude_min=True)
_WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)
_LABEL = st.from_regex(r"[A-Za-z0-9._-]{0,12}", fullmatch=True)
_SIZES = st.lists(st.integers(1, 2**30), max_size=4, unique=True).map(lambda sizes: [0, *sorted(sizes)])


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
    note=st.text(st.characters(codec="utf-8"), max_size=60),
    sources=_SOURCES,
)
_PLATFORMS = st.builds(
    Platform,
    name=st.from_regex(r"[a-z0-9][a-z0-9_-]{0,10}", fullmatch=True),
    title=_WORDS,
    site=st.from_regex(r"[A-Za-z0-9._-]{1,10}", fullmatch=True),
    nodes=st.integers(1, 1000),
    host_prefix=_LABEL,
    host_suffix=_LABEL,
    cpus_per_node=st.integers(1, 4),
    cores_per_node=st.integers(4, 128),
    core_flops=_POSITIVE,
    link_bytes_per_second=_POSITIVE,
    link_latency_seconds=_AMOUNT,
    loopback_bytes_per_second=_POSITIVE,
    loopback_latency_seconds=_AMOUNT,
    first_host=st.integers(0, 1000),
    links_per_node=st.integers(1, 4),
    backbone_bytes_per_second=_POSITIVE,
    backbone_latency_seconds=_AMOUNT,
    calibration=_CALIBRATIONS,
    published=st.dictionaries(_WORDS, _AMOUNT | st.dictionaries(_WORDS, _AMOUNT, max_size=3), max_size=3),
    sources=_SOURCES,
)


@given(_PLATFORMS, st.booleans())
def test_round_trip(platform: Platform, has_backbone: bool) -> None:
    if not has_backbone:
        platform = replace(platform, backbone_bytes_per_second=None, backbone_latency_seconds=0.0)
    text = write_description(platform)
    assert read_description(text) == (platform, [])
    assert write_description(platform) == text


@given(_PLATFORMS)
def test_the_written_xml_is_a_good_platform_file(tmp_path_factory: pytest.TempPathFactory, platform: Platform) -> None:
    file = tmp_path_factory.mktemp("xml") / "platform.xml"
    file.write_text(platform.xml_text())
    report = check_file(file)
    assert report.problems == ()
    assert report.hosts == platform.hosts


def test_known_platforms_are_the_published_clusters() -> None:
    assert known() == ["grisou", "gros"]
    grisou, gros = map(load_description, known())
    assert (grisou.nodes, grisou.cpus_per_node, grisou.cores_per_node) == (51, 2, 16)
    assert (gros.nodes, gros.cpus_per_node, gros.cores_per_node) == (124, 1, 18)
    assert grisou.default_processes_per_node == 2
    assert gros.default_processes_per_node == 1
    assert gros.hosts[-1] == "gros-124.nancy.grid5000.fr"
    assert grisou.published["gamma"] == {"3": 1.114, "4": 1.219, "5": 1.283, "6": 1.451, "7": 1.540}
    assert gros.published["gamma"] == {"3": 1.084, "4": 1.170, "5": 1.254, "6": 1.339, "7": 1.424}
    assert grisou.published["gather_binomial"] == {"alpha_seconds": 1.2e-4, "beta_seconds_per_byte": 8.6e-10}
    assert gros.published["gather_linear_sync"] == {"alpha_seconds": 9.5e-5, "beta_seconds_per_byte": 3.9e-10}


@pytest.mark.parametrize("name", ["grisou", "gros"])
def test_known_files_are_as_the_writer_writes_them_and_check_clean(name: str) -> None:
    import collwise.platforms as package

    file = Path(package.__file__).parent / f"{name}.toml"
    assert file.read_text() == write_description(load_description(name))
    assert check_file(file).problems == ()
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


def test_digest_follows_what_is_simulated_and_nothing_else() -> None:
    gros = load_description("gros")
    digest = gros.digest()
    assert replace(gros, title="other", published={}, sources=()).digest() == digest
    assert replace(gros, calibration=replace(gros.calibration, note="better")).digest() == digest
    changes: list[dict[str, Any]] = [
        {"nodes": 123},
        {"link_latency_seconds": 2e-5},
        {"links_per_node": 2},
        {"host_prefix": "g-"},
        {"calibration": replace(gros.calibration, reduce_seconds_per_byte=1e-10)},
        {"calibration": replace(gros.calibration, eager_limit_bytes=1)},
        {"calibration": replace(gros.calibration, os=((0, 123e-6, 0.0),))},
    ]
    assert len({digest, *(replace(gros, **change).digest() for change in changes)}) == 1 + len(changes)


def test_backbone_only_if_asked_for_and_never_shared() -> None:
    gros = load_description("gros")
    assert "bb_" not in gros.xml_text()
    text = replace(gros, backbone_bytes_per_second=1e11, backbone_latency_seconds=1e-6).xml_text()
    assert 'bb_bw="100000000000.0Bps" bb_lat="1e-06s" bb_sharing_policy="FATPIPE"' in text


def test_links_of_a_node_add_up() -> None:
    platform = replace(load_description("gros"), link_bytes_per_second=3e9, links_per_node=2)
    assert ' bw="6000000000.0Bps"' in platform.xml_text()
