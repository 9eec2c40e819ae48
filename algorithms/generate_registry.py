"""Writes the C registry from catalogue.toml. Run by the build: generate_registry.py CATALOGUE OUTPUT."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

NEEDS = {
    "power_of_two": "COLLWISE_NEEDS_POWER_OF_TWO",
    "even": "COLLWISE_NEEDS_EVEN",
    "commutative": "COLLWISE_NEEDS_COMMUTATIVE",
}
LIMITS = ("limit_bytes", "between_segment_bytes")


def parameters(algorithm: dict) -> str:
    """The initialisers that say which parameters an algorithm has, and what its number's default is."""
    text = ""
    for name in algorithm["parameters"]:
        if name in LIMITS:
            text += f'.limit_parameter = "{name}", '
        elif name in algorithm.get("defaults", {}):
            text += f'.count_parameter = "{name}", .default_count = {algorithm["defaults"][name]}, '
        else:
            text += f'.part_parameter = "{name}", '
    return text


MOCK_UP_FORM = ("allreduce", "scan", "reduce_scatter_block")
"""Collectives whose mock-ups take the program's buffers as they are (collwise_mock_up_function)."""


def form_of(collective: str, algorithm: dict) -> str:
    """The form of an algorithm's function: the name of its type without ends, and its field of the registry."""
    return "mock_up" if "guideline" in algorithm and collective in MOCK_UP_FORM else collective


def memory_function(algorithm: dict) -> str:
    """C source of a mock-up's collwise_memory_function, from the formulas of the catalogue."""
    message, integers = (
        algorithm[key].replace("//", "/").replace("I", "sizeof(int)") for key in ("message_memory", "integer_memory")
    )
    return (
        f"static collwise_memory memory_{algorithm['guideline']}(size_t n, size_t P, size_t c, size_t C) {{\n"
        f"    (void)n, (void)P, (void)c, (void)C;\n"
        f"    return (collwise_memory){{.message_bytes = {message}, .integer_bytes = {integers}}};\n}}"
    )


def mock_up_flags(algorithm: dict) -> str:
    """The initialisers of what its objections depend on: its calls, and the padding `c` in its memory."""
    calls_reduce_scatter = any(call.startswith("reduce_scatter") for call in algorithm["calls"])
    pads = "c" in algorithm["message_memory"]
    return f", .calls_reduce_scatter = {int(calls_reduce_scatter)}, .pads = {int(pads)}"


def registry_source(catalogue: dict) -> str:
    """C source that defines `collwise_registry`, one designated initialiser an algorithm."""
    declarations, entries = [], []
    for collective, description in catalogue.items():
        for algorithm in description["algorithm"]:
            function = algorithm["function"]
            form = form_of(collective, algorithm)
            declarations.append(f"extern collwise_{form}_function {function};")
            flags = "".join(f", .{name} = 1" for name in ("by_node", "real_mpi_only") if algorithm.get(name, False))
            if "guideline" in algorithm:
                declarations.append(memory_function(algorithm))
                guideline = algorithm["guideline"]
                flags += mock_up_flags(algorithm)
                flags += f', .guideline = "{guideline}", .extra_memory = memory_{guideline}'
            needs = " | ".join(NEEDS[word] for word in algorithm["requires"]) or "0"
            entries.append(
                f"    {{.kind = COLLWISE_{collective.upper()}, "
                f'.collective = "{collective}", .name = "{algorithm["name"]}", '
                f"{parameters(algorithm)}.needs = {needs}{flags}, "
                f".{form} = {function}}},"
            )
    return "\n".join(
        [
            "/* Made from catalogue.toml by generate_registry.py. */",
            '#include "collwise.h"',
            "",
            *declarations,
            "",
            "const collwise_algorithm collwise_registry[] = {",
            *entries,
            "    {.collective = NULL},",
            "};",
            "",
        ]
    )


if __name__ == "__main__":
    catalogue_path, output_path = map(Path, sys.argv[1:3])
    output_path.write_text(registry_source(tomllib.loads(catalogue_path.read_text(encoding="utf-8"))))
