"""The runner for SMPI: many cases in few smpirun processes, balanced over the cores."""

from __future__ import annotations

import hashlib
import heapq
import json
import signal
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from collwise.algorithms.catalogue import Algorithm, Catalogue
from collwise.algorithms.catalogue_check import DOUBLING, TREES
from collwise.common.errors import note
from collwise.common.grouping import grouped
from collwise.platforms import HostPlatform
from collwise.simulator.execution.installations import Installation, file_digest, smpi_installation
from collwise.simulator.execution.interposed import LIBRARY, following_rules
from collwise.simulator.execution.processes import case_lines, worklist
from collwise.simulator.execution.smpirun import SMPI_OPTIONS, run_smpi
from collwise.simulator.limits import check_simulated_sizes
from collwise.simulator.schedule.tasks import is_of_tasks
from collwise.simulator.sweeps.runner import DividedRunner, Keep, Part, Pool
from collwise.simulator.timing import Case, Configuration, Timing

# The messages of a batch that is worth a process of its own. They take a few times as long as the start of the process,
# but not so long that the cores finish at very different times.
_BATCH_MESSAGES = 40_000
# The cost of a case in addition to its messages (agreeing on its start), in messages per process.
_FIXED_MESSAGES_PER_PROCESS = 8

# The speed of a core on which SimGrid simulates an allreduce of 512 processes, and the time that needs a note.
_MESSAGES_PER_SECOND = 75_000
_LONG_SECONDS = 90
_FASTER = (
    "; the schedule engine (--engine schedule, in Python collwise.session(engine='schedule')) is far faster "
    "(docs/engine.md says how its times differ)"
)

# The limit of processor time for one case of SimGrid's own algorithms, some of which never end: a number of seconds for
# the start of a process and, for each message, ten times the longest time that was seen.
_LIMIT_SECONDS = 10
_LIMIT_SECONDS_PER_MESSAGE = 2e-3

# On trees these collectives take two turns, up and down. On other topologies only an allreduce does.
_UP_AND_DOWN = {"allreduce", "allgather", "allgatherv", "barrier", "reduce_scatter", "reduce_scatter_block"}


def simulated_configuration(
    platform: HostPlatform, installation: Installation, program: str, **others: str
) -> Configuration:
    """The configuration of simulated times: platform, SimGrid's version, the program and the options."""
    details = {
        "platform_digest": platform.digest(),
        "program_digest": file_digest(installation.program(program)),
        "options": json.dumps(SMPI_OPTIONS, sort_keys=True),
        **others,
    }
    return Configuration("simulated", platform.name, installation.label, tuple(sorted(details.items())))


def plan_batches(cases: Iterable[Case], jobs: int) -> list[list[Case]]:
    """Groups cases by processes per node, then deals them, costliest first, each to the batch with the least work.

    Within a batch cases are ordered by process count, so that communicators are made once, and then from the cheapest
    on, so that many cases are in the store when a sweep is interrupted.
    """
    batches: list[list[Case]] = []
    for group in grouped(cases, lambda case: case.processes_per_node).values():
        total = sum(map(cost_of, group))
        count = min(len(group), max(jobs, round(total / _BATCH_MESSAGES)))
        heap: list[tuple[float, int]] = [(0.0, index) for index in range(count)]
        dealt: list[list[Case]] = [[] for _ in range(count)]
        for case in sorted(group, key=cost_of, reverse=True):
            load, index = heapq.heappop(heap)
            dealt[index].append(case)
            heapq.heappush(heap, (load + cost_of(case), index))
        batches += [sorted(batch, key=lambda case: (case.procs, cost_of(case), case)) for batch in dealt if batch]
    return sorted(batches, key=lambda batch: -sum(map(cost_of, batch)))


class SmpiRunner(DividedRunner):
    """Simulations on a platform, in parts of one process each.

    When the simulator fails in a case, or a case of SimGrid's own algorithms exceeds its limit of processor time, this
    case gets a timing with an error, and the others are simulated. A case is given up only if it also fails alone,
    since in a run of several cases a simulated process that is ahead may have failed in the next case.
    """

    def __init__(
        self,
        platform: HostPlatform,
        procs: int = 1,
        simgrid: str | None = None,
        pool: Pool | None = None,
        program: str = "benchmark",
        own_algorithms: Mapping[str, str] = MappingProxyType({}),
        rules: str = "",
    ) -> None:
        """`procs` is the largest process count to be asked for; for 1024 or more a newer SimGrid is preferred.

        `own_algorithms` are the algorithms of SMPI's own collectives, or the selectors that choose them, by collective.
        If `rules`, the text of a table, is given, libcollwise is preloaded and replaces MPI's collectives.
        """
        super().__init__(pool)
        self.platform = platform
        self.installation: Installation = smpi_installation(simgrid, procs)
        self._procs = procs
        self._program = program
        self._own_algorithms = dict(own_algorithms)
        self._rules = rules

    def __reduce__(self) -> tuple[object, ...]:
        """The class and the arguments of a copy, which uses the same SimGrid version on its machine."""
        version = self.installation.version
        return SmpiRunner, (self.platform, self._procs, version, None, self._program, self._own_algorithms, self._rules)

    @property
    def configuration(self) -> Configuration:
        """The configuration that the times depend on besides the case."""
        details = dict(self._options())
        if self._rules:
            details["rules"] = hashlib.sha256(self._rules.encode()).hexdigest()
            details["libcollwise"] = file_digest(self.installation.program(LIBRARY))
        return simulated_configuration(self.platform, self.installation, self._program, **details)

    def weight(self, case: Case) -> float:
        """The approximate number of messages."""
        return cost_of(case)

    def make(self, cases: Sequence[Case], keep: Keep) -> None:
        """Times the cases; a note says first if that takes long. Raises the errors of `DividedRunner.make`."""
        messages = sum(map(cost_of, cases))
        seconds = messages / _MESSAGES_PER_SECOND / self._pool.slots
        if seconds > _LONG_SECONDS:
            can_choose = not (self._own_algorithms or self._rules)
            note(
                f"SMPI simulates about {messages / 1e6:.0f} million messages, for about {seconds / 60:.0f} min"
                + (_FASTER if can_choose else "")
            )
        super().make(cases, keep)

    def parts(self, cases: Sequence[Case], slots: int) -> Sequence[Part]:
        """A part for each process."""
        for procs, processes_per_node in {(case.procs, case.processes_per_node) for case in cases}:
            self.platform.hosts_for(procs, processes_per_node)
        check_simulated_sizes(cases)
        return [Part(batch) for batch in plan_batches(cases, slots)]

    def make_part(self, part: Part, keep: Keep, stop: threading.Event) -> int:
        """Simulates the cases in one process; if it fails, simulates the remaining ones in another."""
        left = list(part.cases)
        started = 0
        has_run = is_suspect = False
        while left and not stop.is_set():
            tried = left[:1] if is_suspect else left
            done, problem = self._run_process(tried, keep, stop)
            started += 1
            has_run = has_run or bool(done)
            left = [case for case in left if case not in done]
            has_failed = len(done) < len(tried) and not stop.is_set()
            is_suspect = has_failed and len(tried) > 1
            if not has_failed or is_suspect:
                continue
            abandoned = left[:1]
            if not has_run:  # if not even a barrier runs, the reason has nothing to do with the cases
                started += 1
                has_run = self._runs_a_barrier(left, stop)
                abandoned = left[:1] if has_run else left
            for case in abandoned:
                keep(Timing(case, float("nan"), error=problem))
            left = left[len(abandoned) :]
        return started

    def _runs_a_barrier(self, cases: Sequence[Case], stop: threading.Event) -> bool:
        procs = max(case.procs for case in cases)
        barrier = Case("-", "-", procs, 0, processes_per_node=cases[0].processes_per_node, experiment="barrier")
        done, _ = self._run_process([barrier], lambda timing: None, stop)
        return bool(done)

    def _run_process(self, cases: Sequence[Case], keep: Keep, stop: threading.Event) -> tuple[set[Case], str]:
        """Runs one smpirun over the cases; returns the finished ones, and the reason for an early end."""
        procs = max(case.procs for case in cases)
        limit = None
        if self._own_algorithms:
            limit = _LIMIT_SECONDS + round(_LIMIT_SECONDS_PER_MESSAGE * max(map(cost_of, cases)))
        done: set[Case] = set()

        def take(record: dict[str, Any]) -> None:
            timing = _timing(cases, record)
            done.add(timing.case)
            keep(timing)

        with worklist(case_lines(cases), take) as work:
            environment = {}
            if self._rules:
                folder = Path(work.file_name).parent
                environment = following_rules(self._rules, self.installation.program(LIBRARY), folder)
            run = run_smpi(
                self.installation,
                self.platform,
                self._program,
                procs,
                [work.file_name],
                processes_per_node=cases[0].processes_per_node,
                launcher_args=[f"--cfg={option}:{value}" for option, value in self._options().items()],
                environment=environment,
                processor_seconds=limit,
                on_line=work.take,
                stop=stop,
            )
        if limit is not None and run.returncode in (-signal.SIGXCPU, 128 + signal.SIGXCPU):
            problem = f"does not end within {limit} s of processor time"
        else:
            problem = run.problem
        return done, f"{self.installation.label}: {problem}"

    def _options(self) -> dict[str, str]:
        """SMPI's options that choose the algorithms of its own collectives."""
        return {f"smpi/{collective}": name for collective, name in self._own_algorithms.items()}


def _timing(cases: Sequence[Case], record: dict[str, Any]) -> Timing:
    case = cases[int(record["id"])]
    if "error" in record:
        return Timing(case, float("nan"), error=str(record["error"]))
    samples = tuple(record["samples"]) if "samples" in record else None
    return Timing(case, float(record["seconds"]), float(record["root_seconds"]), samples=samples)


def cost_of(case: Case) -> float:
    """The number of messages, or somewhat more, by the topologies that the catalogue names; not of mock-ups."""
    procs, others = case.procs, case.procs - 1
    entry = Catalogue.load().find(case.collective, case.algorithm)
    pieces = _pieces(case, entry)
    # Experiments use trees, or few processes, unless they run an algorithm's tasks.
    is_whole = case.experiment == "collective" or is_of_tasks(case)
    topologies = topologies_of(case.collective, case.algorithm) if is_whole else TREES
    # The edges of a tree carry one message each; partners at doubling distances exchange ceil(log2 P) times; around a
    # ring, and between all pairs, each process sends P - 1.
    messages = 0
    if topologies & TREES:
        messages += others * pieces
    if topologies & DOUBLING:
        messages += procs * others.bit_length() * pieces
    if topologies - TREES - DOUBLING:
        # Algorithms by node pass on each segment's blocks; others cut the blocks, each a P-th of the message.
        messages += procs * (others * pieces if entry and entry.by_node else others + pieces - 1)
    if case.collective == "allreduce" or (case.collective in _UP_AND_DOWN and topologies <= TREES):
        messages *= 2
    if entry and entry.count_parameter == "leaders":
        messages *= min(case.parameter or entry.default_count, case.processes_per_node)
    if case.collective == "gather" or case.experiment == "bcast_gather":
        messages += 3 * procs
    return messages + _FIXED_MESSAGES_PER_PROCESS * procs


def _pieces(case: Case, entry: Algorithm | None) -> int:
    """The number of parts in which a message, or a block, is sent."""
    size, part_bytes, between_bytes = case.message_bytes, case.segment_bytes, 0
    if entry and entry.limit_parameter == "between_segment_bytes":
        between_bytes = case.limit_bytes
    elif 0 < case.limit_bytes < size:
        part_bytes = 0
    if entry and entry.part_parameter == "first_bytes":
        part_bytes = 0
    elif entry and entry.part_parameter == "bound_bytes":
        part_bytes -= 1  # parts stay below the bound
    segment_bytes = min(part_bytes, size) if part_bytes > 0 else size
    segments = -(-size // segment_bytes) if size else 1
    return segments * max(1, -(-segment_bytes // between_bytes) if between_bytes else 1)


@cache
def topologies_of(collective: str, algorithm: str) -> frozenset[str]:
    """The topologies that the catalogue names for an algorithm."""
    entry = Catalogue.load().find(collective, algorithm)
    return frozenset((entry.topology if entry is not None else "unknown").split(", "))
