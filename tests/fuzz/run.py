"""Fuzzes every reader of files in C, guided by coverage and under sanitizers: what they read may be anything.

.venv/bin/python tests/fuzz/run.py [READER...] [--runs N] [--keep FOLDER]

Needs clang with libFuzzer (apt install clang libclang-rt-14-dev) and Open MPI's headers. A million inputs for each
reader by default, some minutes altogether. --keep keeps what was found to reach new code, for the next time.
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
FLAGS = ["-g", "-O1", "-std=gnu11", "-D_GNU_SOURCE", "-fsanitize=fuzzer,address,undefined"]
# The registry names every algorithm, none of which is called.
FLAGS += ["-fno-sanitize-recover=undefined", "-Wl,--unresolved-symbols=ignore-all", "-no-pie", "-fno-pie"]
RULES = (
    b"bcast 2 1 0 default\nbcast 2 1 8192 k_chain segment_bytes=8192 chains=3 # why\ngather 4 2 0 lmo bound_bytes=5\n"
)
LIST = b"bcast=k_chain,segment_bytes=64,chains=2;barrier=bruck;alltoall=linear_sync,max_requests=1"
EXPERIMENTS_OF_CASES = (b"collective", b"builtin", b"bcast_gather", b"exchange", b"barrier", b"tasks", b"tasks:2:4")
CASES = tuple(b"1 %s bcast tasks_chain 8 0 1024 64 2 512 0" % one for one in EXPERIMENTS_OF_CASES)
EXPERIMENTS = b"1 1 roundtrip 1024 1024 1 0.5 0 2 0 1\n2 1 gather 8 0 1 0 3 8 0\n3 1 one_to_two 8 0 1 0 3 3 0 1 2\n"


@dataclass(frozen=True)
class Reader:
    """A reader: the sources that it needs besides its fuzzer, and inputs to start from."""

    sources: tuple[str, ...]
    seeds: tuple[bytes, ...]
    longest: int = 1024


REGISTRY = ("algorithms/find.c", "algorithms/names.c")
READERS = {
    "tables": Reader(
        ("algorithms/interpose/decision.c", "algorithms/interpose/table_file.c", *REGISTRY),
        (b"\0" + RULES, b"\1" + LIST),
    ),
    "cases": Reader((f"{PROGRAMS}/work_line.c", f"{PROGRAMS}/workload.c", *REGISTRY), CASES, 256),
    "experiments": Reader((f"{PROGRAMS}/work_line.c",), (EXPERIMENTS,), 512),
}


def compile_reader(name: str, folder: Path) -> Path:
    """Compiles a reader with its fuzzer. Raises CalledProcessError with the compiler's output."""
    registry = folder / "registry.c"
    if not registry.exists():
        generator = [sys.executable, ROOT / "algorithms/generate_registry.py"]
        subprocess.run([*generator, ROOT / "algorithms/catalogue.toml", registry], check=True)
    headers = subprocess.run(["mpicc.openmpi", "--showme:compile"], capture_output=True, text=True, check=True)
    sources = [ROOT / source for source in READERS[name].sources] + ([registry] if READERS[name].sources else [])
    folders = ("algorithms", "algorithms/worlds/real", PROGRAMS, f"{PROGRAMS}/experiments", f"{PROGRAMS}/measuring")
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
    for number, seed in enumerate(READERS[name].seeds):
        (inputs / f"seed-{number}").write_bytes(seed)
    options = [f"-runs={runs}", f"-max_len={READERS[name].longest}", f"-artifact_prefix={folder}/"]
    done = subprocess.run([program, inputs, *options], capture_output=True, text=True)
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
    parser.add_argument("--keep", type=Path, help="folder of inputs that reach new code, kept for the next time")
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
