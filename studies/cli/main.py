"""The command line: `collwise COMMAND`. Exit codes: 0 done, 1 a problem was found, 2 wrong usage."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

import click

from collwise.common.errors import CollwiseError, unknown_name

# Command name -> (module below collwise.studies.cli, attribute). Modules load when their command is called, so
# that a quick command does not wait for numpy or matplotlib.
_COMMANDS = {
    "demo": ("demo", "demo"),
    "test": ("maintenance", "test"),
    "setup": ("maintenance", "setup"),
    "studio": ("maintenance", "studio"),
    "platforms": ("platforms", "platforms"),
    "algorithms": ("algorithms", "algorithms"),
    "verify": ("verify", "verify"),
    "crosscheck": ("crosscheck", "crosscheck"),
    "simulate": ("simulate", "simulate"),
    "measure": ("measure", "measure"),
    "testbed": ("testbed", "testbed"),
    "import": ("importing", "import_times"),
    "regions": ("regions", "regions"),
    "gain": ("gain", "gain"),
    "calibrate": ("calibrate", "calibrate"),
    "experiment": ("experiment", "experiment"),
    "run": ("run", "run"),
    "models": ("coverage", "models"),
    "fit": ("fit", "fit"),
    "predict": ("predict", "predict"),
    "evaluate": ("evaluation", "evaluate"),
    "recover": ("evaluation", "recover"),
    "compare": ("comparison", "compare"),
    "select": ("comparison", "select"),
    "map": ("maps", "maps"),
    "mapping": ("mapping", "mapping"),
    "export": ("comparison", "export"),
    "report": ("comparison", "report"),
    "validate": ("validate", "validate"),
    "study": ("study", "study"),
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            raise unknown_name("command", cmd_name, _COMMANDS, "see 'collwise --help'")
        module_name, attribute = _COMMANDS[cmd_name]
        module = __import__(f"collwise.studies.cli.{module_name}", fromlist=[attribute])
        command: click.Command = getattr(module, attribute)
        return command


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="collwise", message="collwise %(version)s")
def collwise() -> None:
    """Chooses MPI collective algorithms before the hardware run.

    Start with 'collwise demo': two real clusters, simulated and modelled, and the rules that Open MPI reads.
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


def _fail(message: str, code: int) -> None:
    one_line = " ".join(message.split())
    click.echo(f"collwise: {one_line}", err=True)
    sys.exit(code)
