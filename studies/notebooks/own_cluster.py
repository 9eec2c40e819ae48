# %% [markdown]
# # My own cluster
#
# **Which rules for a cluster of which I know a few figures, and how much do they depend on those figures?**
#
# The cluster has 64 nodes with 32 cores on two sockets, a link of 100 Gbit/s for each node, and a latency of 1.5 us.
# Put the figures of another one into the first cell. `collwise platforms new` writes the same description to a file.

# %%
import collwise
from collwise.platforms import interconnect_names
from collwise.platforms.from_figures import Node, new_platform
from collwise.studies.figures.platform import platform_figure
from collwise.studies.papers.study import Study

here = Study()
NAME, NODES, NODE = "mine", 64, Node(cpus=2, cores=32)
LINK_BYTES_PER_SECOND, LATENCY_SECONDS = 100e9 / 8, 1.5e-6
INTERCONNECT = "infiniband-hdr"
COLLECTIVES, PROCS, SIZES, SEGMENTS = "bcast,allreduce", "8,16,32,48,64", "1KiB:4MiB:x4", "8KiB,64KiB"

# %% [markdown]
# ## Description
#
# The interconnect gives the overheads of processors and the library's protocol, which are estimates until they are
# calibrated: without them short messages would seem to cost nothing.

# %%
mine = new_platform(NAME, NODES, NODE, LINK_BYTES_PER_SECOND, LATENCY_SECONDS, INTERCONNECT)
here.figure(platform_figure(mine), "The cluster as described.", "own-cluster")
here.text(f"Interconnects to choose from: {', '.join(interconnect_names())}.")

# %% [markdown]
# ## Rules
#
# One process on each node, by the schedule engine. `ppn=32` in the call decides for full nodes, which takes longer.

# %%
with here.context("schedule") as context:
    times = collwise.simulate(mine, COLLECTIVES, PROCS, SIZES, segments=SEGMENTS, ppn=1, context=context)
decisions = collwise.select(times, consumer="openmpi-4.1")
rules = collwise.export(decisions).text
here.table("The rules", decisions.frame())

# %% [markdown]
# ## How much do they depend on the figures?
#
# The bandwidth, the latency and the overheads may be others than I think. `collwise.whatif` tells what the rules would
# cost then: the kept rules are the best choices of the cluster as described.

# %%
lines = []
for change in ("bandwidth=x0.7", "latency=x2", "overheads=x2"):
    for collective in COLLECTIVES.split(","):
        with here.context("schedule") as context:
            other = collwise.whatif(
                mine, change, collective, procs=PROCS, sizes=SIZES, segments=SEGMENTS, ppn=1, context=context
            )[collective]
        kept = other.kept_slowdown()
        lines.append((change, collective, float(kept.mean()), float(kept.max())))
        if change == "latency=x2":
            here.figure(other.figure(), f"{collective} with twice the latency.", f"own-cluster-{collective}")

# %% [markdown]
# ## Answer, and what to measure next

# %%
for change, collective, mean, worst in lines:
    cost = f"{mean * 100:.1f} % on the mean, {worst * 100:.1f} % at worst"
    here.conclude(f"{collective}, if in truth {change}: the rules cost {cost}.")
here.text("""
Measure next what costs most if it is wrong. `collwise platforms calibrate` fits the description to messages between
two nodes, which takes minutes; `collwise measure` times the algorithms themselves, and `collwise program gain` the
rules against the library as it is. Times that are measured are kept in the store, and the notebook `model_accuracy`
then shows which source to trust.""")
here.publish(
    {
        "rules": len(decisions.frame()),
        "kept": [dict(zip(("change", "collective", "mean", "worst"), one, strict=True)) for one in lines],
        "text": len(rules),
    }
)
