"""The command line: `collwise COMMAND`. Exit codes: 0 done, 1 a problem was found, 2 wrong usage."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Sequence

import click

from collwise.common.errors import CollwiseError, nearest
from collwise.common.program import __version__, as_called, program_name
from collwise.studies.cli.commands import COMPLETION_VARIABLE, AllCommands, example

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


_HELP = """Chooses MPI collective algorithms for a cluster by simulation, before anything runs there.

Start with 'collwise demo': it tunes a simulated copy of a real cluster, and writes the rules that Open MPI reads.
'collwise help COMMAND' describes a command and its options.
Sizes are written 8KiB or 8KiB:4MiB:x2, process counts 50,80,90 or 10:90:+10.
"""


@click.group(
    cls=AllCommands,
    help=as_called(_HELP),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=example("demo"),
)
@click.version_option(__version__, message="collwise %(version)s")
def collwise() -> None:
    """The command line."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line; every error becomes one line on stderr and an exit code."""
    # Batch systems and timeouts end commands with these signals, which must also end the processes of the command.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves it
            signal.signal(number, signal.default_int_handler)
    try:
        code = collwise.main(
            args=arguments, prog_name=program_name(), complete_var=COMPLETION_VARIABLE, standalone_mode=False
        )
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except CollwiseError as problem:
        _fail(str(problem), problem.exit_code)
    except click.exceptions.NoArgsIsHelpError as problem:
        click.echo(problem.format_message())
        sys.exit(2)
    except click.NoSuchOption as problem:
        # All options begin with dashes, which would make any two similar.
        options = {name.lstrip("-"): name for name in problem.possibilities or ()}
        names = [options[name] for name in nearest(problem.option_name.lstrip("-"), options)]
        near = click.NoSuchOption(problem.option_name, problem.message, names, problem.ctx)
        _fail(near.format_message(), 2)
    except click.ClickException as problem:
        _fail(problem.format_message(), 2)
    except (click.Abort, KeyboardInterrupt) as problem:
        if isinstance(problem, click.Abort) and problem.__cause__ is None:
            _fail("stopped at a question", 130)
        _fail(f"stopped{_resuming(sys.argv[1:] if arguments is None else arguments)}", 130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as problem:
        if problem.errno not in _FULL:
            raise
        # The rest of the buffer would fail again when the interpreter exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _fail(f"cannot write {problem.filename or 'the output'}: {problem.strerror}", 2)


def _resuming(arguments: Sequence[str]) -> str:
    """The end of a stopped command's message, if the command has --store and so keeps finished cases."""
    command: click.Command | None = collwise
    for word in arguments:
        if isinstance(command, click.Group) and not word.startswith("-"):
            command = command.get_command(click.Context(command), word)
    keeps = command is not None and any(param.name == "store" for param in command.params)
    return "; finished cases are in the store; the same command resumes there" if keeps else ""


def _fail(message: str, code: int) -> None:
    one_line = as_called(" ".join(message.split()))
    click.echo(f"collwise: {one_line}", err=True)
    sys.exit(code)
