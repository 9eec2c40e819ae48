# %% [markdown]
# # Which model or simulation to trust?
#
# The question, by collective and message size: **whose times are right, and whose choices cost least?**
#
# Where the store has times that were measured on the platform, these are what is right, and the models, SMPI and the
# schedule engine are compared with them. For other collectives SMPI is the reference. The first cell says which
# platform and which store: `COLLWISE_STORE` in the environment names another store.
#
# Models are fitted to SMPI's times. Where SMPI is the reference, small errors therefore show how well a model describes
# SMPI, not how well it describes the cluster. The last part therefore asks machines that others measured.

# %%
from pathlib import Path
from tempfile import TemporaryDirectory

import collwise
from collwise import checks
from collwise.studies.figures.maps import score_maps
from collwise.studies.papers.study import Study
from collwise.studies.present.machines import shown
from collwise.studies.present.shown import Table

here = Study()
PLATFORM, COLLECTIVES = "gros", ("bcast", "gather", "reduce")
PROCS, SIZES, SEGMENTS = "8,16", "8KiB:2MiB:x4", "8KiB,64KiB"

# %% [markdown]
# ## Errors of times
#
# The mean error of all algorithms at a message size. A model has no formula for some algorithms, and none at all for
# some collectives.

# %%
with here.context() as context:
    smpi = collwise.simulate(PLATFORM, COLLECTIVES, PROCS, SIZES, segments=SEGMENTS, context=context)
    models = [
        collwise.fit(PLATFORM, "hockney", context=context),
        collwise.fit(PLATFORM, "critical_path", collective=COLLECTIVES, context=context),
    ]
with here.context("schedule") as context:
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
every = found.table(["collective", "reference", "source"])
references = every.groupby("collective", sort=False).reference.first().reset_index()
here.table("What is right here", references)
here.figure(score_maps(found, "mean_error"), "Mean errors of times, in percent.", "model-accuracy-errors")

# %% [markdown]
# ## What choices cost
#
# A source whose times are wrong may still choose well, if it is wrong in the same way for all algorithms. What counts
# is the slowdown of its choices, by the times that are right here.

# %%
here.figure(score_maps(found, "mean_slowdown"), "Mean slowdown of choices, in percent.", "model-accuracy-slowdowns")

# %% [markdown]
# ## Answer
#
# For each collective and size, the source whose choices cost least, and of equal ones that with the least error.

# %%
trusted = found.trusted()
columns = ["collective", "message_bytes", "source", "mean_slowdown", "mean_error", "good_choices"]
here.table("Whom to trust (good choices: those that cost at most 1 % on the mean)", trusted[columns], "{:.3f}")
for name, rows in trusted.groupby("collective", sort=False):
    by_size = found[name].table(["message_bytes", "source"]).groupby("source", sort=False)
    means = by_size[["mean_slowdown", "mean_error"]].mean().sort_values(["mean_slowdown", "mean_error"])
    cost, error = means.iloc[0] * 100
    here.conclude(f"""
    {name}: over all sizes {means.index[0]} chooses best, {cost:.1f} % slower than the best on the mean, with times
    {error:.1f} % wrong on the mean; it is the best at {(rows.source == means.index[0]).sum()} of {len(rows)} sizes.""")

# %% [markdown]
# ## On machines that others measured
#
# Neither the engine nor a model has seen these times: descriptions are from published figures, and models are fitted to
# the descriptions. `collwise check machines` makes these tables from any folder of runs; docs/machines.md says what is
# counted.

# %%
with TemporaryDirectory() as folder, here.context("schedule") as context:
    judged = shown(checks.machines(predictions=Path(folder, "predictions.csv"), context=context))
first, *more = (part for part in judged.parts if isinstance(part, Table))
for part in (first, *(one for one in more if one.title.startswith("Models"))):
    here.table(part.title, part.rows, columns=part.columns)
here.figure(judged.figures["machines"](), "Mean time lost by choices, by what chooses.", "model-accuracy-machines")
here.publish({"trusted": trusted[["collective", "message_bytes", "source"]].to_dict("records")})
