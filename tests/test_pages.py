"""Every block of code on the documentation's pages runs: page by page, in order, in a folder that looks like a clone.

A page becomes one script of bash. What needs more than SMPI and a few seconds is a slow test: whole pages, or a page
from the first block on that needs more of the machine. The tables below hold all that differs from what readers type.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import pytest

from collwise.common.folders import cache_folder
from tests.command_line import printed, read, run, serving
from tests.needs import need, needs, why_missing

ROOT = Path(__file__).resolve().parents[1]
FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in FILES}

# Lines that nothing runs, and why.
NOT_RUN = {
    "./collwise test": "runs these tests",
    "./collwise test --version       # installs everything for the tests, and runs none": "tests/test_launcher.py",
    ".venv/bin/python -m pytest tests/models -n 2 -q   # a part: tests have the folders of the code": "as the first",
    "./collwise test tests/test_style.py tests/test_floors.py": "as the first",
    "python3 -m venv ~/collwise": "tests/test_wheel.py installs the package, without a network",
    "~/collwise/bin/pip install /path/to/the/clone": "as above",
    "~/collwise/bin/collwise platforms show": "as above",
    "apt-get install gcc libc6-dev cmake ninja-build libsimgrid-dev libjemalloc2 openmpi-bin libopenmpi-dev mpich "
    "libmpich-dev": "changes the machine",
    "apt-get install hpcc": "as above",
}
# Other tests run or read these blocks.
ELSEWHERE = {
    ("adding", "c"): "tests/algorithms/test_adding.py",
    ("adding", "toml"): "tests/algorithms/test_adding.py",
    ("commands", "{eval-rst}"): "tests/test_docs.py",
    ("index", "{toctree}"): "tests/test_docs.py",
    ("interposing", "c"): "tests/interpose/decided.c",
    ("python", "python"): "tests/studies/api/test_examples_of_the_interface.py",
    ("python", "{eval-rst}"): "tests/test_docs.py",
}
# Capabilities that blocks need, by patterns in their text. Such blocks, and those after them, are slow tests.
NEEDS = {
    r"testbed|irregular-regions": ("testbed", "openmpi"),
    r"\bsalloc|srun|sbatch|slurm:|--slurm --": ("slurm", "openmpi"),
    r"--hosts|--launcher oar|LAUNCHER": ("nodes", "openmpi"),
    r"--library openmpi|mpirun |mpicc|collwise (measure|program gain)": ("openmpi",),
    r"mpich": ("mpich",),
    r"collwise check algorithms": ("openmpi", "mpich"),
    r"dask|--executor": ("dask",),
    r"\bhpcc\b": ("hpcc",),
}
# Pages whose simulations take longer.
SLOW = {"README", "guidelines", "install", "tune"}
# Replacements for parts of a page's text, so that it runs here. The other machine is a test bed with Slurm of 4 nodes
# with 2 slots each, or this machine under the names of hosts.
INSTEAD = {
    r"--nodes (8|64) --ntasks-per-node \d+": "--nodes 4 --ntasks-per-node 1",
    r"--nodes 2 --ntasks-per-node 32": "--nodes 2 --ntasks-per-node 2",
    r"--partition batch ": "",
    r"--ppn 32 (.*) --procs 64(,2048)?\b": r"--ppn 2 \1 --procs 4",
    r"--sizes 8:2MiB:x4 --segments 0,16KiB,64KiB (.*)--budget \d+min": r"--sizes 8,1KiB --segments 0 \1--budget 20s",
    r"(simulate --platform mycluster.*) --procs 64(,2048)? --sizes 8:2MiB:x4": r"\1 --procs 4 --sizes 8,1KiB",
    r"--budget 10min": "--budget 20s",
    r"gain decisions.json --launcher oar --ppn 1": "gain decisions.json --launcher oar --ppn 2",
    r"gain (\S+) (--launcher .*)": r"gain \1 --sizes 16KiB --launches 2 \2",
    r"(?m)^srun --mpi=pmix --ntasks 64 --ntasks-per-node 32": "on_login srun --mpi=pmix --nodes 2",
    r"(?m)^(\./collwise (?!testbed).*--executor slurm)": r"on_login \1",
    r"slurm:jobs=4,cores=8": "slurm:jobs=2,cores=2",
    r"describe mycluster --slurm live": "describe live --slurm live",
    r"/etc/slurm": "tests/platforms/recorded/hdr",
    r"node\.xml": "tests/platforms/recorded/laptop.lscpu",
    # A program is built for one library; the library of this clone stays as it is, as do its algorithms and results.
    r"(smpi|mpich)(.*) \./my_program": r"\1\2 ./my_program.\1",
    r"-B build/openmpi": "-B build/own",
    r"--build build/openmpi": "--build build/own",
    r"two_way_chain": "split_binary",
    # A question is answered, and what ends when it is interrupted goes on.
    r"(times delete .*) --before [\d-]+": r"\1 --yes",
    r"(?m)^(dask [^#\n]*).*": r"\1&",
    # On a busy machine the bed may be unfit, and some models cannot be fitted.
    r"testbed status --check": "testbed status",
    r"fit --launcher srun": "fit --model hockney --launcher srun",
    # Smaller sizes and fewer repetitions.
    r"--procs 8,16,32,64,90": "--procs 8 --sizes 1MiB",
    r"--procs 10:120:\+10": "--procs 4 --sizes 8KiB",
    r"procs=\"10:120:\+10\"": "procs=4, sizes=8192",
    # Three machines; tests/validation/measurement reads the times of all.
    r"(check machines) (--report)": r"\1 studies/machines/{aws,leonardo-2025_03_19,lumi-2025_03_27}* \2",
    r"fit --platform gros": "fit --platform gros --collective bcast --procs 4,8,16 --segments 8KiB",
    r"((predict --parameters results/|whatif change --platform )gros.*) --procs 100": r"\1 --procs 16 --sizes 64KiB",
    r"--nodes 64 --ppn 12": "--nodes 8 --ppn 4",
    r"(--collective bcast,allreduce -o tasks.json)": r"--sizes 1MiB --segments 64KiB,512KiB \1",
    r"--procs 8,64,512,2048 --sizes 8:2MiB:x2": "--procs 8,64 --sizes 8:2MiB:x16",
    r"bandwidth=x0.25:x8": "bandwidth=x0.25:x1",
    r"calibrate --testbed -o": "calibrate --testbed --quick -o",
    r"calibrate --launcher srun": "calibrate --quick --launcher srun",
    r"(platforms thresholds (?!.*--hosts).*--procs 8)": r"\1 --repetitions 2 --sizes 4KiB:48KiB:+4KiB",
    r"16KB,32KB,64KB --tcp reno-2009,reno,bbr": "16KB --tcp reno",
    r"--procs 2,4,8 --sizes 1KiB:1MiB:x4": "--procs 2,4 --sizes 1KiB",
    r"(--decisions kept.json --engine smpi)": r"\1 --procs 16 --sizes 64KiB",
    r"--procs 4,8 --sizes 1KiB:1MiB:x4": "--procs 4 --sizes 64KiB",
    r"(measure --testbed .*)8KiB:512KiB:x4": r"\g<1>8KiB",
    r"simulate --platform gros --procs 16": "simulate --platform gros --collective gather --procs 8 --sizes 1KiB",
    r"--procs 512 --ppn 16": "--collective gather --procs 32 --ppn 16 --sizes 1KiB",
    r"--procs 4 --launches 10": "--collective gather --procs 4 --sizes 1KiB --launches 2",
    r"--testbed bed --procs 8": "--testbed bed --collective gather --procs 4 --sizes 1KiB --launches 2",
    r"--procs 128 --ppn 32 --sizes 8:256KiB:x8": "--procs 64 --ppn 32 --sizes 1KiB",
    r"--procs 192 --set rows=192,iterations=24": "--procs 24 --set rows=24,iterations=4",
    r"--procs 3:32:\+1": "--procs 3:32:+6 --sizes 64KiB",
    r"mycluster.toml --procs 128,512,2048": "mycluster.toml --collective bcast --procs 64 --sizes 64KiB",
    r"--procs 8,100 --check": "--procs 8 --check",
    r"--procs 16,32 --sizes 8KiB:1MiB:x2 --script": "--procs 4 --sizes 8KiB --script",
    r"(--transport tcp .*)8KiB:1MiB:x2": r"\g<1>8KiB --segments 8KiB",
    r"(check three-way --launcher srun .*)--quick": r"\1--quick --collective bcast --no-models",
    r"check three-way --hosts": "check three-way --quick --collective bcast --no-models --hosts",
    r"three-way +--testbed": "three-way --quick --collective bcast --no-models --testbed --nodes 4 --rate 50Mbit",
}
# The files that a reader has: in every folder those of tests/pages, its commands in place of those that reach other
# machines, and what the script of a page in `before` makes.
HAS = ROOT / "tests/pages"
PROGRAMS = {"my_program": "mpicc.openmpi", "my_program.mpich": "mpicc.mpich", "my_program.smpi": "smpicc"}
# A page's beds and processes end with its script.
_PRIVATE = [] if why_missing("testbed") else shlex.split("unshare --mount --pid --fork --kill-child --mount-proc")
_BLOCK = re.compile(r"^( *)```(.*?)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"\b[Tt]his\s(?:\w+,\s)?`([\w-]+\.\w+)`")
# Files that commands on the pages read, and the short description that they are here.
_FILES = ("big", "bed", "faster", "twice", "mycluster", "mine", "two-sockets", "mycluster-calibrated")
_COMMAND = re.compile(r"\s*(?:sudo |salloc .*? )?(?:\./)?collwise ([a-z].*)")
_INDENTED = re.compile(r"^    (?:\./)?collwise [a-z]+ -", re.MULTILINE)


class Block(NamedTuple):
    """A block of code; `name` is that of the file that it is, if the paragraph before it says: this `name`."""

    line: int
    language: str
    text: str
    name: str


def blocks(page: str) -> Iterator[Block]:
    text = PAGES[page]
    for found in _BLOCK.finditer(text):
        before = text[: found.start()]
        names = _NAMED.findall(before.rstrip().rpartition("\n\n")[2])
        code = re.sub(f"^{found[1]}", "", found[3], flags=re.MULTILINE)
        yield Block(before.count("\n") + 1, found[2], code, names[-1] if names else "")


def needed(block: Block) -> list[str]:
    """The capabilities that a block needs besides SMPI."""
    if block.language not in ("sh", "python"):
        return []
    return sorted({name for pattern, names in NEEDS.items() if re.search(pattern, block.text) for name in names})


def commands(page: str) -> Iterator[list[str]]:
    """The words of every command of ours in the shell's blocks on a page."""
    for block in blocks(page):
        for line in _joined(block.text).splitlines() if block.language == "sh" else ():
            if found := _COMMAND.fullmatch(line):
                words = shlex.split(found[1], comments=True)
                if "--help" not in words:
                    yield words


def _joined(text: str) -> str:
    """The text with continued lines in one."""
    return re.sub(r"\\\n\s*", "", text)


def instead(text: str) -> str:
    """The text with its replacements, without lines that nothing runs."""
    lines = _joined(text).splitlines(keepends=True)
    text = "".join(line for line in lines if line.strip() not in NOT_RUN)
    for pattern, other in INSTEAD.items():
        text = re.sub(pattern, other, text)
    return text


def lay_out(folder: Path, page: str) -> None:
    """Makes the folder a clone to the eye, with the files that the page shows and what else its reader has."""
    for one in ROOT.iterdir():
        if one.name not in ("build", "collwise", "results"):
            (folder / one.name).symlink_to(one)
    (folder / "build").mkdir()
    for one in (ROOT / "build").iterdir():
        (folder / "build" / one.name).symlink_to(one)
    (folder / "home").mkdir()
    shutil.copytree(HAS, folder, dirs_exist_ok=True)
    (folder / "collwise").symlink_to("bin/collwise")
    for block in blocks(page):
        if block.language not in ("sh", "python") and block.name and not (folder / block.name).exists():
            (folder / block.name).write_text(block.text)


def script(folder: Path, page: str, parts: list[Block]) -> Iterator[str]:
    """The lines of the script of bash that runs these blocks."""
    yield "set -eu -o pipefail"
    yield "PS4='+ $EPOCHREALTIME '"
    if _PRIVATE:
        yield "mkdir -p /run/netns /run/collwise-testbed"
        yield "mount -t tmpfs none /run/netns; mount -t tmpfs none /run/collwise-testbed"
    yield f"set -x; if [ -e before/{page}.sh ]; then . before/{page}.sh; fi"
    for program, compiler in PROGRAMS.items():
        if re.search(rf"{program}(?![.\w])", instead("".join(block.text for block in parts))):
            yield f"{compiler} my_program.c -o {program}"
    for block in parts:
        yield f": ====== {page}.md, line {block.line}"
        text = instead(block.text)
        if block.language == "python" or text.startswith("#!"):
            file = folder / (f"{page}-{block.line}.py" if block.language == "python" else block.name or "job.sh")
            file.write_text(text)
            runs = f"python {file}" if block.language == "python" else f"sbatch --wait {file}"
            yield f"on_login {runs}" if re.search(r"slurm:|#SBATCH", text) else runs
        else:
            yield f"(\n{text})"


def runs(page: str) -> list[Block]:
    """The blocks of a page that this module runs."""
    return [
        block
        for block in blocks(page)
        if block.language in ("sh", "python") and (page, block.language) not in ELSEWHERE and instead(block.text)
    ]


def pages() -> list[object]:
    """The pages to run: in the default suite up to the first block that needs more, and whole."""
    found: list[object] = []
    for page in PAGES:
        every = runs(page)
        quick = [] if page in SLOW else [*takewhile(lambda block: not needed(block), every)]
        if quick:
            found.append(pytest.param(page, quick, id=page))
        if quick != every:
            found.append(pytest.param(page, every, id=f"{page}-whole", marks=pytest.mark.slow))
    return found


@needs("smpi")
@pytest.mark.parametrize(("page", "parts"), pages())
def test_the_blocks_of_a_page_run(page: str, parts: list[Block], tmp_path: Path) -> None:
    lay_out(tmp_path, page)
    missing = next((name for block in parts for name in needed(block) if why_missing(name)), None)
    able = [*takewhile(lambda block: missing not in needed(block), parts)]
    file = tmp_path / "page"
    file.write_text("\n".join(script(tmp_path, page, able)))
    places = [str(tmp_path / "bin"), str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin", "/sbin"]
    environment = os.environ | {
        "PATH": os.pathsep.join(places),
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(cache_folder().parent),
        "OAR_NODEFILE": str(tmp_path / "reservation"),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }
    environment.pop("COLLWISE_STORE", None)
    with contextlib.ExitStack() as served, (tmp_path / "log").open("w") as log:
        # Where blocks need no more than SMPI, commands need not be in the script's namespaces and sessions.
        if not any(map(needed, able)):
            environment["SERVED_AT"] = served.enter_context(serving(tmp_path / "commands"))
        done = subprocess.run(
            [*_PRIVATE, "bash", file], cwd=tmp_path, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
    assert done.returncode == 0, (tmp_path / "log").read_text()[-5000:]
    if missing:
        need(missing)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the platforms that commands on the pages name."""
    made = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        run("platforms", "new", "any", "--nodes", "4", "--gbits", "1", "--latency-us", "10")
    for name in _FILES:
        shutil.copy(made / "any.toml", made / f"{name}.toml")
    (made / "thresholds.toml").write_text("[thresholds]\n")
    return made


@pytest.mark.parametrize("page", PAGES)
def test_commands_on_a_page_are_valid(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for words in commands(page):
        # The launcher reads 'test' so.
        assert read(["setup", *words] if words[0] == "test" else words).name in words


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_runs_or_is_read(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLLWISE_STORE", raising=False)
    assert not _INDENTED.search(PAGES[page]), "commands stand between fences"
    for block in blocks(page):
        if block.language == "text":
            assert not any(map(_COMMAND.fullmatch, block.text.splitlines())), f"line {block.line} holds commands"
        elif block.language == "json":
            shown = json.loads(block.text)
            run(*shlex.split(shown["call"])[1:])
            again = printed(capsys.readouterr().out)
            assert again.rows == [row | {"seconds": pytest.approx(row["seconds"], rel=0.01)} for row in shown["rows"]]
            assert again.facts == shown["facts"]
        else:
            assert block.language in ("sh", "python") or block.name or (page, block.language) in ELSEWHERE, block.line


def test_what_is_said_of_the_pages_is_of_use() -> None:
    every = {(page, block.language): block for page in PAGES for block in blocks(page)}
    text = _joined("".join(block.text for page in PAGES for block in blocks(page)))
    assert every.keys() >= ELSEWHERE.keys()
    assert all(line in text.splitlines() for line in NOT_RUN)
    assert {page for page, _ in every} >= SLOW | {one.stem for one in HAS.glob("before/*.sh")}
    for pattern in (*NEEDS, *INSTEAD):
        assert re.search(pattern, text), pattern
