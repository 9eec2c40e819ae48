# %% [markdown]
# # Getting started
#
# **Which algorithm should a broadcast run on Dahu, and what does that gain over Open MPI as it is?**
#
# Dahu is a cluster of 32 nodes with two processors and a link of 100 Gbit/s each, that is described here
# (`collwise platforms show` names others, and the notebook `own_cluster` describes a new one). Nothing runs on it:
# times are simulated, with one process on each processor.

# %%
import collwise

PLATFORM, COLLECTIVE = "dahu", "bcast"
PROCS, SIZES, SEGMENTS = "8,16,32,48,64", "8KiB:4MiB:x2", "8KiB,64KiB"

# %% [markdown]
# ## Simulated times
#
# `collwise.simulate` times every algorithm at every process count P, message size and segment size. The schedule engine
# plays the messages that an algorithm's code sends; `engine="smpi"` takes SimGrid's SMPI, which is slower and simulates
# more. `deciders` adds what Open MPI 4.1 chooses as it is. Times are kept in a store: a second run has them at once.

# %%
with collwise.session(engine="schedule") as context:
    times = collwise.simulate(
        PLATFORM, COLLECTIVE, PROCS, SIZES, segments=SEGMENTS, deciders="openmpi-4.1", context=context
    )
collwise.figure(times, procs=64)

# %% [markdown]
# ## The best choice, and what Open MPI chooses
#
# A map has the best choice at every point, by simulated times. Beside it is what Open MPI 4.1 chooses as it is.

# %%
scores = collwise.compare(times, "openmpi-4.1")
collwise.figure(scores, "choices")

# %% [markdown]
# Open MPI's choices are slower than the best by so many percent:

# %%
collwise.figure(scores, "slowdowns")

# %% [markdown]
# ## Rules
#
# `collwise.select` makes a decision table with the fewest rows in which no choice is slower than the best by more than
# 1 %, among the algorithms that Open MPI 4.1 has.

# %%
decisions = collwise.select(times, consumer="openmpi-4.1")
decisions

# %% [markdown]
# `collwise.export` writes it as rules that Open MPI reads. Written to a file, they are used by
# `mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE --mca coll ^han,hcoll,ucc`.

# %%
rules = collwise.export(decisions).text
print(rules)

# %% [markdown]
# ## Answer

# %%
best = decisions.choose(COLLECTIVE, 64, "1MiB")
untuned = scores[COLLECTIVE].summary("Open MPI 4.1")
print(f"With 64 processes and 1 MiB a broadcast on Dahu should run {best.label}.")
cost = f"{untuned.mean * 100:.0f} % slower than the best on the mean, and {untuned.worst * 100:.0f} % at worst"
print(f"By simulated times, untuned Open MPI 4.1 is {cost}.")
