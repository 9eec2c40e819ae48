"""The command line: `collwise COMMAND`. Exit codes: 0 done, 1 a problem was found, 2 wrong usage."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Sequence
from typing import NamedTuple

import click

from collwise.common.errors import CollwiseError, unknown_name


class _Command(NamedTuple):
    """Where a command is defined, and what it cannot do without.

    The module is one of collwise.studies.cli and loads when the command is called, so that a quick command does
    not wait for numpy or matplotlib.
    """

    module: str
    attribute: str
    needs: str


# The launcher reads `needs` from the lines of this table, before there is a Python environment. It names groups of
# system packages (build, smpi, openmpi, mpich, testbed, engine, style); `collwise` says what is in each.
# "smpi" is always needed, "--check:build+openmpi" only with that option, "--by=simulation:smpi" only with that value,
# "!--engines:smpi" only without that option.
_SECTIONS = {
    "Main path": {
        "demo": _Command("demo", "demo", needs="build smpi openmpi"),
        "algorithms": _Command("algorithms", "algorithms", needs=""),
        "simulate": _Command("simulate", "simulate", needs="build smpi"),
        "compare": _Command("comparison", "compare", needs="build smpi"),
        "map": _Command("decision_map", "maps", needs="build smpi"),
        "select": _Command("comparison", "select", needs="--by=simulation:build+smpi"),
        "export": _Command("comparison", "export", needs="--check:build+openmpi"),
        "report": _Command("comparison", "report", needs="build smpi"),
        "run": _Command("run", "run", needs="build --engine=smpi:smpi --engine=openmpi:openmpi --engine=mpich:mpich"),
    },
    "Platforms": {
        "platforms": _Command("platforms", "platforms", needs="check:build+smpi calibrate:build+smpi"),
        "calibrate": _Command("calibrate", "calibrate", needs="build smpi --testbed:openmpi+testbed"),
        "testbed": _Command("testbed", "testbed", needs="build openmpi testbed"),
    },
    "Models": {
        "models": _Command("coverage", "models", needs=""),
        "fit": _Command("fit", "fit", needs="build --platform:smpi --library=mpich:mpich --testbed:openmpi+testbed"),
        "predict": _Command("predict", "predict", needs=""),
        "evaluate": _Command("evaluation", "evaluate", needs="build smpi"),
        "recover": _Command("evaluation", "recover", needs="build smpi"),
        "mapping": _Command("rank_mapping", "mapping", needs="build smpi"),
    },
    "Measuring": {
        "measure": _Command("measure", "measure", needs="build --library=mpich:mpich --testbed:openmpi+testbed"),
        "import": _Command("import_times", "import_times", needs=""),
        "experiment": _Command(
            "experiment", "experiment", needs="build --platform:smpi --library=mpich:mpich --testbed:openmpi+testbed"
        ),
        "regions": _Command(
            "irregular_regions", "regions", needs="build --library=mpich:mpich --testbed:openmpi+testbed"
        ),
        "gain": _Command("gain", "gain", needs="build openmpi --platform:smpi --testbed:testbed"),
    },
    "Checking": {
        "verify": _Command("verify", "verify", needs="build !--engines:smpi"),
        "crosscheck": _Command("crosscheck", "crosscheck", needs="build !--engine=openmpi:smpi !--engine=smpi:openmpi"),
        "validate": _Command("validate", "validate", needs="build smpi openmpi testbed"),
        "study": _Command("study", "study", needs="build smpi"),
    },
    "Maintenance": {
        "setup": _Command("maintenance", "setup", needs="build --simgrid:engine"),
        "test": _Command("maintenance", "test", needs="build smpi openmpi mpich style"),
        "studio": _Command("maintenance", "studio", needs=""),
        "help": _Command("maintenance", "show_help", needs=""),
    },
}
COMMANDS = {name: command for section in _SECTIONS.values() for name, command in section.items()}
"""Every command by name, in the order of the help."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            raise unknown_name("command", cmd_name, COMMANDS, "see 'collwise --help'")
        entry = COMMANDS[cmd_name]
        module = __import__(f"collwise.studies.cli.{entry.module}", fromlist=[entry.attribute])
        command: click.Command = getattr(module, entry.attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # One width for all sections, so that their descriptions start in one column.
        widest = max(map(len, COMMANDS))
        limit = formatter.width - 6 - widest
        for title, section in _SECTIONS.items():
            rows = []
            for name in section:
                command = self.get_command(ctx, name)
                assert command is not None
                rows.append((name.ljust(widest), command.get_short_help_str(limit)))
            with formatter.section(title):
                formatter.write_dl(rows)


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="collwise", message="collwise %(version)s")
def collwise() -> None:
    """Chooses MPI collective algorithms before the hardware run.

    Start with 'collwise demo': two real clusters, simulated and modelled, and the rules that Open MPI reads.
    'collwise help COMMAND' says what a command does and takes.
    Sizes are written 8KiB or 8KiB:4MiB:x2, process counts 50,80,90 or 10:90:+10.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line; every error becomes one line on stderr and an exit code."""
    # Batch systems and timeouts end commands so; what runs under them has to end, too.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves it
            signal.signal(number, signal.default_int_handler)
    try:
        code = collwise.main(args=arguments, prog_name="collwise", standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except CollwiseError as problem:
        _fail(str(problem), problem.exit_code)
    except click.exceptions.NoArgsIsHelpError as problem:
        click.echo(problem.format_message())
        sys.exit(2)
    except click.ClickException as problem:
        _fail(problem.format_message(), 2)
    except (click.Abort, KeyboardInterrupt):
        _fail("stopped; finished cases are kept, the same command goes on from there", 130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as problem:
        if problem.errno not in _FULL:
            raise
        # What is left in the buffer would fail once more at the interpreter's end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _fail(f"cannot write {problem.filename or 'the output'}: {problem.strerror}", 2)


def _fail(message: str, code: int) -> None:
    one_line = " ".join(message.split())
    click.echo(f"collwise: {one_line}", err=True)
    sys.exit(code)
