# %% [markdown]
# # Models and simulators
#
# **Which model or simulation should I trust, for which collective and message size?**
#
# Where the store has times that were measured on the platform, these are what is right, and the models, SMPI and the
# schedule engine are compared with them. For other collectives SMPI is the reference. The first cell says which
# platform and which store: `COLLWISE_STORE` in the environment names another store.
#
# Models are fitted to SMPI's times. Where SMPI is the reference, small errors therefore show how well a model describes
# SMPI, not how well it describes the cluster.

# %%
import collwise

PLATFORM, COLLECTIVES = "gros", ("bcast", "gather", "reduce")
PROCS, SIZES, SEGMENTS = "8,16", "8KiB:2MiB:x4", "8KiB,64KiB"

# %% [markdown]
# ## Errors of times
#
# The mean error of all algorithms at a message size. A model has no formula for some algorithms, and none at all for
# some collectives.

# %%
with collwise.session() as context:
    smpi = collwise.simulate(PLATFORM, COLLECTIVES, PROCS, SIZES, segments=SEGMENTS, context=context)
    models = [
        collwise.fit(PLATFORM, "hockney", context=context),
        collwise.fit(PLATFORM, "critical_path", collective=COLLECTIVES, context=context),
    ]
with collwise.session(engine="schedule") as context:
    played = collwise.simulate(PLATFORM, COLLECTIVES, PROCS, SIZES, segments=SEGMENTS, context=context)
others = [dict(played)]
for model in models:
    predicted = [collwise.predict(model, name, PROCS, SIZES, segments=SEGMENTS) for name in COLLECTIVES]
    others.append({name: times for found in predicted for name, times in found.items()})
right = dict(smpi)
for name in COLLECTIVES:
    try:
        right |= collwise.stored(f"platform={PLATFORM},collective={name},source=measured")
    except collwise.UsageError:
        continue  # nothing of it is measured
if any(right[name] is not smpi[name] for name in COLLECTIVES):
    others.insert(0, dict(smpi))
found = collwise.compare(right, *others)
collwise.figure(found, "mean_error")

# %% [markdown]
# ## What choices cost
#
# A source whose times are wrong may still choose well, if it is wrong in the same way for all algorithms. What counts
# is the slowdown of its choices, by the times that are right here.

# %%
collwise.figure(found, "mean_slowdown")

# %% [markdown]
# ## Answer
#
# The table names, for each collective and size, the source whose choices cost least; of equals, the one with the least
# error. Choices are good if a source's choices cost at most 1 % on the mean.

# %%
trusted = found.trusted()
for name, rows in trusted.groupby("collective", sort=False):
    by_size = found[name].table(["message_bytes", "source"]).groupby("source", sort=False)
    means = by_size[["mean_slowdown", "mean_error"]].mean().sort_values(["mean_slowdown", "mean_error"])
    cost, error = means.iloc[0] * 100
    best_at = f"{(rows.source == means.index[0]).sum()} of {len(rows)} sizes"
    print(f"{name}, by times of {right[name].title}: {means.index[0]} chooses best, at {best_at}.", end=" ")
    print(f"Its choices are {cost:.1f} % slower than the best on the mean, its times {error:.1f} % wrong.")
trusted[["collective", "message_bytes", "source", "mean_slowdown", "mean_error", "good_choices"]]

# %% [markdown]
# On supercomputers and in a cloud that others measured, predictions are less right, and choices cost more:
# `collwise.check_machines()`, or `collwise check machines`, says how much, and docs/machines.md has its tables.
