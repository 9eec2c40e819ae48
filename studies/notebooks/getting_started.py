# %% [markdown]
# # Getting started
#
# **Which algorithm should a broadcast run on Dahu, and what does that gain over Open MPI as it is?**
#
# Dahu is a cluster of 32 nodes with two processors and a link of 100 Gbit/s each, that is described here
# (`collwise platforms list` names others, and the notebook `own_cluster` describes a new one). Nothing runs on it:
# times are simulated, with one process on each processor.

# %%
import collwise
from collwise.studies.figures.maps import decision_figure, slowdown_figure
from collwise.studies.papers.study import Study
from collwise.validation.compare.simulated import beside_simulation
from collwise.validation.libraries.baselines import BASELINES

here = Study()
PLATFORM, COLLECTIVE = "dahu", "bcast"
PROCS, SIZES, SEGMENTS = "8,16,32,48,64", "8KiB:4MiB:x2", "8KiB,64KiB"

# %% [markdown]
# ## Simulated times
#
# `collwise.simulate` times every algorithm at every process count P, message size and segment size. The schedule engine
# plays the messages that an algorithm's code sends; `here.context()` instead of `here.context("schedule")` takes
# SimGrid's SMPI, which is slower and simulates more. Times are kept in a store: a second run has them at once.

# %%
with here.context("schedule") as context:
    times = collwise.simulate(PLATFORM, COLLECTIVE, PROCS, SIZES, segments=SEGMENTS, context=context)
shown = times.frame().query("procs == 64 and message_bytes == 2**20").sort_values("seconds")
shown = shown[["algorithm", "segment_bytes", "seconds"]].head(5)
here.table("The fastest choices for 1 MiB on 64 processes (seconds)", shown, "{:.3g}")

# %% [markdown]
# ## The best choice, and what Open MPI chooses
#
# A map has the best choice at every point, by simulated times. Beside it is what Open MPI 4.1 chooses as it is, and
# below how much slower that is.

# %%
with here.context("schedule") as context:
    scores = beside_simulation(
        collwise.platform(PLATFORM), times[COLLECTIVE].grid, [], context, BASELINES["openmpi-4.1"]
    )
here.figure(
    decision_figure(scores, "Broadcast on Dahu"), "The best choices, and Open MPI's.", "getting-started-choices"
)
here.figure(
    slowdown_figure(scores, "Broadcast on Dahu: what Open MPI's choices cost"),
    "Slowdown of Open MPI's choices against the best, in percent.",
    "getting-started-costs",
)
summary = scores.summary("Open MPI 4.1")

# %% [markdown]
# ## Rules
#
# `collwise.select` makes a decision table with the fewest rows in which no choice is slower than the best by more than
# 1 %, among the algorithms that Open MPI 4.1 has. `collwise.export` writes it as rules that Open MPI reads.

# %%
decisions = collwise.select(times, consumer="openmpi-4.1")
rules = collwise.export(decisions).text
here.table("The rules", decisions.frame())
here.text("""
Written to a file, they are used by `mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename
FILE --mca coll ^han,hcoll,ucc`.""")

# %% [markdown]
# ## Answer

# %%
best = decisions.choose(COLLECTIVE, 64, "1MiB")
here.conclude(f"With 64 processes and 1 MiB a broadcast on Dahu should run {best.label}.")
here.conclude(f"""
Open MPI 4.1 untuned is {summary.mean * 100:.0f} % slower than the best on the mean, and {summary.worst * 100:.0f} % at
worst, by simulated times.""")
here.publish({"best": best.label, "mean_slowdown": summary.mean, "rules": len(decisions.frame()), "text": len(rules)})
