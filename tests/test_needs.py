"""Skips: only tests/needs.py makes them, they are counted and explained, and CI fails where one hides something."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests import needs
from tests.needs import CAPABILITIES, REQUIRED, Capability, need, parse_reason

pytest_plugins = "pytester"

ROOT = Path(__file__).resolve().parents[1]
TESTS = """
import pytest
from tests.needs import each, need, needs

@needs("openmpi")
def test_marked(): pass

@pytest.mark.parametrize("library", each("openmpi", "mpich"))
def test_parameters(library): pass

@pytest.fixture
def bed(): need("testbed")

def test_fixture(bed): pass

def test_free(): pass
"""
Run = Callable[..., pytest.RunResult]


def lacking(why: str, present: bool = False) -> Capability:
    return Capability("made up", lambda: why, lambda: present)


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs tests under the suite's plugin on a machine that has these capabilities and no others."""
    monkeypatch.delenv("CI", raising=False)

    def run_tests(capabilities: Mapping[str, Capability], *arguments: str, text: str = TESTS) -> pytest.RunResult:
        monkeypatch.setattr(needs, "CAPABILITIES", capabilities)
        monkeypatch.setattr("tests.conftest.CAPABILITIES", capabilities)
        pytester.makeini("[pytest]\naddopts = --strict-markers\nmarkers = needs(*capabilities): of the machine")
        pytester.makepyfile(text)
        return pytester.runpytest_inprocess("-p", "tests.conftest", "-p", "no:cacheprovider", *arguments)

    return run_tests


def machine(**named: Capability) -> dict[str, Capability]:
    return {name: lacking("") for name in CAPABILITIES} | named


def test_nothing_is_said_where_nothing_is_missing(run: Run) -> None:
    found = run(machine())
    found.assert_outcomes(passed=5)
    found.stdout.no_fnmatch_line("*not tested here*")
    assert found.ret == pytest.ExitCode.OK


def test_what_is_missing_is_counted_and_explained(run: Run) -> None:
    bare = machine(openmpi=lacking("no mpirun"), testbed=lacking("run as root"))
    found = run(bare)
    found.assert_outcomes(passed=2, skipped=3)
    found.stdout.fnmatch_lines(
        ["*= not tested here =*", "made up (2 tests): no mpirun", "made up (1 test): run as root"]
    )
    assert found.ret == pytest.ExitCode.OK


@pytest.mark.parametrize("value", ["true", "", "0", "false"])
@pytest.mark.parametrize(("name", "present"), [("openmpi", True), ("mpich", False), ("testbed", True)])
def test_continuous_integration_fails_on_a_machine_that_has_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, present: bool, value: str
) -> None:
    monkeypatch.setenv("CI", value)
    found = run(machine(**{name: lacking("half installed", present)}))
    found.assert_outcomes(passed=3 if name == "openmpi" else 4, skipped=2 if name == "openmpi" else 1)
    fails = present and value == "true"
    assert found.ret == (pytest.ExitCode.TESTS_FAILED if fails else pytest.ExitCode.OK)
    assert ("error: this machine has made up" in found.stdout.str()) == fails


def test_other_capabilities_may_be_missing_in_continuous_integration(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    text = "from tests.needs import needs\n@needs('ssh')\ndef test_it(): pass\n"
    assert run(machine(ssh=lacking("no ssh", present=True)), text=text).ret == pytest.ExitCode.OK


def test_skips_for_other_reasons_are_listed(run: Run) -> None:
    found = run(machine(), text="import pytest\ndef test_it(): pytest.skip('of no use')\n")
    found.stdout.fnmatch_lines(["for another reason (1 test): of no use"])


def test_a_capability_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="unknown capability 'opnempi'; valid: smpi, openmpi"):
        needs.needs("opnempi")


def test_reasons_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "CAPABILITIES", machine(mpich=lacking("no: it\nis not")))
    with pytest.raises(pytest.skip.Exception) as skipped:
        need("smpi", "mpich")
    assert parse_reason(f"Skipped: {skipped.value.msg}") == ("mpich", "no: it\nis not")
    assert parse_reason("Skipped: no need") is None


def test_a_missing_command_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mpirun.mpich").touch(0o755)
    monkeypatch.setattr(needs, "_SEARCHED", str(tmp_path))
    for name, present in (("mpich", True), ("openmpi", False), ("smpi", False), ("testbed", False)):
        assert CAPABILITIES[name].present() == present
    assert CAPABILITIES["mpich"].missing() == "mpicc.mpich not found on PATH"


def test_what_is_required_is_known() -> None:
    assert set(REQUIRED) <= set(CAPABILITIES)


def test_every_name_is_read_again() -> None:
    assert [parse_reason(f"needs {name}: so") for name in CAPABILITIES] == [(name, "so") for name in CAPABILITIES]


def test_programs_can_be_interrupted_where_the_suite_is_a_background_job(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile("""
        import signal, subprocess, sys

        def test_it():
            code = "import signal; print(*(int(signal.getsignal(n) == signal.SIG_IGN) for n in (1, 2)))"
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            assert done.stdout == "0 0\\n"
    """)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    arguments = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    in_background = ["sh", "-c", "trap '' INT HUP; exec \"$@\"", "sh"]
    found = pytester.run(*in_background, *arguments)
    found.assert_outcomes(passed=1)


def test_nothing_else_skips() -> None:
    """A skip past tests/needs.py could hide a capability from the count."""
    own = {ROOT / "tests/needs.py", Path(__file__).resolve()}
    skips = re.compile(r"\bskipif\b|\bimportorskip\b|\bpytest\.(mark\.)?skip\b|\bunittest\b|\bSkipTest\b")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path not in own
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if skips.search(line)
    ]
    assert not found, "mark what a test needs with tests.needs.needs: " + ", ".join(found)


def test_no_test_has_a_deadline() -> None:
    """tests/conftest.py sets the profile once."""
    found = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if re.search(r"settings\([^)]*\bdeadline=", path.read_text(encoding="utf-8"))
    ]
    assert not found
