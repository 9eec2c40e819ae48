# %% [markdown]
# # Pješivac-Grbović et al. 2007: what do models from point-to-point parameters say about collectives?
#
# J. Pješivac-Grbović et al., "Performance analysis of MPI collective operations", Cluster Computing 10 (2007), predict
# collectives by Hockney, LogP/LogGP and PLogP, and compare with two clusters, Boba and Frodo. Here SMPI and the
# schedule engine simulate both from table 5's LogGP. **By construction** the network is as simple as LogGP, so that
# formulas are at their best; further effects of the TCP, switches and libraries of those years cannot appear. Decision
# functions from times measured under Open MPI are in [models against measured times](models-measured.md).
#
# The curves of the figures are not printed as numbers. So each claim of the text about the curves is checked. **As
# printed** stands for the formulas of tables 1 to 4 and parameters by the paper's procedures, **derived** for formulas
# that follow from the algorithms ([models](models.md)) and the usual procedures. Nothing is adjusted to agree.

# %%
from dataclasses import replace

import pandas as pd

from collwise.studies.figures.maps import decision_figure, slowdown_figure
from collwise.studies.papers.pjesivac2007 import analysis as paper, claims, figures as draw
from collwise.studies.papers.study import Study
from collwise.validation.compare.scores import CLOCK
from collwise.validation.select.select import select
from collwise.validation.times.sources import predicted

here = Study("pjesivac2007", globals())
# The schedule engine has all points within a minute.
plans = {"smpi": paper.FEW_BROADCASTS if here.quick else paper.BROADCASTS, "schedule": paper.BROADCASTS}
with here.context() as context:
    asked = context.engine.name
    first = paper.repeated(plans[asked], context)
(other,) = plans.keys() - {asked}
with here.context(other) as context:
    second = paper.repeated(plans[other], context)
engines = {asked: first, other: second}
printed, derived = first.maps[paper.AS_PRINTED], first.maps[paper.DERIVED]

# %% [markdown]
# ## What to take away

# %%
found = {engine: claims.all_of(repeated, paper.AS_PRINTED) for engine, repeated in engines.items()}
by_derived = claims.all_of(first, paper.DERIVED)
tallies = {engine: claims.tally(entry.values()) for engine, entry in found.items()}
if here.quick:
    with here.context("schedule") as context:
        by_few = claims.all_of(paper.repeated(paper.FEW_BROADCASTS, context), paper.AS_PRINTED)
    by_all = found["schedule"]
    here.say("quick", few=paper.FEW_BROADCASTS, changed=[name for name in by_all
                                                         if by_few[name].verdict != by_all[name].verdict])  # fmt: skip
here.conclude_all("conclude_tally")
summaries = {
    (engine, name, model): made.summary(model, CLOCK)
    for engine, repeated in engines.items()
    for name, made in repeated.maps.items()
    for model in made.times
}
here.conclude_all("conclude_penalties")
table_5 = {name: paper.loggp_parameters(columns) for name, columns in first.loggp.items()}
off = {
    procedure: max(paper.worst_difference(columns, procedure) for columns in table_5.values())
    for procedure in paper.PROCEDURES
}
held, fitted = first.loggp["boba"]["description"], first.loggp["boba"]["fitted"]
here.conclude_all("conclude_parameters")
chain = {name: claims.Map(made, "PLogP").share(paper.CLAIMS["best-large"]) for name, made in first.maps.items()}
steps = {engine: paper.chain_steps(repeated.maps[paper.AS_PRINTED], repeated.loggp["frodo"]["description"])
         for engine, repeated in engines.items()}  # fmt: skip
longer = {engine: 100 * (step.simulated_seconds / step.gap_seconds - 1) for engine, step in steps.items()}
here.conclude_all("conclude_formulas")

# %% [markdown]
# ## Parameters: table 5 and figure 1

# %%
for name, columns in table_5.items():
    here.table(f"Table 5: LogGP on {name.capitalize()}, by procedure", paper.table_5_text(columns))
here.figure(
    draw.parameters(
        {name.capitalize(): parameter for name, parameter in first.parameters.items()}, "Parameters, simulated"
    ),
    "Figure 1: Hockney's alpha and beta, and PLogP's parameters, measured and fitted.",
)

# %% [markdown]
# ## Curves: figures 2 to 5
#
# Points are simulated, lines predicted as printed.

# %%
here.figure(draw.over_procs(first.barriers, "Barriers on Boba"), "Figure 2: barriers.")
here.figure(draw.over_sizes(first.reductions, "Reduce on Boba"), "Figure 3: reduce, unsegmented and by 1 KiB.")
here.figure(
    draw.conditions(first.conditions, "Segments help a binomial reduction where the whole costs more"),
    "Figure 4: both sides of the conditions under which segments of 1 KiB would make binomial reduce faster.",
)
here.figure(
    draw.exchange(first.exchanges, "pairwise", (2, 8, 16, 24), "Pairwise exchange on Boba"),
    "Figure 5: pairwise alltoall.",
)

# %% [markdown]
# ## Decision functions: figures 6 and 7
#
# Broadcast on Frodo by linear, binomial, binary, split-binary and chain ("pipeline" in the paper), unsegmented and by 1
# and 8 KiB. Linear has no segments here. A penalty is the slowdown of a model's pick against the best method.

# %%
for name, made in ((paper.AS_PRINTED, printed), (paper.DERIVED, derived)):
    stem = name.replace(" ", "-")
    if made is printed:
        caption = f"Figure 6: the best method, simulated and by the models {name}."
        here.figure(decision_figure(made, f"Best broadcast on Frodo; models {name}"), caption, f"figure-6-{stem}")
    figure = slowdown_figure(made, f"Penalty of the models' picks, {name}: broadcast on Frodo")
    here.figure(figure, f"Figure 7: the penalties of the picks of the models {name}.", f"figure-7-{stem}")
rows = [
    (
        *(engine, name, model),
        f"{100 * summary.best_share:.0f} %",
        f"{100 * summary.mean:.1f} %",
        f"{100 * summary.worst:.0f} %",
    )
    for (engine, name, model), summary in summaries.items()
    if name in (paper.AS_PRINTED, paper.DERIVED)
]
columns = ["engine", "formulas", "model", "best picked", "mean penalty", "worst"]
here.table("Penalties over the whole map", pd.DataFrame(rows, columns=columns))

# %% [markdown]
# ## Claims that do not hold in full

# %%
heads = ["why", f"claims: {' / '.join(engines)}, or both"]
here.table("Reasons, or open questions", claims.findings_table(*found.values()), columns=heads)

# %% [markdown]
# ## What the authors could not do
#
# The paper reads switching points off maps on a grid, and remarks that for large messages they depend on P. A decision
# table made from a model has switching points that are exact to the byte, and becomes rules that Open MPI reads:
#
# ```sh
# ./collwise fit --platform frodo --model loggp
# ./collwise predict --parameters results/frodo.loggp.parameters.toml --collective bcast --procs 4,8,16,24,32 -o l.times
# ./collwise select l.times --exact -o l.json
# ```

# %%
exact = replace(paper.BROADCASTS, procs=(4, 8, 16, 24, 32))
(loggp,) = (times.between for name, times in derived.times.items() if name == "loggp" and times.between is not None)
switches = dict(sorted(select(predicted(loggp, exact), exact=True).rules.items()))
last = {procs: row[-1][0] for procs, row in switches.items()}
here.say("beyond")
here.publish({
    "claims": {
        name: {"here": claim.here, "verdict": claim.verdict, "reason": claim.published.reason}
        for name, claim in found[asked].items()
    },
    "tally": tallies[asked],
    "tallies": tallies,
    "loggp": {name: columns.loc[["L", "o", "g", "G"]].to_dict() for name, columns in table_5.items()},
    "penalties": {
        "; ".join(key): {"mean": summary.mean, "worst": summary.worst, "best_share": summary.best_share}
        for key, summary in summaries.items()
    },
    "chain_steps": steps[asked].to_dict("records"),
    "last_switch_bytes": {str(procs): size for procs, size in last.items()},
})  # fmt: skip
