"""Writes the functions of the interposing library, from catalogue.toml.

Three sources in C: the MPI functions that it replaces; those that it counts and passes on, which are the non-blocking
and persistent forms of every collective, MPI_Alltoallw, and functions with large counts, which become ordinary calls
where their counts are small enough; and Fortran's functions for Open MPI. Run by the build, with the standard library
alone, so that a cluster needs nothing but a Python: generate_wrappers.py CATALOGUE WRAPPERS COUNTED FORTRAN.
"""

from __future__ import annotations

import string
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LINE_LENGTH = 120

# The C parameter for each field of collwise_call.
PARAMETERS = {
    "send": "const void *send",
    "send_count": "int send_count",
    "send_counts": "const int send_counts[]",
    "send_displacements": "const int send_displacements[]",
    "send_type": "MPI_Datatype send_type",
    "receive": "void *receive",
    "receive_count": "int receive_count",
    "receive_counts": "const int receive_counts[]",
    "receive_displacements": "const int receive_displacements[]",
    "receive_type": "MPI_Datatype receive_type",
    "op": "MPI_Op op",
    "root": "int root",
    "comm": "MPI_Comm comm",
}

_SCALARS = ("send_count", "receive_count")
_ARRAYS = ("send_counts", "receive_counts", "send_displacements", "receive_displacements")

_HEADER = "/* Generated from catalogue.toml by generate_wrappers.py. */"

_WRAPPER = string.Template("""\
${decided_head}
    if (${forwards}) {
${forward}
    }
    collwise_call call = {
${fields}
    };
    interpose_pending pending;
    int status;
    if (!interpose_run(${kind}, &call, &pending, &status)) {
${forward_status}
    }
    interpose_finish(&pending);
    return status;
}

${head}
${leaves}
${forward}
    }
${repeated}${decided}
}
""")
_REPEATED = string.Template("""\
    interpose_state *state = interpose_known_state(comm);
    interpose_repeatable *last = state == NULL ? NULL : &state->last[${kind}];
${repeats}
${sets}
        return interpose_repeat(last, state);
    }
""")


def function_of(collective: str) -> str:
    """The collective's MPI function: MPI_Reduce_scatter for reduce_scatter."""
    return f"MPI_{collective.capitalize()}"


def kind_of(collective: str) -> str:
    """The collective's enumerator in collwise.h."""
    return f"COLLWISE_{collective.upper()}"


def filled(start: str, words: Sequence[str], end: str, joint: str = ", ") -> str:
    """Start, words with joints and end, continued below the first word where a line would become too long."""
    lines, line = [], start
    for word in [*(f"{word}{joint}" for word in words[:-1]), words[-1] + end]:
        if len(line + word.rstrip()) > LINE_LENGTH:
            lines.append(line.rstrip())
            line = " " * len(start)
        line += word
    return "\n".join([*lines, line])


def repeated(arguments: Sequence[str], kind: str) -> str:
    """The part of a function that runs a call like the stored one; none where counts are lists."""
    if any(argument in _ARRAYS for argument in arguments):
        return ""
    buffers = [name for name in ("send", "receive") if name in arguments]
    equal = [f"last->call.{name} == {name}" for name in arguments if name not in (*buffers, "comm")]
    alike = [f"interpose_are_alike(last->call.{name}, {name})" for name in buffers]
    conditions = ["last != NULL", "last->algorithm != NULL", *equal, *alike]
    return _REPEATED.substitute(
        kind=kind,
        repeats=filled("    if (", conditions, ") {", " && "),
        sets="\n".join(f"        last->call.{name} = {name};" for name in buffers),
    )


def wrapper(collective: str, description: dict) -> str:
    """The MPI function that programs call: an algorithm of ours, or the MPI library's own function."""
    arguments, kind, function = description["arguments"], kind_of(collective), function_of(collective)
    forwards, leaves = f"interpose_forwards({kind}, comm)", [f"!interpose_watches({kind})"]
    if description["size_from"] == "receive":
        sized = f"({kind}, receive_count, receive_type, comm)"
        forwards = f"interpose_forwards_sized{sized}"
        leaves.append(f"interpose_is_short{sized}")
    parameters = [PARAMETERS[argument] for argument in arguments]
    return _WRAPPER.substitute(
        decided_head=filled(f"static __attribute__((noinline)) int decided_{collective}(", parameters, ") {"),
        head=filled(f"int {function}(", parameters, ") {"),
        forwards=forwards,
        leaves=filled("    if (", leaves, ") {", " || "),
        repeated=repeated(arguments, kind),
        fields="\n".join(f"        .{argument} = {argument}," for argument in arguments),
        kind=kind,
        forward_status=filled(f"        status = P{function}(", arguments, ");"),
        forward=filled(f"        return P{function}(", arguments, ");"),
        decided=filled(f"    return decided_{collective}(", arguments, ");"),
    )


def buffer_initialiser(side: str, description: dict) -> str:
    """The description of the `send` or `receive` buffer, as the initialiser of an interpose_buffer."""
    arguments = description["arguments"]
    lengths = {f"{side}_count": "COUNT", f"{side}_displacements": "DISPLACEMENTS", f"{side}_counts": "COUNTS"}
    length = next((word for field, word in lengths.items() if field in arguments), "NONE")
    members = [f".length = INTERPOSE_LENGTH_{length}"]
    members += [f".{key} = 1" for key in ("root_only", "in_place") if description.get(key) == side]
    return f"{{{', '.join(members)}}}"


def signature(collective: str, description: dict) -> str:
    """The collective's entry in the table of signatures."""
    flags = [f".has_{argument} = 1" for argument in ("root", "op") if argument in description["arguments"]]
    members = [
        f'.function = "{function_of(collective)}"',
        *flags,
        f".send = {buffer_initialiser('send', description)}",
        f".receive = {buffer_initialiser('receive', description)}",
        f".size_from = INTERPOSE_SIZE_{description['size_from'].upper()}",
    ]
    lines = "".join(f"            {member},\n" for member in members)
    return f"    [{kind_of(collective)}] =\n        {{\n{lines}        }},"


def wrappers_source(catalogue: dict) -> str:
    """C source of the table of signatures and of every collective's MPI function."""
    return "\n".join(
        [
            _HEADER,
            '#include "interpose/fast_path.h"',
            "",
            "const interpose_signature interpose_signatures[COLLWISE_COLLECTIVES] = {",
            *(signature(collective, description) for collective, description in catalogue.items()),
            "};",
            *(f"\n{wrapper(collective, description)}".rstrip() for collective, description in catalogue.items()),
            "",
        ]
    )


# --- Functions that are counted ---------------------------------------------------------------------------------------

_NO_KIND = "COLLWISE_COLLECTIVES"
_PARAMETERS = PARAMETERS | {
    "send_types": "const MPI_Datatype send_types[]",
    "receive_types": "const MPI_Datatype receive_types[]",
    "info": "MPI_Info info",
    "request": "MPI_Request *request",
}
_LARGE = {name: f"MPI_Count {name}" for name in _SCALARS} | {
    name: f"const {'MPI_Aint' if name.endswith('displacements') else 'MPI_Count'} {name}[]" for name in _ARRAYS
}
# Every process has types of its own for each other one, so our algorithms do not apply.
_ALLTOALLW = (
    "send", "send_counts", "send_displacements", "send_types",
    "receive", "receive_counts", "receive_displacements", "receive_types", "comm",
)  # fmt: skip

_COUNTED = string.Template("""\
${head}
${small}    interpose_pending pending;
    interpose_begin(${number}, ${kind}, &(collwise_call){${fields}}, &pending);
${forward}
    interpose_finish(&pending);
    return status;
}
""")
_FORTRAN = string.Template("""\
${head}
${body}
}
${names}
""")


@dataclass(frozen=True)
class Function:
    """A function of MPI: its name in C without MPI_, its arguments, and what the report says of it."""

    name: str
    arguments: tuple[str, ...]
    title: str
    why: str
    kind: str = _NO_KIND

    @property
    def is_persistent(self) -> bool:
        """Whether the function makes a persistent request, as MPI 4 has them."""
        return self.name.endswith("_init")


def blocking(catalogue: Mapping[str, dict]) -> list[Function]:
    """The collectives that the library replaces, in the order of the catalogue."""
    return [
        Function(function_of(name)[4:], tuple(about["arguments"]), name, "", kind_of(name))
        for name, about in catalogue.items()
    ]


def counted(catalogue: Mapping[str, dict]) -> list[Function]:
    """The functions that the library counts only."""
    replaced = blocking(catalogue)
    alltoallw = Function("Alltoallw", _ALLTOALLW, "alltoallw", "not replaced")
    starting = [*replaced, alltoallw]
    nonblocking = [
        Function(f"I{of.name.lower()}", (*of.arguments, "request"), f"i{of.title}", "non-blocking", of.kind)
        for of in starting
    ]
    persistent = [
        Function(f"{of.name}_init", (*of.arguments, "info", "request"), f"{of.title}_init", "persistent", of.kind)
        for of in starting
    ]
    return [alltoallw, *nonblocking, *persistent]


def _known_fields(function: Function) -> list[str]:
    """The fields of collwise_call that a function which is only counted sets."""
    return ["comm"] if function.kind == _NO_KIND else [name for name in function.arguments if name in PARAMETERS]


def counted_source(function: Function, number: int, prefix: str = "MPI_") -> str:
    """A function that is counted and passed on."""
    name = f"{prefix}{function.name}"
    return _COUNTED.substitute(
        head=filled(f"int {name}(", [_PARAMETERS[argument] for argument in function.arguments], ") {"),
        small="",
        number=number,
        kind=function.kind,
        fields=", ".join(f".{field} = {field}" for field in _known_fields(function)),
        forward=filled(f"    int status = P{name}(", function.arguments, ");"),
    )


def large_source(function: Function, number: int) -> str:
    """A function with large counts: the ordinary one if they are small, else counted and passed on."""
    parameters = _PARAMETERS | _LARGE
    name = f"MPI_{function.name}"
    counts = [argument for argument in function.arguments if argument in _SCALARS]
    small = ""
    if counts and not any(argument in function.arguments for argument in _ARRAYS):
        fits = " && ".join(f"0 <= {count} && {count} <= INT_MAX" for count in counts)
        arguments = [f"(int){name}" if name in counts else name for name in function.arguments]
        small = f"    if ({fits}) {{\n{filled(f'        return {name}(', arguments, ');')}\n    }}"
    return _COUNTED.substitute(
        head=filled(f"int {name}_c(", [parameters[argument] for argument in function.arguments], ") {"),
        small=f"{small}\n",
        number=number,
        kind=_NO_KIND,
        fields=".comm = comm",
        forward=filled(f"    int status = P{name}_c(", function.arguments, ");"),
    )


def c_source(catalogue: Mapping[str, dict]) -> str:
    """C source of the table of functions and of all that are counted."""
    replaced, others = blocking(catalogue), counted(catalogue)
    large = [function for function in [*replaced, *others] if not _LARGE.keys().isdisjoint(function.arguments)]
    first_large = len(replaced) + len(others)
    names = [(function.title, function.why) for function in [*replaced, *others]]
    names += [(f"{function.title}_c", "a large count") for function in large]
    numbers = {function: len(replaced) + i for i, function in enumerate(others)}
    plain = [function for function in others if not function.is_persistent]
    persistent = [function for function in others if function.is_persistent]
    parts = [
        f"{_HEADER}\n",
        '#include "interpose/fast_path.h"\n\n#include <limits.h>\n',
        "const interpose_function interpose_functions[] = {",
        *(f'    {{"{title}", {f"{chr(34)}{why}{chr(34)}" if why else "NULL"}}},' for title, why in names),
        "};\n",
        *(counted_source(function, numbers[function]) for function in plain),
        "#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)\n",
        *(counted_source(function, numbers[function]) for function in persistent),
        "#elif defined(OPEN_MPI) && defined(__has_include)\n#if __has_include(<mpi-ext.h>)\n#include <mpi-ext.h>",
        "#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ\n",
        *(counted_source(function, numbers[function], "MPIX_") for function in persistent),
        "#endif\n#endif\n#endif\n\n#if MPI_VERSION >= 4\n",
        *(large_source(function, first_large + i) for i, function in enumerate(large)),
        "#endif",
    ]
    return "\n".join(parts) + "\n"


# --- Fortran ----------------------------------------------------------------------------------------------------------


_FROM_FORTRAN = {
    "send": "fortran_buffer({})",
    "receive": "fortran_buffer({})",
    "comm": "PMPI_Comm_f2c(*{})",
    "op": "PMPI_Op_f2c(*{})",
    "send_type": "PMPI_Type_f2c(*{})",
    "receive_type": "PMPI_Type_f2c(*{})",
    **dict.fromkeys((*_SCALARS, "root"), "*{}"),
    **dict.fromkeys(_ARRAYS, "{}"),
}


def _fortran_function(function: Function, body: str, prefix: str = "mpi") -> str:
    """A Fortran function, by the names that compilers of Fortran use, and the one that Open MPI's own modules do."""
    name = f"{prefix}_{function.name.lower()}"
    types = {"send": "void", "receive": "void"}
    parameters = [f"{types.get(argument, 'MPI_Fint')} *{argument}" for argument in (*function.arguments, "error")]
    names = (name, f"{name}__", name.upper(), f"o{name}_f")
    return _FORTRAN.substitute(
        head=filled(f"void {name}_(", parameters, ") {"),
        body=body,
        names="\n".join(f"FORTRAN_NAME({other}, {name}_, {', '.join(parameters)})" for other in names),
    )


def fortran_replaced(function: Function) -> str:
    """The Fortran function of a collective that the library replaces: it calls that of C."""
    arguments = [_FROM_FORTRAN[argument].format(argument) for argument in function.arguments]
    body = filled(f"    int status = MPI_{function.name}(", arguments, ");")
    return _fortran_function(function, f"{body}\n    if (error != NULL) {{\n        *error = status;\n    }}")


def fortran_counted(function: Function, number: int, prefix: str = "mpi") -> str:
    """The Fortran function of a collective that is only counted: it calls Open MPI's."""
    fields = ", ".join(f".{name} = {_FROM_FORTRAN[name].format(name)}" for name in _known_fields(function))
    arguments = ", ".join([*function.arguments, "error"])
    pointers = ", ".join(["void *"] * (len(function.arguments) + 1))
    body = f"""\
    static void *next;
    void (*forward)({pointers});
    interpose_pending pending;
    find_next(&next, "{f"o{prefix}_{function.name.lower()}_f"}", &forward);
    interpose_begin({number}, {function.kind}, &(collwise_call){{{fields}}}, &pending);
    forward({arguments});
    interpose_finish(&pending);"""
    return _fortran_function(function, body, prefix)


def fortran_source(catalogue: Mapping[str, dict]) -> str:
    """C source of Open MPI's Fortran functions, which call PMPI's and so never get to the library's C functions."""
    replaced, others = blocking(catalogue), counted(catalogue)
    numbers = {function: len(replaced) + i for i, function in enumerate(others)}
    parts = [
        f"{_HEADER}\n",
        '#include "interpose/fortran.h"\n',
        "#ifdef INTERPOSE_HAS_FORTRAN\n",
        *(fortran_replaced(function) for function in replaced),
        *(fortran_counted(function, numbers[function]) for function in others if not function.is_persistent),
        "#if OMPI_MAJOR_VERSION >= 5\n",
        *(fortran_counted(function, numbers[function]) for function in others if function.is_persistent),
        "#else\n",
        *(fortran_counted(function, numbers[function], "mpix") for function in others if function.is_persistent),
        "#endif\n\n#endif",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    parsed = tomllib.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for source, path in zip((wrappers_source, c_source, fortran_source), sys.argv[2:5], strict=True):
        Path(path).write_text(source(parsed), encoding="utf-8")
