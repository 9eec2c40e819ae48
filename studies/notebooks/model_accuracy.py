# %% [markdown]
# # Models and simulators
#
# **Which model or simulation should I trust, for which collective and message size?**
#
# The reference is times that a real MPI library took. Models are fitted to experiments in the same place, and the
# engines simulate a description of it that was made from messages between two of its nodes. Models by algorithm are
# fitted to the algorithms that they predict, but on fewer processes and at other sizes.
#
# The place is a test bed, a cluster of eight nodes at 25 Mbit/s that is emulated in one machine. For a cluster of
# yours, name its description (`collwise platforms calibrate`), files of parameters (`collwise fit --hosts`), and its
# times, which `collwise measure --hosts` keeps in the store.

# %%
import collwise

collwise.import_times(collwise.measured_file("first.csv.gz"))
PLATFORM, MEASURED = collwise.measured_file("bed.toml"), "platform=testbed-8x25M,source=measured"
MODELS = ("critical_path", "implementation-aware", "hockney_by_size", "loggp", "plogp")
PARAMETERS = [collwise.measured_file(f"{name}.toml") for name in MODELS]
COLLECTIVES = ("bcast", "reduce", "gather", "scatter")

# %% [markdown]
# ## Errors of times
#
# The mean error of all algorithms at a message size. A model has no formula for some algorithms.

# %%
right = {name: collwise.stored(f"{MEASURED},collective={name}")[name] for name in COLLECTIVES}
others = []
for engine in ("smpi", "schedule"):
    with collwise.session(engine=engine) as context:
        others.append({
            name: collwise.simulate(
                PLATFORM, name, times.procs, times.message_bytes, segments="8KiB", context=context
            )[name]
            for name, times in right.items()
        })  # fmt: skip
for parameters in PARAMETERS:
    others.append({
        name: collwise.predict(parameters, name, times.procs, times.message_bytes, segments="8KiB")[name]
        for name, times in right.items()
    })  # fmt: skip
found = collwise.compare(right, *others)
collwise.figure(found, "mean_error")

# %% [markdown]
# ## What choices cost
#
# A source whose times are wrong may still choose well, if it is wrong in the same way for all algorithms. What counts
# is the slowdown of its choices, by the measured times.

# %%
collwise.figure(found, "mean_slowdown")

# %% [markdown]
# ## Answer
#
# The table names, for each collective and size, the source whose choices cost least; of equals, the one with the least
# error. Choices are good if a source's choices cost at most 1 % on the mean.

# %%
trusted, lines = found.trusted(), []
for name, rows in trusted.groupby("collective", sort=False):
    by_size = found[name].table(["message_bytes", "source"]).groupby("source", sort=False)
    means = by_size[["mean_slowdown", "mean_error"]].mean().sort_values(["mean_slowdown", "mean_error"])
    cost, error = means.iloc[0] * 100
    good = sum(means.index[0] in sources.split(", ") for sources in rows.good_choices)
    lines.append(
        f"{name}, by times of {right[name].title}: {means.index[0]} chooses best, well at {good} of {len(rows)} sizes. "
        f"Its choices are {cost:.1f} % slower than the best on the mean, its times {error:.1f} % wrong."
    )
print("\n".join(lines))
trusted[["collective", "message_bytes", "source", "mean_slowdown", "mean_error", "good_choices"]]

# %% [markdown]
# docs/models-measured.md has all models and seven collectives, with a second run of measurements beside the first. On
# supercomputers and in a cloud that others measured, predictions are less right, and choices cost more:
# `collwise.check_machines()`, or `collwise check machines`, says how much, and docs/machines.md has its tables.
