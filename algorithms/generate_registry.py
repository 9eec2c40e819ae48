"""Writes the C registry from catalogue.toml. Run by the build: generate_registry.py CATALOGUE OUTPUT."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from string import Template

LIMITS = ("limit_bytes", "between_segment_bytes")
MOCK_UP_FORM = ("allreduce", "scan", "reduce_scatter_block")
"""The collectives whose mock-ups use the program's buffers directly (collwise_mock_up_function)."""

_REGISTRY = Template("""\
/* Made from catalogue.toml by generate_registry.py. */
#include "collwise.h"

${declarations}

const collwise_algorithm collwise_registry[] = {
${entries}
    {.collective = NULL},
};
""")
# The function that computes a mock-up's memory by the formulas of catalogue.toml, which explains n, P, c and C.
_MEMORY = Template("""\
static collwise_memory memory_${guideline}(size_t n, size_t P, size_t c, size_t C) {
    (void)n, (void)P, (void)c, (void)C;
    return (collwise_memory){.message_bytes = ${message}, .integer_bytes = ${integers}};
}""")


def form_of(collective: str, algorithm: dict) -> str:
    """The form of an algorithm's function, whose type is collwise_FORM_function and whose registry field is FORM."""
    return "mock_up" if "guideline" in algorithm and collective in MOCK_UP_FORM else collective


def _declarations(collective: str, algorithm: dict) -> Iterator[str]:
    """Declares the algorithm's function; for a mock-up, also defines the function that returns its memory."""
    yield f"extern collwise_{form_of(collective, algorithm)}_function {algorithm['function']};"
    if "guideline" in algorithm:
        message, integers = (
            algorithm[key].replace("//", "/").replace("I", "sizeof(int)")
            for key in ("message_memory", "integer_memory")
        )
        yield _MEMORY.substitute(guideline=algorithm["guideline"], message=message, integers=integers)


def _initialisers(collective: str, algorithm: dict) -> Iterator[str]:
    """The initialisers of one algorithm's entry in the registry."""
    yield f".kind = COLLWISE_{collective.upper()}"
    yield f'.collective = "{collective}"'
    yield f'.name = "{algorithm["name"]}"'
    for name in algorithm["parameters"]:
        if name in LIMITS:
            yield f'.limit_parameter = "{name}"'
        elif name in algorithm.get("defaults", {}):
            yield f'.count_parameter = "{name}", .default_count = {algorithm["defaults"][name]}'
        else:
            yield f'.part_parameter = "{name}"'
    yield f".needs = {' | '.join(f'COLLWISE_NEEDS_{word.upper()}' for word in algorithm['requires']) or 0}"
    yield from (f".{name} = 1" for name in ("by_node", "real_mpi_only") if algorithm.get(name, False))
    if guideline := algorithm.get("guideline"):
        # Whether a mock-up can run depends on the collectives that it calls, and on whether its memory formula contains
        # the padding `c`.
        yield f".calls_reduce_scatter = {int(any(call.startswith('reduce_scatter') for call in algorithm['calls']))}"
        yield f".pads = {int('c' in algorithm['message_memory'])}"
        yield f'.guideline = "{guideline}", .extra_memory = memory_{guideline}'
    yield f".{form_of(collective, algorithm)} = {algorithm['function']}"


def registry_source(catalogue: dict) -> str:
    """C source that defines `collwise_registry`, with one designated initialiser per algorithm."""
    every = [(collective, algorithm) for collective, about in catalogue.items() for algorithm in about["algorithm"]]
    return _REGISTRY.substitute(
        declarations="\n".join(line for entry in every for line in _declarations(*entry)),
        entries="\n".join(f"    {{{', '.join(_initialisers(*entry))}}}," for entry in every),
    )


if __name__ == "__main__":
    catalogue_path, output_path = map(Path, sys.argv[1:3])
    output_path.write_text(registry_source(tomllib.loads(catalogue_path.read_text(encoding="utf-8"))))
