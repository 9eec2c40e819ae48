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


def registry_source(catalogue: dict) -> str:
    """C source that defines `collwise_registry`, one designated initialiser an algorithm."""
    declarations, entries = [], []
    for collective, description in catalogue.items():
        for algorithm in description["algorithm"]:
            function = algorithm["function"]
            declarations.append(f"extern collwise_{collective}_function {function};")
            flags = "".join(f", .{name} = 1" for name in ("by_node", "real_mpi_only") if algorithm.get(name, False))
            needs = " | ".join(NEEDS[word] for word in algorithm["requires"]) or "0"
            entries.append(
                f"    {{.kind = COLLWISE_{collective.upper()}, "
                f'.collective = "{collective}", .name = "{algorithm["name"]}", '
                f"{parameters(algorithm)}.needs = {needs}{flags}, "
                f".{collective} = {function}}},"
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
