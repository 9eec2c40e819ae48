from __future__ import annotations

import pytest

from collwise.common.errors import CollwiseError, UsageError, nearest, unknown_name

NAMES = ["linear", "chain", "k_chain", "binary", "split_binary", "binomial"]


def test_exit_codes() -> None:
    assert CollwiseError("a case failed").exit_code == 1
    assert UsageError("wrong input").exit_code == 2
    assert issubclass(UsageError, CollwiseError)


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ("binomal", "binomial"),
        ("chian", "chain"),
        ("LINEAR", "linear"),
        ("k-chain", "k_chain"),
        ("splitbinary", "split_binary"),
    ],
)
def test_near_names_come_first(given: str, near: str) -> None:
    message = str(unknown_name("algorithm", given, NAMES))
    assert message.startswith(f"unknown algorithm '{given}'; did you mean {near}")
    assert message.endswith(f"? Valid: {', '.join(NAMES)}")


def test_a_name_like_no_other_gets_the_whole_list() -> None:
    error = unknown_name("platform", "zzzz", iter(["grisou", "gros"]), "see 'collwise platforms list'")
    assert str(error) == "unknown platform 'zzzz'; valid: grisou, gros (see 'collwise platforms list')"
    assert isinstance(error, UsageError)


def test_at_most_three_near_names() -> None:
    names = [f"platform{number}" for number in range(9)]
    message = str(unknown_name("platform", "platform", names))
    assert message.split("?")[0].count(" or ") == 2


def test_names_that_contain_a_part_are_near() -> None:
    names = ["tcp-1g", "infiniband-hdr", "infiniband-hdr100"]
    assert str(unknown_name("interconnect", "hdr", names)).startswith(
        "unknown interconnect 'hdr'; did you mean infiniband-hdr or infiniband-hdr100? Valid"
    )
    assert "did you mean" not in str(unknown_name("interconnect", "zz", names))


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ("HDR200", "infiniband-hdr or infiniband-hdr100"),
        ("hdr100", "infiniband-hdr100"),
        ("NDR400", "infiniband-ndr"),
        ("Slingshot11", "slingshot"),
        ("openmpi-4", "openmpi-4.0 or openmpi-4.1"),
    ],
)
def test_names_that_end_in_a_number_are_found_with_it_or_without(given: str, near: str) -> None:
    names = ["openmpi-4.0", "openmpi-4.1", "openmpi-5.0", "slingshot", "hydra", "infiniband-ndr"]
    names += ["infiniband-hdr", "infiniband-hdr100"]
    assert f"'{given}'; did you mean {near}? Valid" in str(unknown_name("name", given, names))


def test_what_many_names_contain_is_no_hint() -> None:
    assert nearest("node0025", [f"node{number:03d}" for number in range(128)])[0] == "node025"
    assert nearest("size", ["segment-sizes", "sizes", "message-sizes"]) == ["sizes"]
