"""The mock-ups of performance guidelines: that there are all, and that they take the memory of the paper's table 1."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from collwise.algorithms.catalogue import USUAL_BUFFERS, Algorithm, Catalogue, Memory, buffers
from collwise.common.errors import UsageError
from collwise.platforms import load
from collwise.simulator.execution.launchers import run_program
from collwise.simulator.schedule.library import Schedule, load_library
from collwise.simulator.timing import Case
from collwise.validation.libraries.baselines import BASELINES, library_decisions
from tests.algorithms.compiling import compiled

MOCK_UPS = {one.guideline: one for one in Catalogue.load().algorithms() if one.guideline}
# Equations GL1 to GL22 of Hunold & Carpen-Amarie 2018.
RIGHT_HAND_SIDES = {
    "allgather": ["Gather + Bcast", "Alltoall", "Allreduce", "Allgatherv"],
    "allreduce": ["Reduce + Bcast", "Reduce_scatter_block + Allgather", "Reduce_scatter + Allgatherv"],
    "alltoall": ["Alltoallv"],
    "bcast": ["Allgatherv", "Scatter + Allgather"],
    "gather": ["Allgather", "Gatherv", "Reduce"],
    "reduce": ["Allreduce", "Reduce_scatter_block + Gather", "Reduce_scatter + Gatherv"],
    "reduce_scatter_block": ["Reduce + Scatter", "Reduce_scatter", "Allreduce"],
    "scan": ["Exscan"],
    "scatter": ["Bcast", "Scatterv"],
}
# Table 1 for a message of n bytes of doubles among p processes; C is a chunk of 8 doubles, I 4 bytes.
TABLE_1 = {
    **dict.fromkeys(("GL1", "GL5", "GL20"), lambda n, p: Memory(0, 0)),
    **dict.fromkeys(("GL2", "GL3", "GL11", "GL13"), lambda n, p: Memory(p * n, 0)),
    **dict.fromkeys(("GL4", "GL7", "GL8", "GL9", "GL12", "GL22"), lambda n, p: Memory(0, 2 * p * 4)),
    **dict.fromkeys(("GL6", "GL15"), lambda n, p: Memory((-(-n // (8 * p)) + -(-n // (8 * p)) * p) * 8, 0)),
    "GL10": lambda n, p: Memory(-(-n // p) + -(-n // p) * p, 0),
    **dict.fromkeys(("GL14", "GL17", "GL19", "GL21"), lambda n, p: Memory(n, 0)),
    "GL16": lambda n, p: Memory((n // (64 * p) + 1) * 64, 2 * p * 4),
    "GL18": lambda n, p: Memory(0, p * 4),
}


def test_there_is_one_for_each_guideline() -> None:
    assert sorted(MOCK_UPS, key=lambda name: int(name[2:])) == [f"GL{number}" for number in range(1, 23)]
    found: dict[str, list[str]] = {}
    for number in range(1, 23):
        one = MOCK_UPS[f"GL{number}"]
        assert one.name.startswith(f"gl{number}_")
        assert "guidelines" not in one.name
        found.setdefault(one.collective, []).append(" + ".join(name.capitalize() for name in one.calls))
    assert found == RIGHT_HAND_SIDES


@given(st.sampled_from(list(MOCK_UPS.values())), st.integers(2, 40), st.integers(1, 400), st.sampled_from([0, 1, -1]))
@example(MOCK_UPS["GL16"], 2, 16, 0)
def test_memory_is_that_of_table_1_and_what_the_code_takes(
    algorithm: Algorithm, procs: int, doubles: int, root: int
) -> None:
    message_bytes = 8 * doubles
    n = message_bytes * (procs if algorithm.collective in ("scatter", "reduce_scatter_block") else 1)
    expected = algorithm.extra_memory(procs, message_bytes)
    assert expected == TABLE_1[algorithm.guideline](n, procs)
    case = Case(algorithm.collective, algorithm.name, procs, message_bytes, root=root % procs)
    assert Schedule(case, library=library_decisions()).extra_memory == expected


class _Memory(ctypes.Structure):
    _fields_ = (("message_bytes", ctypes.c_size_t), ("integer_bytes", ctypes.c_size_t))


@given(
    st.sampled_from(list(MOCK_UPS.values())),
    st.integers(1, 5000),
    st.integers(0, 2**31),
    st.sampled_from([1, 2, 4, 8, 12, 16, 64, 100]),
)
def test_libcollwise_and_the_catalogue_agree_on_the_memory(
    algorithm: Algorithm, procs: int, elements: int, element_bytes: int
) -> None:
    library = load_library()
    library.collwise_find.restype = ctypes.c_void_p
    library.collwise_extra_memory.restype = _Memory
    found = library.collwise_find(algorithm.collective.encode(), algorithm.name.encode())
    element = element_bytes if algorithm.collective in ("reduce", "allreduce", "reduce_scatter_block", "scan") else 1
    message_bytes = elements * element
    made = library.collwise_extra_memory(
        ctypes.c_void_p(found), ctypes.c_size_t(message_bytes), ctypes.c_size_t(element), ctypes.c_int(procs)
    )
    assert Memory(made.message_bytes, made.integer_bytes) == algorithm.extra_memory(procs, message_bytes, element)


def test_a_mock_up_that_needs_more_than_its_buffers_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert buffers() == USUAL_BUFFERS
    gather, counts = MOCK_UPS["GL11"], MOCK_UPS["GL12"]
    assert gather.objection(16, 2**23) == ""
    assert gather.objection(16, 2**23 + 1) == "needs 134217744 B of its message buffer, which has 128 MiB"
    assert counts.objection(2**17, 8) == ""
    assert counts.objection(2**17 + 1, 8) == "needs 1048584 B of its integer buffer, which has 1 MiB"
    assert MOCK_UPS["GL1"].objection(16, 2**27) == "needs messages of less than 2 GiB in all"
    monkeypatch.setenv("COLLWISE_MESSAGE_BUFFER", "1KiB")
    assert gather.objection(16, 64) == ""
    assert gather.objection(16, 65) == "needs 1040 B of its message buffer, which has 1 KiB"
    monkeypatch.setenv("COLLWISE_INTEGER_BUFFER", "many")
    with pytest.raises(UsageError, match="COLLWISE_INTEGER_BUFFER: malformed size 'many'"):
        buffers()


@pytest.mark.parametrize("library", ["openmpi", "smpi"])
def test_objections_to_messages_of_any_size(library: str, tmp_path: Path) -> None:
    """No count and no displacement within a mock-up can exceed an int, and none runs without its memory."""
    program = compiled(library, Path(__file__).with_name("objections.c"), tmp_path / "objections")
    platform = load("grisou") if library == "smpi" else None
    for procs in (1, 3):
        done = run_program(library, str(program), procs, [], platform=platform, timeout_seconds=300)
        assert done.returncode == 0, done.error_text
        assert re.fullmatch(r"ok [1-9]\d{3}", done.output_lines[-1]), done.output_lines


def test_recorded_calls_are_those_that_the_library_decides_for() -> None:
    procs, size = 12, 4096
    for baseline in BASELINES.values():
        if baseline.collectives == ("bcast", "gather"):
            continue
        parts = [baseline.choice(name, procs, bytes_) for name, bytes_ in (("gather", size), ("bcast", procs * size))]
        assert all(parts)
        made = Schedule(Case("allgather", "gl1_gather_bcast", procs, size), library=library_decisions(baseline))
        alone = [
            Schedule(Case(name, part.algorithm, procs, bytes_, part.segment_bytes, part.parameter))  # type: ignore[union-attr]
            for name, part, bytes_ in zip(("gather", "bcast"), parts, (size, procs * size), strict=True)
        ]
        assert made.messages == sum(one.messages for one in alone)
        assert made.message_bytes == sum(one.message_bytes for one in alone)


def test_without_a_library_mock_ups_cannot_be_recorded() -> None:
    with pytest.raises(UsageError, match="no decisions of an MPI library were given, whose gather this mock-up calls"):
        Schedule(Case("allgather", "gl1_gather_bcast", 4, 8))
    with pytest.raises(UsageError, match=r"no fixed decision of Open MPI 3\.1 for collective 'alltoall'"):
        Schedule(Case("allgather", "gl2_alltoall", 4, 8), library=library_decisions(BASELINES["openmpi-3.1"]))
    assert len({library_decisions(one).digest for one in BASELINES.values()}) == 3  # 4.1 and 5.0 decide alike
