from __future__ import annotations

from collwise.simulator.execution.launchers import LocalMachine
from tests.needs import needs


@needs("openmpi")
def test_a_modified_target_adds_variables_and_options_and_keeps_its_times_apart() -> None:
    base = LocalMachine("openmpi")
    changed = base.modified({"told_by": "me"}, {"FIRST": "1"}, ("--mca", "pml", "ob1"))
    assert changed.name == base.name
    assert dict(changed.facts) == {**base.facts, "told_by": "me"}
    run = changed.run("/bin/sh", 2, ["-c", "echo $FIRST $SECOND $OMPI_MCA_pml"], environment={"SECOND": "2"})
    assert run.output_lines == ["1 2 ob1", "1 2 ob1"]
