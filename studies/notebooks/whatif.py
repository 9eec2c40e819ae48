# %% [markdown]
# # What if the network were another one?
#
# The platform is Gros, 124 nodes with a link of 25 Gbit/s each, the collective is an allreduce. The schedule engine
# times every algorithm, on Gros and on a Gros that is changed. The question is:
#
# **From which bandwidth on does the winner for a 1 MiB allreduce change on Gros, and why?**
#
# To ask about another cluster, name it in the first cell, or give the path of its description.

# %%
import collwise

PLATFORM, COLLECTIVE, SIZE = "gros", "allreduce", 2**20

# %% [markdown]
# ## A quarter of the bandwidth
#
# `collwise.whatif` times the platform before and after a change. The maps show the best choices, by how much times
# change, and what the choices of before would cost if they were kept.

# %%
with collwise.session(engine="schedule") as context:
    quarter = collwise.whatif(
        PLATFORM,
        "bandwidth=x0.25",
        COLLECTIVE,
        procs="12:124:+16",
        sizes="1KiB:4MiB:x2",
        segments="8KiB",
        limits=False,
        context=context,
    )[COLLECTIVE]
print(*quarter.summary(), sep="\n")
quarter.figure()

# %% [markdown]
# ## From which bandwidth on does the winner change?
#
# A sweep changes the bandwidth from 1/16 to 8 times that of Gros, and finds the cross-over points: the factors from
# which on another algorithm is the fastest.

# %%
with collwise.session(engine="schedule") as context:
    sweep = collwise.sweep(
        PLATFORM, "bandwidth=x0.0625:x8", COLLECTIVE, procs="16,31,32,48,62,64,80,93,124", sizes=SIZE, segments="8KiB",
        context=context,
    )[COLLECTIVE]  # fmt: skip
sweep.map()

# %% [markdown]
# The cross-over points, as factors of 25 Gbit/s:

# %%
sweep.crossovers().round(3)

# %% [markdown]
# ## Why?
#
# The ring sends least: every process sends 2 (P - 1) / P of the message, but one after the other in 2 (P - 1) steps,
# each with its latency. Rabenseifner's algorithm takes about 2 log2 P steps. If P is a power of two, it sends as little
# as the ring, and wins at any bandwidth. Otherwise some processes first hand their whole message to others, and take
# the result from them in the end: it then sends up to twice as much as the ring, on the way that decides the time. The
# less bandwidth there is, the more that costs, and the less the ring's latencies matter.
#
# The lower part of the figure shows what the critical path of the best choice consists of.

# %%
print(*sweep.summary(), sep="\n")
sweep.figure(procs=62)

# %% [markdown]
# ## Sliders
#
# In JupyterLab the map follows the sliders; `collwise studio` leads to a page that has them without code. Where a
# message cannot be divided evenly among the processes, and for pipelines of 128 segments and more, times are not played
# but follow from others; the line below the map says how exact they are.

# %%
collwise.explorer(PLATFORM, COLLECTIVE)
