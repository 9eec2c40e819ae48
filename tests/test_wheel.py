"""The wheel and the archive of sources: what is in them, and that the wheel works outside of a clone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from tests.needs import needs
from tests.test_floors import FLOORS

ROOT = Path(__file__).resolve().parents[1]
TOP = {floor for level in FLOORS for floor in level}


def files_of_git() -> list[PurePosixPath]:
    """The files of the repository, with new ones that are not committed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [PurePosixPath(name) for name in listed if (ROOT / name).is_file()]


def in_the_wheel(file: PurePosixPath) -> str:
    """The place of a file of a floor: the modules of the interface are `collwise` itself, the floors are below it."""
    api = PurePosixPath("studies/api")
    return f"collwise/{file.relative_to(api) if file.is_relative_to(api) else file}"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of git's files, in which tools may leave theirs."""
    folder = tmp_path_factory.mktemp("sources")
    for file in files_of_git():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, folder / file)
    return folder


@pytest.fixture(scope="module")
def packages(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the archive of sources and the wheel, as pip has the same tool make them."""
    folder = tmp_path_factory.mktemp("packages")
    make = "from setuptools import build_meta as made; made.build_sdist({0!r}); made.build_wheel({0!r})"
    subprocess.run([sys.executable, "-c", make.format(str(folder))], cwd=sources, capture_output=True, check=True)
    return folder


@pytest.fixture(scope="module")
def wheel(packages: Path) -> Path:
    [made] = packages.glob("*.whl")
    return made


@needs("git")
def test_the_wheel_has_every_file_of_the_floors(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        members = {one.filename: one for one in archive.infolist() if ".dist-info/" not in one.filename}
        entry_points = archive.read(next(name for name in archive.namelist() if name.endswith("entry_points.txt")))
    expected = {in_the_wheel(file): file for file in files_of_git() if file.parts[0] in TOP}
    notebooks = {f"collwise/{file}" for file in files_of_git() if file.parts[:2] == ("docs", "notebooks")}
    assert len(notebooks) == 4
    measured = {f"collwise/{file}" for file in files_of_git() if file.parts[:2] == ("docs", "measured")}
    assert members.keys() == expected.keys() | notebooks | measured | {"collwise/CMakeLists.txt"}
    executable = {name for name, member in members.items() if member.external_attr >> 16 & 0o100}
    assert executable == {name for name, file in expected.items() if os.access(ROOT / file, os.X_OK)}
    assert executable
    assert b"collwise = collwise.studies.cli.main:main" in entry_points


@needs("git")
def test_the_archive_of_sources_has_every_file_of_git(packages: Path) -> None:
    [made] = packages.glob("*.tar.gz")
    with tarfile.open(made) as archive:
        names = {str(PurePosixPath(*PurePosixPath(one.name).parts[1:])) for one in archive if one.isfile()}
    own = {name for name in names if name in ("PKG-INFO", "setup.cfg") or ".egg-info/" in name}
    assert names - own == {str(file) for file in files_of_git()}


@needs("git")
def test_the_modules_of_the_wheel_run_without_the_clone(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*install, "--no-compile", "--target", site, wheel], check=True)
    bare = {"PYTHONPATH": str(site), "PATH": "", "HOME": str(tmp_path)}

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", site / "bin/collwise", *words]
        return subprocess.run(command, cwd=tmp_path, env=bare, capture_output=True, text=True)

    command = [sys.executable, "-P", "-c", "from collwise.common import folders; print(folders.builds_folder())"]
    found = subprocess.run(command, env=bare, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert Path(found.stdout).parent == tmp_path / ".cache/collwise"
    listed = call("platforms", "show", "--json")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert '"gros"' in listed.stdout
    lacking = call("simulate", "--platform", "gros", "--collective", "bcast", "--procs", "4")
    assert (lacking.returncode, lacking.stdout, lacking.stderr.count("\n")) == (2, "", 1)
    assert "apt-get install gcc" in lacking.stderr
    assert "libsimgrid-dev" in lacking.stderr


def size_of(folder: Path) -> int:
    """The bytes of a folder's files."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.slow
@needs("git", "smpi")
def test_an_installed_wheel_builds_its_programs_and_does_the_main_job(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    before = size_of(tmp_path / "venv")
    programs = tmp_path / "venv/bin"
    subprocess.run([programs / "python", "-m", "pip", "install", "--quiet", wheel], check=True)
    listed = [programs / "python", "-m", "pip", "list", "--format", "freeze"]
    installed = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    for extra in ("ipykernel", "ipython", "jupyter", "nbclient", "widgets", "sphinx", "pytest", "ruff", "mypy", "dask"):
        assert extra not in installed.lower()
    assert size_of(tmp_path / "venv") - before < 450e6
    home = tmp_path / "home"
    home.mkdir()
    environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ} | {"HOME": str(home)}

    def start(*words: str) -> subprocess.Popen[str]:
        command = [programs / "collwise", *words]
        return subprocess.Popen(command, cwd=home, env=environment, stdout=-1, stderr=-1, text=True)

    def call(*words: str) -> str:
        process = start(*words)
        out, error = process.communicate()
        assert process.returncode == 0, error
        return out

    points = ("--platform", "gros", "--collective", "bcast", "--procs", "4", "--sizes", "8KiB,1MiB")
    # Two first uses at once: one builds, the other waits for it.
    together = [start("simulate", *points, "--store", f"{number}.sqlite") for number in range(2)]
    messages = [process.communicate()[1] for process in together]
    assert [process.returncode for process in together] == [0, 0], messages
    assert sum("building benchmark for SimGrid" in text for text in messages) == 1
    assert sum("waiting for another collwise" in text for text in messages) == 1
    lacking = start("check", "study", "luo2020")
    error = lacking.communicate()[1]
    assert (lacking.returncode, error.count("\n")) == (2, 1)
    assert "pip install 'collwise[notebooks]'" in error
    call("simulate", *points, "--for", "openmpi-4.1", "-o", "bcast.times", "--engine", "schedule")
    call("select", "bcast.times", "--for", "openmpi-4.1", "-o", "bcast.json")
    call("export", "bcast.json", "--version", "4.1", "-o", "bcast.rules")
    words = "check algorithms --quick --collective bcast --algorithm chain --library smpi --json"
    verify = words.split()
    [result] = json.loads(call(*verify))["rows"]
    assert (result["cases"] > 0, result["failures"]) == (True, 0)
    call("tune", "exact", "--collective", "bcast", "--procs", "4", "-o", "tuned")
    assert (home / "tuned/exact.html").stat().st_size > 10000
