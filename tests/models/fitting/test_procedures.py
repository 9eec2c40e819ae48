"""Every procedure by its name, in a laboratory whose machine is known."""

from __future__ import annotations

import re

import numpy as np
import pytest

from collwise.common.errors import UsageError
from collwise.models.fitting.procedures import (
    HOMOGENEOUS_PROCS,
    PROCEDURES,
    FitRequest,
    fit,
    max_useful_procs,
    request,
    sample_pairs,
)
from collwise.models.parameters import FAMILIES
from collwise.models.single_messages import LMO, HeterogeneousPLogP, Hockney, LogGP, PLogP
from tests.models.fitting.lmo_laboratory import LMOLaboratory, random_machine
from tests.models.fitting.loggp_laboratory import LogGPLaboratory, Machine, eager_machine, loggp_machine


def test_every_family_has_procedures() -> None:
    assert tuple(PROCEDURES) == tuple(FAMILIES)
    assert {family: request(family).procedure for family in FAMILIES} == {
        "hockney": "regression",
        "hockney_by_size": "roundtrips",
        "logp": "culler",
        "loggp": "culler",
        "plogp": "kielmann",
        "lmo": "triplets",
    }


def test_what_a_request_fills_in() -> None:
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


# Two-way times of this machine: 53 us one way, 10 ns a byte, all of it in the receiver; g = o_r.
ALPHA, BETA, SEND, RECEIVE, LATENCY = 53e-6, 1e-8, 5e-6, 8e-6, 40e-6


def eager_laboratory(procs: int = 5) -> LogGPLaboratory:
    return LogGPLaboratory(eager_machine(), procs)


@pytest.mark.parametrize("name", PROCEDURES["hockney"])
@pytest.mark.parametrize("heterogeneous", [False, True])
def test_hockney_by_every_procedure(name: str, heterogeneous: bool) -> None:
    fitted = fit(request("hockney", name, heterogeneous), eager_laboratory(), "here", "a test", 2e-10)
    found = fitted.parameters
    assert isinstance(found, Hockney)
    assert found.heterogeneous == heterogeneous
    means = found.homogeneous()
    assert [means.alpha_seconds, means.beta_seconds_per_byte] == pytest.approx([ALPHA, BETA], rel=1e-9)
    assert (fitted.family, fitted.procedure, fitted.platform, fitted.made_by) == ("hockney", name, "here", "a test")
    assert (fitted.procs, fitted.reduce_seconds_per_byte) == (5, 2e-10)


@pytest.mark.parametrize("name", ["culler", "kielmann"])
def test_loggp_by_procedures_that_tell_overheads_apart(name: str) -> None:
    found = fit(request("loggp", name), eager_laboratory(), "here", "a test").parameters
    assert isinstance(found, LogGP)
    assert found.send_overhead_seconds == pytest.approx(SEND, rel=1e-6)
    assert found.receive_overhead_seconds == pytest.approx(RECEIVE + BETA, rel=1e-6)
    assert found.gap_seconds_per_byte == pytest.approx(BETA, rel=1e-3)
    assert found.latency_seconds == pytest.approx(LATENCY, rel=1e-6)


BOTH_WORK = Machine(lambda p, m: 5e-6 + 3e-9 * m, lambda p, m: 8e-6 + 1e-8 * m, lambda i, j, m: 4e-5)
"""Senders spend 3 ns a byte and receivers 10: a roundtrip takes the sum longer, saturation the larger one."""


@pytest.mark.parametrize("heterogeneous", [False, True])
@pytest.mark.parametrize(("name", "per_byte"), [("kielmann", 1.3e-8), ("saturation", 1e-8)])
def test_plogp_by_roundtrips_and_by_saturation(name: str, per_byte: float, heterogeneous: bool) -> None:
    found = fit(request("plogp", name, heterogeneous), LogGPLaboratory(BOTH_WORK, 3), "here", "a test").parameters
    assert isinstance(found, HeterogeneousPLogP if heterogeneous else PLogP)
    gap = found.homogeneous().gap
    assert gap(100001) - gap(1) == pytest.approx(per_byte * 1e5, rel=1e-6)


def test_loggp_by_kielmann_is_of_roundtrips() -> None:
    found = fit(request("loggp", "kielmann"), LogGPLaboratory(BOTH_WORK, 3), "here", "a test").parameters
    assert isinstance(found, LogGP)
    assert found.gap_seconds_per_byte == pytest.approx(1.3e-8, rel=1e-6)


def test_hoefler_says_that_it_knows_one_overhead() -> None:
    machine = loggp_machine(latency=4e-5, send=5e-6, receive=5e-6, gap=9e-6, per_byte=1e-8)
    fitted = fit(request("loggp", "hoefler"), LogGPLaboratory(machine, 3), "here", "a test")
    assert isinstance(fitted.parameters, LogGP)
    assert fitted.parameters.overhead_seconds == pytest.approx(5e-6, rel=1e-6)
    assert fitted.notes == ("one overhead for sending and receiving: the procedure cannot tell them apart",)


@pytest.mark.parametrize("heterogeneous", [False, True])
def test_lmo_and_its_means(heterogeneous: bool) -> None:
    machine = random_machine(4, seed=3)
    fitted = fit(request("lmo", None, heterogeneous), LMOLaboratory(machine), "here", "a test")
    assert isinstance(fitted.parameters, LMO)
    assert fitted.parameters.heterogeneous == heterogeneous
    expected = np.asarray(machine.processor_seconds)
    expected = expected if heterogeneous else expected.mean()
    np.testing.assert_allclose(fitted.parameters.processor_seconds, expected, rtol=1e-6)


def test_effort_is_that_of_this_procedure_alone() -> None:
    lab = eager_laboratory(2)
    first = fit(request("hockney", "two-sizes"), lab, "here", "a test")
    second = fit(request("hockney", "two-sizes"), lab, "here", "a test")
    assert first.measurements == second.measurements == 2
    assert first.seconds == pytest.approx(2 * (ALPHA + BETA) + 2 * (ALPHA + BETA * 65536), rel=1e-9)
    assert second.seconds == pytest.approx(first.seconds)


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
