"""The comparison on a user's own cluster: hosts, or the nodes of a batch job, with or without a calibration there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from collwise.common.errors import UsageError
from collwise.common.files import write_text
from collwise.platforms import HostPlatform, Platform, write_description
from collwise.simulator.execution.targets import ExecutionTarget
from collwise.validation.three_way.disagreements import disagreements
from collwise.validation.three_way.pipeline import ThreeWayComparison, Validation
from collwise.validation.three_way.plan import COLLECTIVES, Scenario, ThreeWayPlan, usual_plan
from collwise.validation.three_way.table import ours


@dataclass(frozen=True)
class ClusterScenario(Scenario):
    """A number of processes on a cluster, some on each of its nodes, and the sizes by collective."""

    procs: int = 2
    processes_per_node: int = 1


def cluster_plan(
    target: ExecutionTarget,
    procs: Sequence[int] = (),
    *,
    collectives: Sequence[str] = COLLECTIVES,
    sizes: Sequence[int] | None = None,
    quick: bool = False,
    models: bool = True,
) -> ThreeWayPlan:
    """The largest process count as the main scenario, the others with three sizes; by default all the target has.

    Models know one process on each node, and are fitted only there. Raises UsageError as `usual_plan` does, and for
    process counts that there is no room for.
    """
    counts = sorted({*(procs or (target.usual_procs,))}, reverse=True)
    if counts[-1] < 2:
        raise UsageError(f"P = {counts[-1]}; valid: 2 and more")
    per_node = {count: target.processes_per_node(count) for count in counts}
    many = usual_plan(collectives=collectives, sizes=sizes, quick=quick).main.sizes
    few = usual_plan(collectives=collectives, sizes=sizes, quick=True)
    scenarios: list[Scenario] = []
    for count in counts:
        here, asked = per_node[count], few.main.sizes if scenarios else many
        scenarios.append(ClusterScenario(-(-count // here), 0.0, asked, procs=count, processes_per_node=here))
    repeated = few.repeated if quick else ThreeWayPlan.repeated
    one_each = per_node[counts[0]] == 1
    return ThreeWayPlan(tuple(scenarios), quick, models and one_each, repeated=repeated, diagnosed=0)


@dataclass
class ClusterComparison(ThreeWayComparison):
    """One run of a plan on a target, beside simulation on `platform`, which is calibrated there first if asked for.

    No causes of differences are looked for: conditions are changes of a test bed.
    """

    target: ExecutionTarget | None = None
    platform: HostPlatform | None = None
    calibrate: bool = False

    def run(self) -> Validation:
        """Runs everything. Raises UsageError where cases do not fit on the platform, CollwiseError when MPI fails."""
        assert self.target is not None
        assert self.platform is not None
        target, main = self.target, self.plan.main
        platform = self._calibrated_there(target, self.platform) if self.calibrate else self.platform
        models = self._fitted(target, main.procs)
        tables = []
        for scenario in self.plan.scenarios:
            table = self._compared(target, scenario, platform, models)
            tables.append(table.assign(target=f"{target.name}, P = {scenario.procs}"))
        repeated = self._repeated(target)
        return self._result(
            tables, {platform.name: platform}, models, repeated,
            checked=None, disagreements=disagreements(ours(tables[0])), diagnoses=[], on_testbed=False,
        )  # fmt: skip

    def _calibrated_there(self, target: ExecutionTarget, nominal: HostPlatform) -> Platform:
        if not isinstance(nominal, Platform):
            raise UsageError(f"nominal platform {nominal.name}; valid: equal nodes behind one switch, in TOML")
        used = replace(nominal, nodes=min(nominal.nodes, self.plan.main.nodes))
        platform = replace(self._refitted(target, used), nodes=nominal.nodes)
        write_text(self.folder / f"{platform.name}.toml", write_description(platform))
        return platform
