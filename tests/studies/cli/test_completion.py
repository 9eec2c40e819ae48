"""`collwise setup completion`: what a shell offers, by the script in a real bash, and by click for the other shells."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from collwise.studies.cli.commands import COMPLETION_VARIABLE
from collwise.studies.cli.main import collwise
from tests.needs import ROOT, needs


def offered(*words: str) -> list[str]:
    """The answer to bash about the last word of a command line."""
    environment = {
        "COMP_WORDS": " ".join(("collwise", *words)),
        "COMP_CWORD": str(len(words)),
        COMPLETION_VARIABLE: "bash_complete",
    }
    done = CliRunner().invoke(collwise, [], prog_name="collwise", complete_var=COMPLETION_VARIABLE, env=environment)
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("tu",), ["plain,tune"]),
        (("platforms", "cal"), ["plain,calibrate"]),
        (("simulate", "--plat"), ["plain,--platform"]),
        (("simulate", "--platform", "gr"), ["plain,grisou", "plain,gros"]),
        (("simulate", "--platform", "./my"), ["file,./my"]),
        (("platforms", "show", "daho"), ["file,daho"]),
        (("platforms", "show", "da"), ["plain,dahu"]),
        (("simulate", "--collective", "bcast,gatherv,ga"), ["plain,bcast,gatherv,gather"]),
        (("measure", "--collective", "exs"), ["plain,exscan"]),
        (("show", "schedule", "--collective", "barrier", "--algorithms", "d"), ["plain,double_ring"]),
        (("show", "schedule", "--algorithms", "double_r"), ["plain,double_ring"]),
        (("simulate", "--collective", "barrier", "--algorithms", "tree,b"), ["plain,tree,bruck"]),
        (("fit", "--model", "plo"), ["plain,plogp"]),
        (("fit", "--output", "para"), ["file,para"]),
        (("demo", "--output", "res"), ["dir,res"]),
        (("tune", "jup"), ["plain,jupiter"]),
    ],
)
def test_names_are_offered(words: tuple[str, ...], expected: list[str]) -> None:
    assert offered(*words) == expected


@needs("set-up")
def test_bash_completes_with_the_script() -> None:
    script = """
        eval "$(./collwise setup completion bash)"
        complete -p collwise >&2
        COMP_WORDS=(./collwise simulate --platform gri); COMP_CWORD=3
        _collwise_completion ./collwise
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["grisou"], done.stderr


def test_completion_sets_nothing_up(tmp_path: Path) -> None:
    launcher = tmp_path / "collwise"
    launcher.write_bytes((ROOT / "collwise").read_bytes())
    environment = {**os.environ, COMPLETION_VARIABLE: "bash_complete", "COMP_WORDS": "collwise s", "COMP_CWORD": "1"}
    done = subprocess.run(["bash", launcher], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == [launcher]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_script(shell: str) -> None:
    done = CliRunner().invoke(collwise, ["setup", "completion", shell], prog_name="collwise")
    assert done.exit_code == 0
    assert f"{COMPLETION_VARIABLE}={shell}_complete" in done.stdout
