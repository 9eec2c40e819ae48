"""Settings of the whole suite: hypothesis without deadlines, and skips that are counted, explained, kept out of CI."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needs import CAPABILITIES, ROOT, hidden, in_continuous_integration, need, parse_reason

# Files with tests of ten seconds and more, which run first: none of them is left to one process at the end.
_LONG = tuple(
    f"tests/{name}"
    for name in (
        "algorithms/test_adding.py",
        "algorithms/test_sequences.py",
        "algorithms/test_verify.py",
        "golden",
        "interpose/test_interposer.py",
        "studies/cli/test_studio.py",
        "studies/notebooks",
        "test_docs.py",
        "test_pages.py",
        "test_style.py",
        "validation/testbed/test_slurm.py",
    )
)

Skips = Counter[tuple[str, str]]
_SKIPS = pytest.StashKey[Skips]()


def pytest_configure(config: pytest.Config) -> None:
    _keep_bytecode()
    # Tests run in as many processes as there are processors. Threads of NumPy's would wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from hypothesis import HealthCheck, settings

    # Both the deadline and this health check measure how busy the machine is. Each run tries other examples.
    settings.register_profile("collwise", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("collwise")
    # A shell's background jobs and nohup ignore these signals, and programs that tests start and interrupt would
    # inherit that. A handler is not inherited.
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    # The width of tables, which tests give where it matters; readline sets it in processes without a terminal.
    # A project outside would take the place of the working directory.
    for variable in ("COLUMNS", "LINES", "COLLWISE_HOME", "COLLWISE_CALLED"):
        os.environ.pop(variable, None)
    config.stash[_SKIPS] = Counter()
    config.pluginmanager.register(_Counting(config.stash[_SKIPS]))


def _keep_bytecode() -> None:
    """Keeps compiled modules in build/ where none may be written beside the sources.

    Every command that a test starts, every worker and hypothesis itself would be compiled anew otherwise.
    """
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        sys.dont_write_bytecode = False
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(ROOT / "build" / "bytecode")


def pytest_collection_finish() -> None:
    """Thousands of tests and all modules stay to the end: looking at them for garbage took a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(_LONG))


class _Counting:
    """Counts skipped tests by capability and reason; other reasons have the capability ''."""

    def __init__(self, skips: Skips) -> None:
        self._skips = skips

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple) and not hasattr(report, "wasxfail"):
            reason = report.longrepr[2]
            self._skips[parse_reason(reason) or ("", reason.removeprefix("Skipped: "))] += 1


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        need(*mark.args)


@pytest.fixture(scope="session")
def yielding_library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a library with which MPICH's processes yield the processor (yielding.c)."""
    library = tmp_path_factory.mktemp("yielding") / "libyielding.so"
    source = Path(__file__).with_name("yielding.c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return str(library)


@pytest.fixture
def yielding_mpich(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """MPICH's processes yield, on one processor, in tests with a parameter 'mpich'.

    Where there is another processor, one that waits would yield it to nobody: three times the processor time.
    """
    processors = os.sched_getaffinity(0)
    if hasattr(request.node, "callspec") and "mpich" in request.node.callspec.params.values():
        monkeypatch.setenv("LD_PRELOAD", request.getfixturevalue("yielding_library"))
        worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        os.sched_setaffinity(0, {sorted(processors)[worker % len(processors)]})
    yield
    os.sched_setaffinity(0, processors)


def _forbidden(config: pytest.Config) -> list[str]:
    """The capabilities that must not have been skipped here."""
    if not in_continuous_integration():
        return []
    return hidden({name for name, _ in config.stash[_SKIPS]})


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and _forbidden(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    skips = config.stash[_SKIPS]
    if not skips:
        return
    terminalreporter.section("not tested here")
    for (name, why), count in sorted(skips.items()):
        title = CAPABILITIES[name].title if name else "for another reason"
        terminalreporter.write_line(f"{title} ({count} test{'s' if count > 1 else ''}): {why}")
    for name in _forbidden(config):
        terminalreporter.write_line(
            f"error: this machine has {CAPABILITIES[name].title}, and tests of it were skipped", red=True, bold=True
        )
