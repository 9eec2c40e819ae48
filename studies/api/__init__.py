"""collwise chooses MPI collective algorithms for a cluster by predicted, simulated and measured times.

The public interface, for notebooks and scripts::

    tune(cluster)                          the whole job: choices, rules, a report, and how sure the choices are
    platform(name)                         a cluster: a known one, or a .toml or .xml file
    describe(name, nodes, interconnect)    your cluster, described by a few figures
    simulate(platform, collective, procs)  simulated times
    measure(collective, procs)             measured times under Open MPI or MPICH
    search_algorithms(collective, procs)   measured times within a budget, only where the choice is in doubt
    stored(query)                          times that the store has
    import_times(file)                     times that were measured elsewhere, put into the store
    measured_file(name)                    a file from a test bed: times, the description, or parameters of models
    results(), configurations()            DataFrames of all times in the store, and of their configurations
    prune(platform=name)                   deletes times from the store
    fit(platform)                          a model whose parameters are estimated on that platform
    predict(model, collective, procs)      predicted times
    compare(reference, other, ...)         errors of times and slowdowns of choices, relative to reference times
    figure(times)                          a matplotlib figure of times, scores, a platform or another result
    select(times)                          decisions: which algorithm for which P and message size
    time_tasks(collective, platform)       times of the tasks of a hierarchical collective
    search_tasks(collective, platform=...) the best configuration of a hierarchical collective for each n, p and m
    export(decisions, output=path)         rules that an MPI library reads
    defaults(collective, procs)            what an untuned MPI library runs
    guidelines(platform, library)          performance guidelines that simulated libraries violate, and their repair
    measured_guidelines(target)            performance guidelines that a real MPI library violates
    check_decisions(decisions, platform)   performance guidelines that decisions violate, and faster combinations
    whatif(platform, changes, collective)  which choices and times change with the platform
    sweep(platform, factors, ...)          the same for many factors of a change, with cross-over points
    run_program(program, library=, procs=) a program with our algorithms in it, and the report of its calls
    profile(report, platform=)             which collectives of a program matter; expected and achieved savings
    application(name, platform, procs)     an application's time under several choices of collectives
    gain(decisions, procs)                 the measured gain of decisions over untuned Open MPI
    live_map(platform, collective)         a map that follows changes within a fraction of a second
    explorer(platform, collective)         the same with sliders, for notebooks
    check_machines(folder, ...)            predictions judged by measured times of machines
    session(...)                           a store, a version of SimGrid and so on, for several calls

Times are in seconds and sizes in bytes. Functions that make times return a dictionary of Times by collective, which has
`frame()` for pandas, and `save()`; `select`, `compare` and `figure` take times from any source, or a file of times.
Sizes and process counts are numbers, lists of numbers, or text as on the command line: '8KiB', '8KiB:4MiB:x2',
'2:16:+2'. Wrong arguments raise UsageError, and problems found later raise CollwiseError; both say in one line what was
wrong.

Importing this package takes no time, since modules are loaded only when a function is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collwise.common.lazy import names_of

if TYPE_CHECKING:
    from collwise.arguments import describe as describe, platform as platform, session as session
    from collwise.checks import check_machines as check_machines
    from collwise.common.errors import CollwiseError as CollwiseError, UsageError as UsageError
    from collwise.common.program import __version__ as __version__
    from collwise.comparisons import compare as compare, figure as figure
    from collwise.decisions import Decisions as Decisions, defaults as defaults, export as export, select as select
    from collwise.guideline_checks import (
        Guidelines as Guidelines,
        check_decisions as check_decisions,
        guidelines as guidelines,
        measured_guidelines as measured_guidelines,
    )
    from collwise.hierarchy import search_tasks as search_tasks, time_tasks as time_tasks
    from collwise.platform_changes import (
        explorer as explorer,
        live_map as live_map,
        sweep as sweep,
        whatif as whatif,
    )
    from collwise.predictions import FittedModel as FittedModel, fit as fit, predict as predict
    from collwise.programs import (
        ProfileResult as ProfileResult,
        application as application,
        gain as gain,
        profile as profile,
        run_program as run_program,
    )
    from collwise.store_contents import (
        configurations as configurations,
        import_times as import_times,
        measured_file as measured_file,
        prune as prune,
        results as results,
        stored as stored,
    )
    from collwise.timings import measure as measure, search_algorithms as search_algorithms, simulate as simulate
    from collwise.tuning import Tuned as Tuned, tune as tune
    from collwise.whatif_results import Sweep as Sweep, WhatIf as WhatIf


def _complete(found: Any) -> None:
    """Adds the command line's texts on a function's parameters to the function's docstring."""
    if callable(found) and not isinstance(found, type):
        from collwise.studies.cli.option_texts import with_parameters

        with_parameters(found)


_MODULES = {
    "whatif_results": ("Sweep", "WhatIf"),
    "arguments": ("describe", "platform", "session"),
    "checks": ("check_machines",),
    "comparisons": ("compare", "figure"),
    "common.errors": ("CollwiseError", "UsageError"),
    "common.program": ("__version__",),
    "decisions": ("Decisions", "defaults", "export", "select"),
    "guideline_checks": ("Guidelines", "check_decisions", "guidelines", "measured_guidelines"),
    "hierarchy": ("search_tasks", "time_tasks"),
    "predictions": ("FittedModel", "fit", "predict"),
    "programs": ("ProfileResult", "application", "gain", "profile", "run_program"),
    "platform_changes": ("explorer", "live_map", "sweep", "whatif"),
    "store_contents": ("configurations", "import_times", "measured_file", "prune", "results", "stored"),
    "timings": ("measure", "search_algorithms", "simulate"),
    "tuning": ("Tuned", "tune"),
}
__all__ = [name for names in _MODULES.values() for name in names if not name.startswith("_")]
__getattr__ = names_of(__name__, _MODULES, _complete)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
