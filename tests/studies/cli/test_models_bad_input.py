"""Bad input to fit, predict, recover and models: one line that says what is valid, and exit code 2."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import collwise
from collwise.common.errors import UsageError
from tests.needs import needs
from tests.studies.cli.model_commands import Capture, prepared, run

pytestmark = needs("smpi")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return prepared(tmp_path, monkeypatch)


FIT = "fit --platform exact --model"
PREDICT = "predict --parameters"
BAD = [
    ("fit --model hockney", "name either --platform, to simulate, or an execution target to measure on: --library"),
    (
        "fit --model hockney --platform exact --library openmpi",
        "name either --platform, to simulate, or an execution target",
    ),
    ("fit", "name either --platform, to simulate, or an execution target"),
    ("fit --library openmpi --hosts n1,n2 --testbed", "--hosts and --testbed: each names a target; give one"),
    ("fit --launcher srun --hosts n1", "--hosts and --launcher srun: each names a target"),
    ("fit --launcher mpirun", "--launcher mpirun needs --hosts"),
    ("fit --launcher snur", "--launcher: unknown launcher 'snur'; did you mean srun"),
    ("fit --library openmpi --ppn 2", "--ppn is for targets other than this machine"),
    ("fit --testbed nosuchbed", "test bed 'nosuchbed'"),
    ("fit --hosts n1: --library mpich", "--hosts: 'n1:': not a host"),
    (f"{FIT} hockny", "--model: unknown model 'hockny'; did you mean hockney"),
    (f"{FIT} loggp --procedure hofler", "unknown procedure for loggp 'hofler'; did you mean hoefler"),
    ("fit --library openmpi --thorough", "--thorough is for --model hockney, "),
    (f"{FIT} lmo --procedure culler", "unknown procedure for lmo 'culler'; valid: triplets"),
    ("fit --platform exact --procedure culler", "--procedure is for --model hockney, "),
    ("fit --platform exact --heterogeneous", "--heterogeneous is for --model hockney, "),
    ("fit --platform exact --confidence 0.9", "--confidence is for an execution target: --library"),
    (f"{FIT} hockney --segments 1KiB", "--segments is for --model implementation-aware"),
    (f"{FIT} hockney --chains 2", "--chains is for --model implementation-aware"),
    (f"{FIT} hockney --ppn 2", "--ppn is for --model implementation-aware"),
    (f"{FIT} hockney --repetitions 5:7", "--repetitions is for an execution target: --library"),
    (f"{FIT} hockney --relative-error 0.5", "--relative-error is for an execution target: --library"),
    (f"{FIT} hockney --procs 4,6", "--procs: one number for --model hockney, not 2"),
    (f"{FIT} hockney --procs 9", "platform 'exact' cannot hold P = 9"),
    (f"{FIT} hockney --procs 0", "--procs: malformed process count '0'"),
    (f"{FIT} hockney --procs 1", "hockney by regression needs 2 processes at least, not 1"),
    (f"{FIT} lmo --procs 2", "lmo by triplets needs 3 processes at least, not 2"),
    (f"{FIT} plogp --procedure fitted --procs 2", "fitting PLogP on 2 processes: .*two different numbers at least"),
    (f"{FIT} hockney_by_size --heterogeneous", "hockney_by_size by roundtrips has no heterogeneous form"),
    (f"{FIT} plogp --procedure fitted --heterogeneous", "plogp by fitted has no heterogeneous form; valid: plogp by k"),
    (f"{FIT} hockney --simgrid 9.9", r"SimGrid 9\.9 is not here"),
    (f"{FIT} hockney -o /proc/none/x.toml", r"cannot write /proc/none/x\.toml"),
    ("fit --platform exat --model hockney", "--platform: unknown platform 'exat'; did you mean exact"),
    ("fit --library opnmpi --model hockney", "--library: unknown MPI library 'opnmpi'; did you mean openmpi"),
    ("fit --library openmpi --model hockney --jobs 2", "--jobs is for --platform"),
    (
        "fit --library openmpi --model hockney --repetitions 5:x",
        "--repetitions: malformed '5:x': write one number, or L",
    ),
    (
        "fit --library openmpi --model hockney --repetitions 5:6:7",
        "--repetitions: malformed '5:6:7': write one number, or L",
    ),
    (
        "fit --library openmpi --model hockney --repetitions ²",
        "--repetitions: malformed '²': write one number, or L",
    ),
    ("fit --library openmpi --model hockney --repetitions 7:5", "7 to 5 repetitions; valid: from 1 to"),
    ("fit --library openmpi --model hockney --confidence 1.5", r"confidence 1\.5; valid: between 0 and 1"),
    ("fit --library openmpi --model hockney --relative-error x", "'--relative-error': 'x' is not a valid float"),
    (f"{PREDICT} hockney.toml --procs 4", "'--collective'"),
    ("show message hockney.toml 0,0", r"'0,0': write two different processes, for example 0,1"),
    ("show message hockney.toml 0,00", r"'0,00': write two different processes"),
    ("show message hockney.toml 0", r"'0': write two"),
    ("show message hockney.toml 0,1,2", r"'0,1,2': write two"),
    ("show message hockney.toml 0,-1", r"'0,-1': write two"),
    ("show message hockney.toml 0,²", r"'0,²': write two"),
    ("show message hockney-of-pairs.toml 0,3", r"'0,3': hockney-of-pairs\.toml knows processes 0 to 2"),
    (f"{PREDICT} hockney.toml --collective bcst --procs 4", "unknown collective 'bcst'; did you mean bcast"),
    (f"{PREDICT} hockney.toml --collective bcast", "'--procs'"),
    (f"{PREDICT} hockney.toml --collective scan --procs 4", "model hockney has no formula for scan linear, "),
    (f"{PREDICT} lmo.toml --collective scatter --procs 4 --algorithms linear_nonblocking", "valid: linear, binomial"),
    (
        f"{PREDICT} lmo.toml --collective scatter --procs 4 --model hockney",
        r"unknown model 'hockney'.*those in lmo\.tom",
    ),
    (
        f"{PREDICT} lmo.toml --collective scatter --procs 4 --model lmoo",
        "--model: unknown model 'lmoo'; did you mean lmo",
    ),
    ("check recovery --platform grisou", "platform 'grisou': factors or overheads that change with the message size"),
    ("check recovery --platform exat", "unknown platform 'exat'; did you mean exact"),
    ("show models --collective bcst", "--collective: unknown collective 'bcst'; did you mean bcast"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD, ids=[arguments for arguments, _ in BAD])
def test_bad_input_is_one_line_and_exit_code_2(arguments: str, said: str, here: Path, capsys: Capture) -> None:
    code, output, errors = run(arguments, capsys)
    assert (code, output) == (2, ""), errors
    lines = errors.strip().splitlines()
    assert len(lines) == 1, errors
    assert lines[0].startswith("collwise: ")
    assert re.search(said, lines[0]), lines[0]


def test_fit_takes_collectives_by_the_name_that_other_functions_have() -> None:
    with pytest.raises(UsageError, match="unknown collective 'bcst'; did you mean bcast"):
        collwise.fit("gros", "critical_path", collective="bcst")
