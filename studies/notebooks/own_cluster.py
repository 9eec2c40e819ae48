# %% [markdown]
# # My own cluster
#
# **Which rules does a cluster need of which I know a few figures, and how much do they depend on those figures?**
#
# The cluster has 64 nodes with 32 cores on two sockets, a link of 100 Gbit/s for each node, and a latency of 1.5 us.
# Put the figures of another one into the first cell. `collwise platforms new` writes the same description to a file.

# %%
import collwise

mine = collwise.describe(
    "mine", 64, "infiniband-hdr", cpus=2, cores=32, link_bytes_per_second=100e9 / 8, latency_seconds=1.5e-6
)
COLLECTIVES, PROCS, SIZES, SEGMENTS = "bcast,allreduce", "8,16,32,48,64", "1KiB:4MiB:x4", "8KiB,64KiB"

# %% [markdown]
# ## Description
#
# The interconnect gives the overheads of processors and the library's protocol, which are estimates until they are
# calibrated: without them short messages would seem to cost nothing.

# %%
collwise.figure(mine)

# %% [markdown]
# ## Rules
#
# One process on each node, by the schedule engine. `ppn=32` in the call decides for full nodes, which takes longer.

# %%
with collwise.session(engine="schedule") as context:
    times = collwise.simulate(mine, COLLECTIVES, PROCS, SIZES, segments=SEGMENTS, ppn=1, context=context)
decisions = collwise.select(times, consumer="openmpi-4.1")
decisions

# %% [markdown]
# ## How much do they depend on the figures?
#
# The bandwidth, the latency and the overheads may be others than I think. `collwise.whatif` tells what the rules would
# cost then: the kept rules are the best choices of the cluster as described.

# %%
answers = {}
with collwise.session(engine="schedule") as context:
    for change in ("bandwidth=x0.7", "latency=x2", "overheads=x2"):
        answers[change] = collwise.whatif(
            mine, change, COLLECTIVES, procs=PROCS, sizes=SIZES, segments=SEGMENTS, ppn=1, context=context
        )
answers["latency=x2"]["bcast"].figure()

# %% [markdown]
# ## Answer, and what to measure next

# %%
for change, found in answers.items():
    for name, one in found.items():
        kept = one.kept_slowdown()
        cost = f"{float(kept.mean()) * 100:.1f} % on the mean, {float(kept.max()) * 100:.1f} % at worst"
        print(f"{name}, if in truth {change}: the rules cost {cost}.")

# %% [markdown]
# Measure next what costs most if it is wrong. `collwise platforms calibrate` fits the description to messages between
# two nodes, which takes minutes; `collwise measure` times the algorithms themselves, and `collwise program gain` the
# rules against the library as it is. Times that are measured are kept in the store, and the notebook `model_accuracy`
# then shows which source to trust.
