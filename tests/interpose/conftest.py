"""Programs compiled as a user would."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

from collwise.common.folders import SOURCES
from tests.interpose.running import COMPILERS, installation_of


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory):
    """Compiles a C program as a user would, once an engine."""

    @cache
    def compile_for(name: str, source: str) -> Path:
        chosen = installation_of(name)
        compiler = COMPILERS[chosen.library]
        if chosen.library == "smpi":
            compiler = str(chosen.launcher.with_name("smpicc"))
        target = tmp_path_factory.mktemp(name) / Path(source).stem
        command = [compiler, "-std=gnu11", "-O1", f"-I{SOURCES / 'algorithms'}", source, "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return target

    return compile_for
