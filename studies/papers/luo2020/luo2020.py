# %% [markdown]
# # Luo et al. 2020: do hierarchical collectives from tasks pay, and can tasks tune them?
#
# X. Luo et al., "HAN: a Hierarchical AutotuNed Collective Communication Framework", IEEE Cluster 2020, compose
# collectives of many-core clusters from tasks between nodes and within them, predict their times from measured tasks,
# and let the prediction choose. They measure on Shaheen II and Stampede2; here both are simulated. **By construction**
# the cost model agrees with whole collectives: its tasks are cut from the same pipeline, on a machine without noise.
# The machines' descriptions rest on others' measurements ([platforms](platforms.md)); a node's memory bandwidth is
# estimated. The paper's curves are pictures, so only numbers in its text are compared.

# %%
import pandas as pd

import collwise
from collwise.common.units import format_seconds, format_size
from collwise.simulator.bench import Simulated
from collwise.studies.figures import hierarchy as tuning_figures
from collwise.studies.papers.luo2020 import whole as paper
from collwise.studies.papers.luo2020.heuristics import with_heuristics
from collwise.studies.papers.study import Study
from collwise.validation.hierarchy.space import label

here, printed = Study("luo2020", globals()), paper.PUBLISHED
SEARCHES = ("exhaustive", "exhaustive-heuristics", "tasks", "tasks-heuristics")
WAYS = ("point-to-point", "shared-memory", "one-sided")
NODES, PER_NODE = (16, 4) if here.quick else (64, 12)
machine = paper.STAMPEDE2
place = f"{NODES} nodes of {machine.title} with {PER_NODE} processes each"


# %% [markdown]
# ## (a) Do the tasks of a leader overlap? Figures 2, 3 and 6
#
# Segments of 64 KiB on 6 nodes, by the schedule engine. ib(0) passes segment 0 on between nodes; sbib(i) passes segment
# i - 1 on within the node and, at the same time, segment i between nodes. In figures 2 and 6 the processes of a node
# share memory, as with HAN's module SM; in figure 3 they send messages.

# %%
with here.context("schedule") as context:
    of_tasks = {
        (collective, way): {
            study.case.algorithm.removeprefix("tasks_"): study
            for study in collwise.time_tasks(
                collective, platform=machine.name, nodes=6, ppn=PER_NODE, segments="64KiB", within=way, context=context
            )
        }
        for collective in paper.COLLECTIVES
        for way in WAYS
    }
bcasts, allreduces = (of_tasks[collective, "shared-memory"] for collective in paper.COLLECTIVES)
by_messages = of_tasks["bcast", "point-to-point"]
title = "{} on 6 nodes, segments of 64 KiB"
here.figure(
    tuning_figures.task_overlap([*bcasts.values()], title.format("Broadcast")),
    "Figure 2: on each leader ib alone, sb alone, both at once, and both at once after ib(0).",
)
here.figure(
    tuning_figures.task_trend([*by_messages.values()], 2, title.format("Broadcast")),
    "Figure 3: sbib(i) on leader 2, and the stabilised cost.",
)
here.figure(
    tuning_figures.task_overlap([*allreduces.values()], title.format("Allreduce")),
    "Figure 6: ib and ir alone and at once.",
)
here.table(
    "How much of the shorter part is hidden behind the longer one, and from which segment on sbib has settled (5 %)",
    (
        (
            *(name, *(f"{100 * of_tasks['bcast', way][name].overlap:.0f} %" for way in WAYS)),
            max(study.stable_from(leader) or study.times.full.stop for leader in range(6)),
            f"{100 * allreduces[name].overlap:.0f} %",
        )
        for name, study in by_messages.items()
    ),
    columns=[
        "between nodes", *(f"ib with sb, {way}" for way in WAYS), "sbib(i) settled from, point-to-point", "ib with ir",
    ],
)  # fmt: skip
here.say("overlap")

# %% [markdown]
# ## (b) Does the cost model find the best configuration? Figures 4 and 7 to 9, tables I and II

# %%
with here.context("schedule") as context:
    checks = collwise.search_tasks(
        paper.COLLECTIVES, platform=machine.name, nodes=NODES, ppn=PER_NODE, sizes="4MiB", pieces="0,32KiB",
        searches="exhaustive,tasks", context=context,
    )  # fmt: skip
best, picks = (
    {collective: next(iter(check.found[name].best.values())) for collective, check in checks.items()}
    for name in ("exhaustive", "tasks")
)
here.table(
    f"Tables I and II: best configurations on {NODES} nodes of {machine.title} (simulated), and on the test bed below "
    "(measured; of all configurations, and of those with imod library)",
    pd.concat([
        pd.DataFrame([printed["table_1"] | printed["table_2"]]),
        *(paper.configuration(NODES, PER_NODE, 4 * paper.MIB, name, choice) for name, choice in best.items()),
        *(
            paper.measured_configuration(item, which)
            for which in ("best", "library") for item in paper.MEASURED["measured"]
        ),
    ]),
)  # fmt: skip
check = checks["allreduce"]
(one,) = check.space.inputs
here.figure(
    tuning_figures.model_by_configuration(check, one, f"allreduce of 4 MiB on {place}"),
    "Figure 7: the cost model of tasks and the whole allreduce, over the segment size.",
)
for collective, best_of_paper in printed["best_of_4_mb"].items():
    here.say(
        "best_configuration", stated=best_of_paper, pick=label(picks[collective]), best=label(best[collective]),
        slowdown=checks[collective].scores[1].mean, error=checks[collective].scores[1].median_error,
    )  # fmt: skip

# %%
with here.context("schedule") as context:
    tunings = {
        collective: with_heuristics(
            collwise.search_tasks(
                collective, platform=machine.name, nodes=NODES, ppn=PER_NODE, searches=SEARCHES[::2], context=context,
                **({} if here.quick else {"sizes": sizes, **paper.SEARCHED}),  # type: ignore[arg-type]
            )[collective],
            Simulated(collwise.platform(machine.name), context),
        )
        for collective, sizes in paper.SEARCHED_SIZES.items()
    }  # fmt: skip
scores = {collective: tuning.scores for collective, tuning in tunings.items()}
costs = {}
for number, name in enumerate(SEARCHES):
    ours = [found[number] for found in scores.values()]
    costs[name] = {
        "cost": sum(score.machine_seconds for score in ours)
        / sum(found[0].machine_seconds for found in scores.values()),
        "mean": sum(score.mean for score in ours) / len(ours),
        "worst": max(score.worst for score in ours),
    }
here.table(
    "Figures 8 and 9: cost of each search of broadcast and allreduce, and slowdown of its choices (%)",
    (
        (*stated, *(100 * share for share in cost.values()))
        for stated, cost in zip(printed["search_cost_percent"].items(), costs.values(), strict=True)
    ),
    floats="{:.1f}",
    columns=["search", "cost in the paper", "cost here", "mean slowdown here", "worst here"],
)
here.figure(
    tuning_figures.search_quality(tunings["allreduce"], (NODES, PER_NODE), f"allreduce on {place}"),
    "Figure 9: allreduce, the choices of each search among all configurations.",
)
here.say("searches")

# %% [markdown]
# ### The same under a real Open MPI
#
# Open MPI 4.1.4 on a [test bed](testbed.md) of 4 nodes of 2 processes at 25 Mbit/s. Every configuration was timed;
# HAN's pick is by equations (3) and (4) from times of tasks. The last columns have MPI's own collectives, relative to
# the best time: untuned, by Open MPI's component han, and by han with rules that `collwise export --format han` wrote
# (`docs/han_on_a_bed.py`).

# %%
measured = pd.DataFrame(paper.MEASURED["measured"])
here.table(
    f"Measured on {paper.MEASURED['measured_on']}, load {paper.MEASURED['load']}",
    (
        (
            *(row.collective, format_size(row.message_bytes), row.best, format_seconds(row.best_seconds)),
            *(row.pick, f"{row.pick_seconds / row.best_seconds - 1:.1%}", f"{row.model_error:.0%}"),
            *(
                f"x {seconds / row.best_seconds:.2f}" if seconds == seconds else "aborts"
                for seconds in row.own_seconds.values()
            ),
        )
        for row in measured.itertuples()
    ),
    columns=[
        "collective",
        "m",
        "best",
        "time",
        "HAN's pick",
        "slower by",
        "error of the model",
        *measured.own_seconds[0],
    ],
)
untuned_faster = sum(row.own_seconds["untuned"] < row.best_seconds for row in measured.itertuples())
here.say("measured")

# %% [markdown]
# ## (c) Do hierarchical collectives beat flat ones, and what libraries choose? Figures 10 to 14
#
# One process per core: 4096 on Shaheen II, 1536 on Stampede2, by the schedule engine. **HAN's pick** is the
# task-based algorithm that the cost model chooses from times of tasks. The **oracles**, the fastest hierarchical and
# the fastest flat algorithm, know every time. **Decisions** are those of untuned libraries; Open MPI 4.1 and MPICH 4
# decide as for one process on each node. SMPI times choices that it can simulate within seconds.

# %%
sizes = paper.QUICK_SIZES if here.quick else paper.SIZES
with here.context() as simulation:
    wholes = {
        number: paper.simulate_whole(item, collective, [size for size in item.sizes if size in sizes], simulation)
        for number, (item, collective) in paper.FIGURES.items()
    }
for numbers in ((10, 12), (13, 14)):
    shown = [wholes[number] for number in numbers]
    here.figure(
        paper.times_and_speed_ups(shown),
        f"Figures {numbers[0]} and {numbers[1]}: {shown[0].collective}, times and speed-ups of HAN's pick.",
    )
for found in wholes.values():
    here.table(f"{found.title}: times and choices, schedule engine", paper.shown(found.seconds, found.choices))
    if found.smpi.notna().any(axis=None):
        here.table(f"{found.title}: the same choices in SMPI", paper.shown(found.smpi.dropna(how="all")))

# %% [markdown]
# The paper's largest speed-ups, and the least and the greatest speed-up of HAN's picks in the same range of sizes.
# MPICH 4 stands for Cray MPI, which descends from it. Intel MPI and MVAPICH2 are left out, because SMPI's selectors
# with these names lack the libraries' algorithms.

# %%
here.table("Speed-ups of HAN as the paper reports them, and of HAN's picks here", paper.compared(wholes))

# %% [markdown]
# ### Where they differ, and why
#
# First, the parts of a broadcast on Stampede2, each alone: between the leaders, and within a node.

# %%
with here.context() as simulation:
    alone = paper.parts(machine, sizes, simulation)
    scattered = paper.cyclic(machine, [size for size in paper.QUICK_SIZES if size <= 8 * paper.MIB], simulation)
stampede = wholes[12]
shown = pd.concat([alone, stampede.seconds[[paper.HIERARCHICAL, paper.FLAT]]], axis=1)
here.table("Broadcast on Stampede2: its parts alone, and the whole", paper.shown(shown))
here.table("Broadcast on Stampede2, ranks placed cyclically", paper.shown(scattered))
over_flat = {number: paper.by_range(found.speed_ups()[paper.FLAT]) for number, found in wholes.items()}
over_oracle = {number: paper.by_range(found.speed_ups()[paper.HIERARCHICAL]) for number, found in wholes.items()}
over_default = {number: paper.by_range(found.speed_ups()[paper.DEFAULT]) for number, found in wholes.items()}
by_placement = paper.by_range(scattered[paper.FLAT] / scattered[paper.HIERARCHICAL])
largest = max(sizes)
node_share = alone["within a node alone"][largest] / stampede.seconds[paper.HIERARCHICAL][largest]
speed_ups = {paper.DEFAULT: over_default, paper.FLAT: over_flat, paper.HIERARCHICAL: over_oracle}
here.table(
    "Speed-ups of HAN's pick: geometric means for small and for large messages",
    (
        (
            f"{found.collective} on {found.machine.title}",
            *(f"{of['mean']:.2f}" if of else "-" for over in speed_ups.values() for of in over[number].values()),
        )
        for number, found in wholes.items()
    ),
    columns=["", *(f"over {name}, {sizes_of}" for name in speed_ups for sizes_of in (paper.SMALL, paper.LARGE))],
)
here.say("differences")

# %% [markdown]
# ## (d) What do applications gain? Table III and figure 15
#
# In ASP, processes take turns to broadcast a row of a matrix; here each has one row of 2^20 numbers, as we read the
# paper's "1M matrix". Training averages the gradients of AlexNet by allreduce. Both run in SMPI with modelled
# computation, on fewer processes than in the paper ([applications](applications.md)): with SMPI's selector `ompi`, with
# the fastest flat algorithms for their calls, and with the fastest of all, `hierarchical`.

# %%
APPLICATIONS = {"asp": "ompi,flat,hierarchical", "training": "ompi,flat,hierarchical"}
processes, several = (16, (8, 16)) if here.quick else (192, (12, 24, 48))
with here.context("schedule") as context:
    asp = (
        collwise.application(
            "asp",
            machine.name,
            processes,
            APPLICATIONS["asp"],
            settings={"rows": processes, "iterations": 24},
            ppn=min(12, processes // 4),
            segments="64KiB:1MiB:x2",
            context=context,
        )
        .frame()
        .set_index("collectives")
    )
    training = pd.concat(
        collwise.application(
            "training", machine.name, count, APPLICATIONS["training"], settings={"steps": 1, "batch": 1},
            ppn=min(12, count // 4) if here.quick else 12, segments="1MiB,4MiB", context=context,
        ).frame()
        for count in several
    )  # fmt: skip
share, gain = printed["communication_percent"], printed["asp_speed_up"]
STANDS_FOR = {"hierarchical": "HAN", "ompi": paper.OPENMPI}
fastest = asp.seconds["hierarchical"]
here.table(
    f"Table III: ASP on {processes} processes here, on 1536 in the paper",
    (
        (
            *(name, format_seconds(row.seconds), 100 * row.mean_share, share.get(STANDS_FOR.get(name, ""), "")),
            *(row.seconds / fastest, gain.get(STANDS_FOR.get(name, ""), "")),
        )
        for name, row in asp.iterrows()
    ),
    floats="{:.2f}",
    columns=[
        "collectives", "time", "communication (%)", "of the paper's library (%)",
        "speed-up of `hierarchical` over it", "of HAN, paper",
    ],
)  # fmt: skip
images = training.assign(rate=training.procs / training.seconds).pivot_table("rate", "procs", "collectives")
here.figure(
    paper.over_procs(images, "AlexNet on Stampede2, 1 image for each process, simulated"),
    "Figure 15: images per second in training over the number of processes.",
)
gains = images["hierarchical"] / images["ompi"] - 1
with here.context() as simulation:
    row = paper.simulate_whole(machine, "bcast", [4 * paper.MIB], simulation, smpi_sizes=()).seconds.iloc[0]
implied = gain[paper.OPENMPI] * share[paper.OPENMPI] / share["HAN"]
here.say("applications")

# %% [markdown]
# ## Conclusions

# %%
shares = {way: [study.overlap for study in of_tasks["bcast", way].values()] for way in WAYS}
overlaps = {
    way: " to ".join(dict.fromkeys(f"{100 * end:.0f} %" for end in (min(found), max(found))))
    for way, found in shares.items()
}
here.conclude_all("conclude_overlap")
errors = " and ".join(f"{100 * check.scores[1].median_error:.2f} % ({name})" for name, check in checks.items())
here.conclude_all("conclude_model_and_speed_ups")

# %% [markdown]
# ## What the authors could not do
#
# Tune before the machine exists, and test the search where the description is wrong: `collwise search tasks
# --platform stampede2 --nodes 8 --ppn 4 --engine schedule --search exhaustive,tasks,predict --drawn 3`.

# %%
here.publish({
    "overlap": {
        f"{collective}, {way}": {name: study.overlap for name, study in found.items()}
        for (collective, way), found in of_tasks.items()
    },
    "model_error": {name: check.scores[1].median_error for name, check in checks.items()},
    "searches": costs,
    "over_flat": over_flat,
    "over_openmpi": over_default,
    "over_hierarchical_oracle": over_oracle,
    "cyclic_over_flat": by_placement,
    "asp": asp[["seconds", "mean_share"]].to_dict("index"),
    "training_gains": {str(count): share for count, share in gains.items()},
})  # fmt: skip
