"""Every procedure by its name, in a laboratory whose machine is known."""

from __future__ import annotations

import re

import pytest

from collwise.common.errors import UsageError
from collwise.models.fitting.procedures import (
    HOMOGENEOUS_PROCS,
    FitRequest,
    fit,
    max_useful_procs,
    request,
    sample_pairs,
)
from collwise.models.parameters import FAMILIES
from tests.models.fitting.loggp_laboratory import LogGPLaboratory, eager_machine


def test_what_a_request_fills_in() -> None:
    assert {family: request(family).procedure for family in FAMILIES} == {
        "hockney": "regression",
        "hockney_by_size": "roundtrips",
        "logp": "culler",
        "loggp": "culler",
        "plogp": "kielmann",
        "lmo": "triplets",
    }
    assert request("loggp") == FitRequest("loggp", "culler", False)
    assert request("loggp", "hoefler", True) == FitRequest("loggp", "hoefler", True)
    assert request("loggp", "hoefler", None) == FitRequest("loggp", "hoefler", True)
    assert request("loggp", "kielmann", None) == FitRequest("loggp", "kielmann", False)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("hockny",), "unknown model 'hockny'; did you mean hockney"),
        (("hockny", "culler"), "unknown model 'hockny'"),
        (("loggp", "hofler"), "unknown procedure for loggp 'hofler'; did you mean hoefler.* Valid: culler, hoefler"),
        (("loggp", "fitted", True), "loggp by fitted has no heterogeneous form; valid: loggp by culler, loggp by hoef"),
        (("hockney_by_size", None, True), "hockney_by_size by roundtrips has no .*; leave out --heterogeneous"),
    ],
)
def test_requests_for_what_does_not_exist(asked: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        request(*asked)
    assert re.search(said, str(raised.value)), raised.value


def test_how_many_processes() -> None:
    one, each = request("hockney"), request("hockney", heterogeneous=True)
    assert max_useful_procs(one, 4) == 4
    assert max_useful_procs(one, 100) == HOMOGENEOUS_PROCS
    assert max_useful_procs(one, 16, alike=False) == 16
    assert max_useful_procs(each, 100) == 100


@pytest.mark.parametrize("procs", range(2, 20))
def test_the_pairs_that_are_averaged(procs: int) -> None:
    pairs = sample_pairs(procs)
    assert len(set(pairs)) == len(pairs)
    assert {process for pair in pairs for process in pair} == set(range(procs))
    if procs <= 4:
        assert len(pairs) == procs * (procs - 1) / 2
    else:
        assert sorted(pairs) == [(i, (i + 1) % procs) for i in range(procs)]


def eager_laboratory(procs: int = 5) -> LogGPLaboratory:
    return LogGPLaboratory(eager_machine(), procs)


def test_hoefler_says_that_it_knows_one_overhead() -> None:
    fitted = fit(request("loggp", "hoefler"), eager_laboratory(3), "here", "a test", 2e-10)
    assert fitted.notes == ("one overhead for sending and receiving: the procedure cannot tell them apart",)
    assert (fitted.family, fitted.procedure, fitted.platform, fitted.made_by) == ("loggp", "hoefler", "here", "a test")
    assert (fitted.procs, fitted.reduce_seconds_per_byte) == (3, 2e-10)


@pytest.mark.parametrize(
    ("family", "procs", "said"),
    [
        ("hockney", 1, "hockney by regression needs at least 2 processes, not 1"),
        ("lmo", 2, "lmo by triplets needs at least 3 processes, not 2"),
    ],
)
def test_too_few_processes(family: str, procs: int, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        fit(request(family), eager_laboratory(procs), "here", "a test")
