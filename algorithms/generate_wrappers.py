"""Writes the functions of the interposing library, from catalogue.toml and the pieces of C in generate_wrappers.in.

There are four C sources: tables of all these functions; the MPI functions that the library replaces; the MPI functions
whose calls are counted and passed on (the non-blocking and persistent forms of every collective, MPI_Alltoallw, and
functions with large counts, which call the ordinary function if the counts fit an int); and Fortran functions for Open
MPI, since Open MPI's own call PMPI functions and so would not reach the library's C functions. The build runs this file
as generate_wrappers.py CATALOGUE TABLES WRAPPERS COUNTED FORTRAN. It uses only the standard library.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template

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
_OTHER_PARAMETERS = {
    "send_types": "const MPI_Datatype send_types[]",
    "receive_types": "const MPI_Datatype receive_types[]",
    "info": "MPI_Info info",
    "request": "MPI_Request *request",
}
_LARGE = {name: f"MPI_Count {name}" for name in _SCALARS} | {
    name: f"const {'MPI_Aint' if name.endswith('displacements') else 'MPI_Count'} {name}[]" for name in _ARRAYS
}
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
# In MPI_Alltoallw each process has a separate datatype for every other process, so our algorithms do not apply.
_ALLTOALLW = (
    "send", "send_counts", "send_displacements", "send_types",
    "receive", "receive_counts", "receive_displacements", "receive_types", "comm",
)  # fmt: skip
_NO_KIND = "COLLWISE_COLLECTIVES"

_PIECES = Path(__file__).with_suffix(".in").read_text(encoding="utf-8").split("@@ ")[1:]
_TEMPLATES = {name: Template(text) for name, _, text in (piece.partition("\n") for piece in _PIECES)}


def filled(start: str, words: Sequence[str], end: str, joint: str = ", ") -> str:
    """Joins the start, the words and the end; a line that would be too long continues below the first word."""
    lines, line = [], start
    for word in [*(f"{word}{joint}" for word in words[:-1]), words[-1] + end]:
        if len(line + word.rstrip()) > LINE_LENGTH:
            lines.append(line.rstrip())
            line = " " * len(start)
        line += word
    return "\n".join([*lines, line])


def kind_of(collective: str) -> str:
    """The collective's enumerator in collwise.h."""
    return f"COLLWISE_{collective.upper()}"


# --- Functions that are replaced --------------------------------------------------------------------------------------


def repeated(arguments: Sequence[str], kind: str) -> str:
    """C code that repeats the stored call if the new call equals it; empty if the counts are arrays."""
    if any(argument in _ARRAYS for argument in arguments):
        return ""
    buffers = [name for name in ("send", "receive") if name in arguments]
    equal = [f"last->call.{name} == {name}" for name in arguments if name not in (*buffers, "comm")]
    alike = [f"interpose_is_same(last->call.{name}, {name})" for name in buffers]
    conditions = ["last != NULL", "last->algorithm != NULL", *equal, *alike]
    return _TEMPLATES["repeated"].substitute(
        kind=kind,
        repeats=filled("    if (", conditions, ") {", " && "),
        sets="\n".join(f"        last->call.{name} = {name};" for name in buffers),
    )


def wrapper(collective: str, description: dict) -> str:
    """The MPI function that programs call; it runs one of our algorithms or the MPI library's own function."""
    arguments, kind, function = description["arguments"], kind_of(collective), f"MPI_{collective.capitalize()}"
    forwards, leaves = f"interpose_forwards({kind}, comm)", [f"!interpose_watches({kind})"]
    if description["size_from"] == "receive":
        sized = f"({kind}, receive_count, receive_type, comm)"
        forwards = f"interpose_forwards_sized{sized}"
        leaves.append(f"interpose_is_short{sized}")
    parameters = [PARAMETERS[argument] for argument in arguments]
    return _TEMPLATES["wrapper"].substitute(
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


def _buffer(side: str, description: dict) -> str:
    """The description of the `send` or `receive` buffer, as the initialiser of an interpose_buffer."""
    lengths = {f"{side}_count": "COUNT", f"{side}_displacements": "DISPLACEMENTS", f"{side}_counts": "COUNTS"}
    length = next((word for field, word in lengths.items() if field in description["arguments"]), "NONE")
    members = [f".length = INTERPOSE_LENGTH_{length}"]
    members += [f".{key} = 1" for key in ("root_only", "in_place") if description.get(key) == side]
    return f"{{{', '.join(members)}}}"


def _signature(collective: str, description: dict) -> str:
    """The collective's entry in the table of signatures."""
    members = [
        f'.function = "MPI_{collective.capitalize()}"',
        *(f".has_{argument} = 1" for argument in ("root", "op") if argument in description["arguments"]),
        *(f".{side} = {_buffer(side, description)}" for side in ("send", "receive")),
        f".size_from = INTERPOSE_SIZE_{description['size_from'].upper()}",
    ]
    lines = "\n".join(f"            {member}," for member in members)
    return _TEMPLATES["signature"].substitute(kind=kind_of(collective), members=lines)


def wrappers_source(catalogue: dict) -> str:
    """C source of every collective's MPI function."""
    functions = "\n".join(wrapper(*entry) for entry in catalogue.items())
    return _TEMPLATES["wrappers"].substitute(functions=functions.rstrip())


# --- Functions that are counted ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Function:
    """An MPI function: its name in C without MPI_, its arguments, and two texts for the report.

    `why` is the reason why the function is not replaced; it is empty if the function is replaced. `number` is its index
    in the table of functions; `ending` is "_c" if its counts are large.
    """

    name: str
    arguments: tuple[str, ...]
    title: str
    why: str
    kind: str = _NO_KIND
    ending: str = ""
    number: int = 0

    @property
    def entry(self) -> str:
        """The function's entry in the table of functions."""
        return f'    {{"{self.title}", {f"{chr(34)}{self.why}{chr(34)}" if self.why else "NULL"}}},'

    def fields(self, form: Mapping[str, str]) -> str:
        """The initialisers of a collwise_call, one per argument of the function; only `comm` if `kind` is not set."""
        known = ["comm"] if self.kind == _NO_KIND else [name for name in self.arguments if name in PARAMETERS]
        return ", ".join(f".{name} = {form.get(name, '{}').format(name)}" for name in known)


def functions_of(catalogue: Mapping[str, dict]) -> tuple[list[Function], ...]:
    """The functions that the library replaces, then the plain, persistent and large-count ones that it counts."""
    of_catalogue = ((name, tuple(about["arguments"])) for name, about in catalogue.items())
    replaced = [Function(name.capitalize(), arguments, name, "", kind_of(name)) for name, arguments in of_catalogue]
    alltoallw = Function("Alltoallw", _ALLTOALLW, "alltoallw", "not replaced")
    starting = [*replaced, alltoallw]
    plain = [
        Function(f"I{of.name.lower()}", (*of.arguments, "request"), f"i{of.title}", "non-blocking", of.kind)
        for of in starting
    ]
    persistent = [
        Function(f"{of.name}_init", (*of.arguments, "info", "request"), f"{of.title}_init", "persistent", of.kind)
        for of in starting
    ]
    large = [
        replace(of, title=f"{of.title}_c", why="a large count", kind=_NO_KIND, ending="_c")
        for of in (*starting, *plain, *persistent)
        if not _LARGE.keys().isdisjoint(of.arguments)
    ]
    groups, number = [], 0
    for group in (replaced, [alltoallw, *plain], persistent, large):
        groups.append([replace(of, number=number + place) for place, of in enumerate(group)])
        number += len(group)
    return tuple(groups)


def _counted(function: Function, prefix: str = "MPI_") -> str:
    """A function that counts its calls and passes them on, to the ordinary function if large counts fit an int."""
    parameters = PARAMETERS | _OTHER_PARAMETERS | (_LARGE if function.ending else {})
    name = f"{prefix}{function.name}{function.ending}"
    return _TEMPLATES["counted_function"].substitute(
        head=filled(f"int {name}(", [parameters[argument] for argument in function.arguments], ") {"),
        small=_with_small_counts(function) if function.ending else "",
        number=function.number,
        kind=function.kind,
        fields=function.fields({}),
        forward=filled(f"    int status = P{name}(", function.arguments, ");"),
    )


def _with_small_counts(function: Function) -> str:
    """C code that calls the ordinary function if the counts fit an int; an empty line if the counts are arrays."""
    counts = [argument for argument in function.arguments if argument in _SCALARS]
    if not counts or any(argument in function.arguments for argument in _ARRAYS):
        return "\n"
    arguments = [f"(int){name}" if name in counts else name for name in function.arguments]
    return _TEMPLATES["small"].substitute(
        fits=" && ".join(f"0 <= {count} && {count} <= INT_MAX" for count in counts),
        call=filled(f"        return MPI_{function.name}(", arguments, ");"),
    )


def tables_source(catalogue: dict) -> str:
    """C source of the tables: the signature of every collective, and the functions that are replaced or counted."""
    return _TEMPLATES["tables"].substitute(
        signatures="".join(_signature(*entry) for entry in catalogue.items()).rstrip(),
        table="\n".join(function.entry for group in functions_of(catalogue) for function in group),
    )


def c_source(catalogue: Mapping[str, dict]) -> str:
    """C source of all functions that are counted."""
    _, plain, persistent, large = functions_of(catalogue)
    return _TEMPLATES["counted"].substitute(
        plain="\n".join(map(_counted, plain)),
        persistent="\n".join(map(_counted, persistent)),
        persistent_extension="\n".join(_counted(function, "MPIX_") for function in persistent),
        large="\n".join(map(_counted, large)),
    )


# --- Fortran ----------------------------------------------------------------------------------------------------------


def _fortran(function: Function, body: str, prefix: str = "mpi") -> str:
    """A Fortran function under the names that compilers give it, and under its name in Open MPI's modules."""
    name = f"{prefix}_{function.name.lower()}"
    types = {"send": "void", "receive": "void"}
    parameters = [f"{types.get(argument, 'MPI_Fint')} *{argument}" for argument in (*function.arguments, "error")]
    names = (name, f"{name}__", name.upper(), f"o{name}_f")
    return _TEMPLATES["fortran_function"].substitute(
        head=filled(f"void {name}_(", parameters, ") {"),
        body=body.rstrip(),
        names="\n".join(f"FORTRAN_NAME({other}, {name}_, {', '.join(parameters)})" for other in names),
    )


def _fortran_replaced(function: Function) -> str:
    """The Fortran function of a collective that the library replaces; it calls the C function."""
    arguments = [_FROM_FORTRAN[argument].format(argument) for argument in function.arguments]
    call = filled(f"    int status = MPI_{function.name}(", arguments, ");")
    return _fortran(function, _TEMPLATES["fortran_replaced"].substitute(call=call))


def _fortran_counted(function: Function, prefix: str = "mpi") -> str:
    """The Fortran function of a collective that is only counted; it calls Open MPI's Fortran function."""
    body = _TEMPLATES["fortran_counted"].substitute(
        name=f"{prefix}_{function.name.lower()}",
        number=function.number,
        kind=function.kind,
        fields=function.fields(_FROM_FORTRAN),
        arguments=", ".join([*function.arguments, "error"]),
        pointers=", ".join(["void *"] * (len(function.arguments) + 1)),
    )
    return _fortran(function, body, prefix)


def fortran_source(catalogue: Mapping[str, dict]) -> str:
    """C source of Open MPI's Fortran functions."""
    replaced, plain, persistent, _ = functions_of(catalogue)
    return _TEMPLATES["fortran"].substitute(
        replaced="\n".join(map(_fortran_replaced, replaced)),
        plain="\n".join(map(_fortran_counted, plain)),
        persistent="\n".join(map(_fortran_counted, persistent)),
        persistent_extension="\n".join(_fortran_counted(function, "mpix") for function in persistent),
    )


if __name__ == "__main__":
    parsed = tomllib.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for source, path in zip((tables_source, wrappers_source, c_source, fortran_source), sys.argv[2:6], strict=True):
        Path(path).write_text(source(parsed), encoding="utf-8")
