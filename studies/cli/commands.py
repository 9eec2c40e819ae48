"""The table of commands, and groups of commands. It imports nothing heavy, so that the list of commands is quick."""

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
    """A command's line in the list of commands, and its needs, whose notation is explained below."""

    summary: str
    needs: str


class Subcommand(NamedTuple):
    """A subcommand whose needs differ from its group's."""

    needs: str


# The launcher reads `needs` from the lines of these tables, before there is a Python environment. It names groups of
# system packages (build, smpi, openmpi, mpich, testbed, slurm, engine; `collwise` lists each group's packages)
# and extras of Python packages (notebooks, studio, test). A group without a condition is always needed. The condition
# stands before a colon: "--check:build+openmpi" applies only with --check, "--library=smpi:smpi" only with the value
# smpi, "!--library:smpi" only without --library, and "--check&!--csv:smpi" only with --check and without --csv. A group
# after "?" is optional: it is installed in a clone where that is possible, and the command works without it.
SUBCOMMANDS = {
    "check algorithms": Subcommand(
        needs="build !--library:smpi+?openmpi+?mpich --library=smpi:smpi --library=openmpi:openmpi --library=mpich:mpich --testbed:openmpi+testbed"  # noqa: E501
    ),
    "check machines": Subcommand(needs="build --engine=smpi:smpi"),
    "check others": Subcommand(needs="build !--library=openmpi:smpi !--library=smpi:openmpi"),
    "check recovery": Subcommand(needs="build smpi"),
    "check study": Subcommand(needs="build smpi notebooks"),
    "check three-way": Subcommand(needs="build smpi openmpi --testbed:testbed"),
    "platforms calibrate": Subcommand(
        needs="build --published:smpi !--published&!--library=mpich:openmpi --library=mpich:mpich --testbed:openmpi+testbed"  # noqa: E501
    ),
    "platforms show": Subcommand(needs="--check:build+smpi"),
    "platforms experiment": Subcommand(
        needs="build --platform:smpi !--platform&!--library=mpich:openmpi --library=openmpi:openmpi --library=mpich:mpich --testbed:openmpi+testbed"  # noqa: E501
    ),
    "platforms ranks": Subcommand(needs="build smpi"),
    "platforms thresholds": Subcommand(
        needs="build !--library=mpich:openmpi --library=mpich:mpich --testbed:openmpi+testbed"
    ),
    "search algorithms": Subcommand(
        needs="build !--library=mpich:openmpi --library=mpich:mpich --testbed:openmpi+testbed --engine=smpi:smpi"
    ),
    "search tasks": Subcommand(
        needs="build smpi --library=openmpi:openmpi --library=mpich:mpich --testbed:openmpi+testbed"
    ),
    "setup completion": Subcommand(needs=""),
    "setup project": Subcommand(needs=""),
    "setup schema": Subcommand(needs=""),
    "setup test": Subcommand(needs="build smpi openmpi mpich ?testbed ?slurm test"),
    "show defaults": Subcommand(
        needs="--check:build --check&!--baseline=mpich-4:openmpi --check&--baseline=mpich-4:mpich"
    ),
    "show schedule": Subcommand(needs="build"),
    "show tasks": Subcommand(
        needs="build smpi --library=openmpi:openmpi --library=mpich:mpich --testbed:openmpi+testbed"
    ),
}
"""The subcommands with needs of their own, by their words."""
SECTIONS = {
    "Main path": {
        "demo": Command("Tunes a simulated copy of a real cluster, and shows the gain.", needs="build smpi openmpi"),
        "tune": Command(
            "Does everything for a cluster: choices, rules and a report.", needs="build --engine=smpi:smpi"
        ),
        "show": Command("Shows algorithms, messages, tasks, models and what untuned libraries choose.", needs=""),
        "simulate": Command("Simulates algorithms at every P, m and segment size.", needs="build smpi"),
        "compare": Command("Compares times with other times, decisions and untuned libraries.", needs="?build"),
        "select": Command("Makes decision tables: the algorithm for each P and m.", needs="?build"),
        "export": Command(
            "Writes decision tables as rules that MPI libraries read.",
            needs="--check:build --check&!--format=mpich:openmpi --check&--format=mpich:mpich",
        ),
        "studio": Command(
            "Opens notebooks and an interactive what-if page in a browser.", needs="studio ?build ?smpi ?openmpi"
        ),
        "whatif": Command(
            "Shows how choices and times change when the platform changes.", needs="build --engine=smpi:smpi"
        ),
        "program": Command(
            "Runs programs with our algorithms, and reports the time saved.",
            needs="build --library=smpi:smpi --library=openmpi:openmpi --library=mpich:mpich --engine=smpi:smpi apply:smpi gain:openmpi --testbed:testbed",  # noqa: E501
        ),
    },
    "Platforms": {
        "platforms": Command("Describes clusters, and runs experiments on them.", needs=""),
        "testbed": Command(
            "Emulates a cluster on this machine: real MPI over real TCP.", needs="build openmpi testbed --slurm:slurm"
        ),
    },
    "Models": {
        "fit": Command(
            "Estimates the parameters of models from experiments.",
            needs="build --platform:smpi !--platform&!--library=mpich:openmpi --library=openmpi:openmpi --library=mpich:mpich --testbed:openmpi+testbed",  # noqa: E501
        ),
        "predict": Command("Evaluates models at many P and m at once.", needs="?build"),
    },
    "Measuring": {
        "measure": Command(
            "Measures our algorithms under Open MPI or MPICH.",
            needs="build !--library=mpich&!--script:openmpi --library=mpich:mpich --testbed:openmpi+testbed",
        ),
        "search": Command("Finds good choices with few measurements.", needs=""),
        "times": Command("Lists, shows, deletes and imports stored times.", needs=""),
        "guidelines": Command(
            "Finds and repairs violations of performance guidelines.",
            needs="build simulate:smpi decisions:smpi measure&!--library=mpich:openmpi measure&--library=mpich:mpich --testbed:openmpi+testbed",  # noqa: E501
        ),
    },
    "Checking": {
        "check": Command("Validates algorithms, models, and results reproduced from papers.", needs=""),
    },
    "Maintenance": {
        "setup": Command(
            "Manages the installation and projects.", needs="build ?smpi ?openmpi ?mpich --simgrid:engine"
        ),
    },
}
COMPLETION_VARIABLE = "_COLLWISE_COMPLETE"
"""The variable that shells set to complete command lines (collwise setup completion). The launcher then skips setup."""
_MODULES = {
    "tune": "demo",
    "verbs": "simulate measure fit predict select export compare search whatif program guidelines times",
}
"""The commands that are not in a module of their own name, by module of collwise.studies.cli.

A module loads when one of its commands is called, so that neither the list nor a quick command waits for numpy or
matplotlib.
"""
COMMANDS = {name: command for section in SECTIONS.values() for name, command in section.items()}
"""Every command by name, in the order of the help."""
WORDS = "collwise.words"
"""The key in click's context under which the words of the command line are kept."""


def required_groups(command: str, words: Sequence[str]) -> list[str]:
    """The groups of system packages, and the extras, that a command needs if it is called with these words.

    The launcher reads the table in the same way.
    """
    own = [*takewhile(lambda word: word != "--", words)]
    said = f" {' '.join(own)} ".replace("=", " ")
    groups: list[str] = []
    entry = SUBCOMMANDS.get(" ".join(own[:2]), COMMANDS[command])
    for need in entry.needs.split():
        condition, _, needed = need.rpartition(":")
        terms = condition.replace("=", " ").split("&") if condition else []
        if all((f" {term.removeprefix('!')} " in said) != term.startswith("!") for term in terms):
            groups += (group for group in needed.split("+") if not group.startswith("?"))
    # The schedule engine needs no SimGrid, and 'collwise setup install --simgrid VERSION' replaces the packaged one.
    needs_no_packages = " --engine schedule " in said or any(cache_folder().glob("simgrid-*/.complete"))
    return [group for group in groups if group != "smpi" or not needs_no_packages]


def example(words: str) -> str:
    """The last line of a command's help, for its `epilog`. tests/studies/cli/test_examples.py runs or parses it."""
    return f"\b\nExample: {program_name()} {words}"


class CommandGroup(click.Group):
    """A command with subcommands. Its error for an unknown subcommand names similar ones."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds a subcommand. Raises UsageError, with the near names, for an unknown one."""
        names = self.list_commands(ctx)
        if args[0] not in names and not args[0].startswith("-"):
            kind = "command" if ctx.parent is None else f"{ctx.info_name} command"
            raise unknown_name(kind, args[0], names, f"see '{ctx.command_path} --help'")
        return super().resolve_command(ctx, args)


class AllCommands(CommandGroup):
    """The commands of the table; each loads when it is called."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of a command line, which also keeps the typed words. 'help COMMAND' means 'COMMAND --help'."""
        words = tuple(args)
        if words[:1] == ("help",):
            args = [*words[1:], "--help"]
        context = super().make_context(info_name, args, parent, **extra)
        context.meta[WORDS] = words
        return context

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, or None."""
        if cmd_name not in COMMANDS:
            return None
        home = next((module for module, names in _MODULES.items() if cmd_name in names.split()), cmd_name)
        known = vars(import_module(f"collwise.studies.cli.{home.replace('-', '_')}")).values()
        return next(item for item in known if isinstance(item, click.Command) and item.name == cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the summaries by section."""
        # One width for all sections, so that their summaries start in one column.
        widest = max(map(len, COMMANDS))
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), entry.summary) for name, entry in section.items()])
