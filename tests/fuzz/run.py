"""Fuzzes whatever C reads, guided by coverage and under sanitizers: lists, options, tables, environments, reports.

.venv/bin/python tests/fuzz/run.py [READER...] [--runs N] [--keep FOLDER]

Needs clang with libFuzzer (apt install clang libclang-rt-14-dev) and Open MPI's headers. It starts from corpus/: what
--keep kept, made small by libFuzzer's -merge=1 -use_counters=0, and what once did harm, under names.
A million inputs for each reader by default; --runs 1500000 makes ten million in all, in an hour on an idle core.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = "simulator/programs"
FLAGS = ["-g", "-O2", "-std=gnu11", "-D_GNU_SOURCE", "-fsanitize=fuzzer,address,undefined"]
# The registry names every algorithm, none of which is called.
FLAGS += ["-fno-sanitize-recover=undefined", "-Wl,--unresolved-symbols=ignore-all", "-no-pie", "-fno-pie"]
CORPUS = Path(__file__).with_name("corpus")


@dataclass(frozen=True)
class Reader:
    """A reader: the sources that it needs besides its fuzzer, and the most bytes of an input."""

    sources: tuple[str, ...]
    longest: int = 1024


REGISTRY = ("algorithms/find.c", "algorithms/names.c")
LINES = f"{PROGRAMS}/work_line.c"
TABLES = ("algorithms/interpose/decision.c", "algorithms/interpose/table_file.c", *REGISTRY)
WORDS = (f"{PROGRAMS}/options.c", f"{PROGRAMS}/method_options.c", f"{PROGRAMS}/measuring/measure.c")
READERS = {
    "tables": Reader(TABLES),
    "environment": Reader(TABLES),
    "reports": Reader(("algorithms/interpose/report_formats.c", *REGISTRY), 512),
    "cases": Reader((LINES, f"{PROGRAMS}/workload.c", *REGISTRY), 512),
    "experiments": Reader((LINES,), 512),
    "options": Reader((LINES, *WORDS, f"{PROGRAMS}/workload.c", *REGISTRY), 256),
    "models": Reader((f"{PROGRAMS}/measuring/models.c",), 512),
}


def compile_reader(name: str, folder: Path) -> Path:
    """Compiles a reader with its fuzzer. Raises CalledProcessError with the compiler's output."""
    registry = folder / "registry.c"
    if not registry.exists():
        generator = [sys.executable, ROOT / "algorithms/generate_registry.py"]
        subprocess.run([*generator, ROOT / "algorithms/catalogue.toml", registry], check=True)
    headers = subprocess.run(["mpicc.openmpi", "--showme:compile"], capture_output=True, text=True, check=True)
    sources = [ROOT / source for source in READERS[name].sources] + ([registry] if READERS[name].sources else [])
    parts = ("", "applications", "experiments", "measuring", "verify")
    folders = ("algorithms", "algorithms/worlds/real", *(f"{PROGRAMS}/{part}" for part in parts))
    include = [f"-I{ROOT / path}" for path in folders]
    program = folder / name
    command = ["clang", *FLAGS, *headers.stdout.split(), *include, ROOT / f"tests/fuzz/{name}.c", *sources, "-lm"]
    subprocess.run([*command, "-o", program], check=True, capture_output=True, text=True)
    return program


def fuzz(name: str, runs: int, folder: Path, corpus: Path) -> tuple[bool, str]:
    """Whether that many inputs are read without an error, and the last lines that the fuzzer said."""
    program = compile_reader(name, folder)
    inputs = corpus / name
    inputs.mkdir(parents=True, exist_ok=True)
    options = [f"-runs={runs}", f"-max_len={READERS[name].longest}", f"-artifact_prefix={folder}/", "-close_fd_mask=3"]
    done = subprocess.run([program, inputs, CORPUS / name, *options], capture_output=True, text=True)
    return done.returncode == 0, done.stderr


def summary(said: str) -> str:
    """How many inputs were read, at what rate, and how many branches they reached."""
    speed = re.search(r"Done (\d+) runs in (\d+) second", said)
    reached = re.findall(r"cov: (\d+)", said)
    if speed is None:
        return "no result"
    return f"{int(speed.group(1)):,} inputs in {speed.group(2)} s, {reached[-1] if reached else 0} edges reached"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readers", nargs="*", help=f"some of {', '.join(READERS)}; default: all")
    parser.add_argument("--runs", type=int, default=1_000_000, help="inputs for each reader")
    parser.add_argument("--keep", type=Path, help="folder for the inputs that reach new code")
    options = parser.parse_args()
    unknown = [name for name in options.readers if name not in READERS]
    if unknown:
        parser.error(f"unknown reader '{unknown[0]}'; valid: {', '.join(READERS)}")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="collwise-fuzz-") as temporary:
        for name in options.readers or READERS:
            good, said = fuzz(name, options.runs, Path(temporary), options.keep or Path(temporary, "corpus"))
            print(f"{name}: {summary(said) if good else 'FAILED'}", flush=True)
            if not good:
                failed += 1
                print(said[-6000:], file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
