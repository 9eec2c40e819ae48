"""The command line: `collwise COMMAND`. Exit codes: 0 done, 1 a problem was found, 2 wrong usage."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

import click

from collwise.common.errors import CollwiseError, unknown_name

# Command name -> (module below collwise.studies.cli, attribute, line of `collwise --help`). A module is imported
# when its command is called, so that a quick command does not wait for numpy, and `collwise --help` waits for none.
_COMMANDS = {
    "demo": ("demo", "demo", "The main job on two real clusters: choices, costs and rules"),
    "test": ("maintenance", "test", "Runs the tests; more arguments go to pytest"),
    "setup": ("maintenance", "setup", "Checks the set-up, or builds a newer SimGrid"),
    "studio": ("maintenance", "studio", "Opens JupyterLab on the notebooks of the studies"),
    "platforms": ("platforms", "platforms", "Clusters that are described here, and checks of your own"),
    "algorithms": ("algorithms", "algorithms", "Every collective and algorithm, with parameters and requirements"),
    "verify": ("verify", "verify", "Runs every algorithm on real data and checks the result"),
    "crosscheck": ("crosscheck", "crosscheck", "Compares our algorithms with the same ones that others wrote"),
    "simulate": ("simulate", "simulate", "Simulates every algorithm at every P, m and segment size"),
    "measure": ("measure", "measure", "Measures algorithms under Open MPI or MPICH"),
    "testbed": ("testbed", "testbed", "A cluster in this machine: real MPI over a real TCP network"),
    "import": ("importing", "import_times", "Reads times that were measured elsewhere into the store"),
    "regions": ("regions", "regions", "Looks for the escalation of linear gather, the leap of scatter"),
    "gain": ("gain", "gain", "Measures a decision table against Open MPI's own decisions"),
    "calibrate": ("calibrate", "calibrate", "Writes a platform from messages measured between two nodes"),
    "experiment": ("experiment", "experiment", "Makes experiments between a few processes"),
    "run": ("run", "run", "Runs an MPI program with our algorithms"),
    "models": ("coverage", "models", "Every model of collectives, and what it has formulas for"),
    "fit": ("fit", "fit", "Estimates the parameters of models from experiments"),
    "predict": ("predict", "predict", "Evaluates models over arrays of P and m at once"),
    "evaluate": ("evaluation", "evaluate", "Scores models: predicted against simulated times"),
    "recover": ("evaluation", "recover", "Estimates by every procedure what a platform's description says"),
    "compare": ("comparison", "compare", "For each P and m: the best algorithm, and what each choice costs"),
    "select": ("comparison", "select", "Makes decision tables: which algorithm for each P and m"),
    "map": ("maps", "maps", "The best method over m and P, by simulation and by models"),
    "mapping": ("mapping", "mapping", "Finds the best mapping of nodes to ranks for a binomial tree"),
    "export": ("comparison", "export", "Writes rules that an MPI library reads"),
    "report": ("comparison", "report", "The main job for one platform: an HTML report and rules"),
    "validate": ("validate", "validate", "Compares predicted, simulated and measured times on a test bed"),
    "study": ("study", "study", "Runs a study's notebook"),
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            raise unknown_name("command", cmd_name, _COMMANDS, "see 'collwise --help'")
        module_name, attribute, _ = _COMMANDS[cmd_name]
        module = __import__(f"collwise.studies.cli.{module_name}", fromlist=[attribute])
        command: click.Command = getattr(module, attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, _, summary) in _COMMANDS.items()])


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
