from __future__ import annotations

import pytest

from collwise.common.errors import CollwiseError, UsageError, nearest, unknown_name

ALGORITHMS = "linear, chain, k_chain, binary, split_binary, binomial"
LIBRARIES = "openmpi-4.0, openmpi-4.1, openmpi-5.0, slingshot, hydra, infiniband-ndr, infiniband-hdr, infiniband-hdr100"


def test_exit_codes() -> None:
    assert (CollwiseError("a case failed").exit_code, UsageError("wrong input").exit_code) == (1, 2)
    assert issubclass(UsageError, CollwiseError)


@pytest.mark.parametrize(
    ("given", "near", "names"),
    [
        ("binomal", "binomial", ALGORITHMS),
        ("chian", "chain", ALGORITHMS),
        ("LINEAR", "linear", ALGORITHMS),
        ("k-chain", "k_chain", ALGORITHMS),
        ("splitbinary", "split_binary", ALGORITHMS),
        # A part of a name is near, with a number at its end or without.
        ("hdr", "infiniband-hdr or infiniband-hdr100", LIBRARIES),
        ("HDR200", "infiniband-hdr or infiniband-hdr100", LIBRARIES),
        ("hdr100", "infiniband-hdr100", LIBRARIES),
        ("NDR400", "infiniband-ndr", LIBRARIES),
        ("Slingshot11", "slingshot", LIBRARIES),
        ("openmpi-4", "openmpi-4.0 or openmpi-4.1", LIBRARIES),
    ],
)
def test_near_names_come_first_and_all_follow(given: str, near: str, names: str) -> None:
    message = str(unknown_name("algorithm", given, names.split(", ")))
    assert message.startswith(f"unknown algorithm '{given}'; did you mean {near}")
    assert message.endswith(f"? Valid: {names}")


@pytest.mark.parametrize("given", ["zzzz", "zz"])
def test_a_name_like_no_other_gets_the_whole_list(given: str) -> None:
    error = unknown_name("platform", given, iter(["grisou", "gros"]), "see 'collwise platforms show'")
    assert str(error) == f"unknown platform '{given}'; valid: grisou, gros (see 'collwise platforms show')"
    assert isinstance(error, UsageError)


def test_hints_are_few_and_not_what_many_names_contain() -> None:
    message = str(unknown_name("platform", "platform", [f"platform{number}" for number in range(9)]))
    assert message.split("?")[0].count(" or ") == 2
    assert nearest("node0025", [f"node{number:03d}" for number in range(128)])[0] == "node025"
    assert nearest("size", ["segment-sizes", "sizes", "message-sizes"]) == ["sizes"]
