"""The table of commands, and groups of commands. Nothing heavy is imported: the list of commands needs no more."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from itertools import takewhile
from typing import Any, NamedTuple

import click

from collwise.common.errors import unknown_name
from collwise.common.folders import cache_folder
from collwise.common.program import program_name


class Command(NamedTuple):
    """A command's line in the list of commands, and the system packages it cannot do without."""

    summary: str
    needs: str


# The launcher reads `needs` from the lines of this table, before there is a Python environment. It names groups of
# system packages (build, smpi, openmpi, mpich, testbed, slurm, engine, style); `collwise` says what is in each.
# "smpi" is always needed, "--check:build+openmpi" only with that option, "--by=simulated:smpi" only with that value,
# "!--library:smpi" only without that option.
SECTIONS = {
    "Main path": {
        "demo": Command("Does the main job on two real clusters in a few minutes.", needs="build smpi openmpi"),
        "show": Command("Shows models and what is known of them.", needs=""),
        "algorithms": Command("Lists collectives and their algorithms.", needs=""),
        "simulate": Command("Simulates algorithms at every P, m and segment size.", needs="build smpi"),
        "schedule": Command("Shows an algorithm's messages and what decides its time.", needs="build"),
        "compare": Command("Compares the best with a model's and a library's picks.", needs="build smpi"),
        "defaults": Command("Shows what untuned MPI libraries run.", needs="--check:build"),
        "decision-map": Command("Draws maps of the best method and of models' slowdowns.", needs="build smpi"),
        "select": Command(
            "Makes decision tables of the algorithm for each P and m.",
            needs="--by=simulated:build+smpi --fill=simulated:build+smpi",
        ),
        "export": Command("Writes decision tables as rules that MPI libraries read.", needs="--check:build+openmpi"),
        "whatif": Command("Shows which choices and times change if a platform does.", needs="build --engine=smpi:smpi"),
        "sweep": Command("Finds the factors of a change where the choice changes.", needs="build --engine=smpi:smpi"),
        "hierarchy": Command(
            "Tunes hierarchical collectives by their tasks.",
            needs="build smpi --library=openmpi:openmpi --library=mpich:mpich --testbed:openmpi+testbed",
        ),
        "report": Command("Writes an HTML report and rules for one platform.", needs="build smpi"),
        "program": Command(
            "Runs programs with our algorithms, and says what these save.",
            needs="build --library=smpi:smpi --library=openmpi:openmpi --library=mpich:mpich --engine=smpi:smpi apply:smpi gain:openmpi --testbed:testbed",  # noqa: E501
        ),
    },
    "Platforms": {
        "platforms": Command("Lists, checks and writes descriptions of clusters.", needs="check:build+smpi"),
        "calibrate": Command(
            "Fits a platform to measured or published times.", needs="build --published:smpi --testbed:openmpi+testbed"
        ),
        "testbed": Command(
            "Makes a cluster in this machine: real MPI over real TCP.", needs="build openmpi testbed --slurm:slurm"
        ),
    },
    "Models": {
        "fit": Command(
            "Estimates the parameters of models from experiments.",
            needs="build --platform:smpi --library=mpich:mpich --testbed:openmpi+testbed",
        ),
        "predict": Command("Evaluates models over arrays of P and m.", needs=""),
        "evaluate": Command("Scores models against simulated times.", needs="build smpi"),
        "rank-mapping": Command("Finds the best ranks for nodes in a binomial tree.", needs="build smpi"),
    },
    "Measuring": {
        "measure": Command(
            "Measures our algorithms under Open MPI or MPICH.",
            needs="build --library=mpich:mpich --testbed:openmpi+testbed",
        ),
        "search": Command(
            "Measures where the choice is in doubt, within a budget.",
            needs="build --library=mpich:mpich --testbed:openmpi+testbed --engine=smpi:smpi",
        ),
        "times": Command("Lists, shows, deletes and imports stored times.", needs=""),
        "experiment": Command(
            "Makes single experiments between a few processes.",
            needs="build --platform:smpi --library=mpich:mpich --testbed:openmpi+testbed",
        ),
        "irregular-regions": Command(
            "Finds where linear gather and scatter are irregular.",
            needs="build --library=mpich:mpich --testbed:openmpi+testbed",
        ),
        "guidelines": Command(
            "Checks and repairs performance guidelines of MPI libraries.",
            needs="build simulate:smpi decisions:smpi measure:openmpi --library=mpich:mpich --testbed:openmpi+testbed",
        ),
    },
    "Checking": {
        "check": Command("Checks collwise's own parts against what is known to be true.", needs="recovery:build+smpi"),
        "verify": Command(
            "Runs every algorithm on real data and checks the results.",
            needs="build !--library:smpi --library=smpi:smpi --library=openmpi:openmpi --library=mpich:mpich --testbed:openmpi+testbed",  # noqa: E501
        ),
        "crosscheck": Command(
            "Compares our algorithms with SMPI's and Open MPI's own.",
            needs="build !--library=openmpi:smpi !--library=smpi:openmpi",
        ),
        "validate": Command(
            "Compares predicted, simulated and measured times.", needs="build smpi openmpi --testbed:testbed"
        ),
        "study": Command("Runs a paper's study as a notebook.", needs="build smpi"),
    },
    "Maintenance": {
        "init": Command("Makes a project: one store for a folder and all below it.", needs=""),
        "setup": Command("Checks the set-up, or builds a newer SimGrid.", needs="build --simgrid:engine"),
        "test": Command("Runs the tests.", needs="build smpi openmpi mpich style"),
        "studio": Command("Opens JupyterLab on the studies' notebooks.", needs=""),
        "completion": Command("Prints a script by which a shell completes commands.", needs=""),
        "schema": Command("Prints the JSON Schema of what --json prints.", needs=""),
        "help": Command("Shows what a command does and takes.", needs=""),
    },
}
COMPLETION_VARIABLE = "_COLLWISE_COMPLETE"
"""A shell that completes a command line sets it (collwise completion); the launcher then sets nothing up."""
_MODULES = {
    "algorithms": "schedule defaults",
    "compare": "decision-map",
    "evaluation": "evaluate rank-mapping",
    "experiment": "irregular-regions",
    "fit": "predict",
    "maintenance": "init setup test studio completion schema help",
    "report": "demo study",
    "select": "export",
    "simulate": "measure search",
    "validate": "calibrate",
    "verify": "crosscheck",
    "whatif": "sweep",
}
"""The commands that are in a module of collwise.studies.cli of another name than their own.

A module loads when a command is called, so that neither the list nor a quick command waits for numpy or matplotlib.
"""
COMMANDS = {name: command for section in SECTIONS.values() for name, command in section.items()}
"""Every command by name, in the order of the help."""
WORDS = "collwise.words"
"""The key in click's context under which the words of the command line are kept."""


def required_groups(command: str, words: Sequence[str]) -> list[str]:
    """The groups of system packages that a command cannot do without, called with these words.

    The launcher reads the table in the same way.
    """
    own = [*takewhile(lambda word: word != "--", words)]
    said = f" {' '.join(own)} ".replace("=", " ")
    groups: list[str] = []
    for need in COMMANDS[command].needs.split():
        condition, _, needed = need.rpartition(":")
        condition = condition.replace("=", " ")
        is_said = f" {condition.removeprefix('!')} " in said
        if not condition or is_said != condition.startswith("!"):
            groups += needed.split("+")
    # The schedule engine needs no simulator, and a SimGrid from 'collwise setup --simgrid VERSION' is one.
    needs_no_packages = " --engine schedule " in said or any(cache_folder().glob("simgrid-*/.complete"))
    return [group for group in groups if group != "smpi" or not needs_no_packages]


def example(words: str) -> str:
    """The last line of a command's help, for its `epilog`. tests/studies/cli/test_examples.py runs or parses it."""
    return f"\b\nExample: {program_name()} {words}"


class CommandGroup(click.Group):
    """A command with subcommands, which names the near ones for a name that it does not have."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds a subcommand. Raises UsageError, with the near names, for an unknown one."""
        self.check_name(ctx, args[0])
        return super().resolve_command(ctx, args)

    def check_name(self, ctx: click.Context, name: str) -> None:
        """Raises UsageError, with the near names, unless there is a subcommand of this name."""
        names = self.list_commands(ctx)
        if name not in names and not name.startswith("-"):
            kind = "command" if ctx.parent is None else f"{ctx.info_name} command"
            raise unknown_name(kind, name, names, f"see '{ctx.command_path} --help'")


class AllCommands(CommandGroup):
    """The commands of the table; each loads when it is called."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of a command line, which also keeps its words."""
        words = tuple(args)
        context = super().make_context(info_name, args, parent, **extra)
        context.meta[WORDS] = words
        return context

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, or None."""
        if cmd_name not in COMMANDS:
            return None
        home = next((module for module, names in _MODULES.items() if cmd_name in names.split()), cmd_name)
        known = vars(import_module(f"collwise.studies.cli.{home.replace('-', '_')}")).values()
        return next(one for one in known if isinstance(one, click.Command) and one.name == cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the summaries by section."""
        # One width for all sections, so that their summaries start in one column.
        widest = max(map(len, COMMANDS))
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), entry.summary) for name, entry in section.items()])
