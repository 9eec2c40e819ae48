# %% [markdown]
# # Pješivac-Grbović et al. 2007: what do models from point-to-point parameters say about collectives?
#
# J. Pješivac-Grbović, T. Angskun, G. Bosilca, G. E. Fagg, E. Gabriel and J. J. Dongarra, "Performance analysis of MPI
# collective operations", Cluster Computing 10 (2007), write formulas for barrier, broadcast, reduce and alltoall under
# Hockney, LogP/LogGP and PLogP, measure their parameters on two clusters, Boba and Frodo, and compare predictions and
# choices with measurements. Here both clusters are simulated, from descriptions made from the LogGP parameters of
# their table 5, and the same questions are asked.
#
# The simulation can show whether the models are right where the network is as simple as in LogGP. It cannot show
# anything that TCP, switches and MPI libraries of those years did beyond table 5. The curves of the figures are
# not printed as numbers; the claims that the text makes about them are, and each is checked below.
#
# **As printed** stands for the formulas of tables 1 to 4 and for parameters by the paper's procedures: Hockney's as
# functions of m from roundtrips, PLogP's gap and latency fitted to the chain broadcast and the flat-tree barrier,
# LogGP made from that PLogP. **Derived** stands for formulas that follow from the algorithms where the printed ones do
# not (docs/models.md), with parameters by the usual procedures: Hockney by regression, LogGP by Culler's, PLogP by
# Kielmann's. Nothing is adjusted to make results agree.

# %%
from collections.abc import Iterable
from dataclasses import replace

import pandas as pd

from collwise.common.units import format_seconds, format_size
from collwise.platforms import load_description
from collwise.studies.figures.maps import decision_figure, slowdown_figure
from collwise.studies.papers.pjesivac2007 import analysis as paper, claims, figures as draw
from collwise.studies.papers.pjesivac2007.claims import CheckedClaim
from collwise.studies.papers.study import Study
from collwise.validation.compare.scores import CLOCK
from collwise.validation.compare.simulated import beside_simulation, one_segment_is_none
from collwise.validation.select.select import select
from collwise.validation.times.sources import predicted

here = Study("pjesivac2007", globals())
boba, frodo = load_description("boba"), load_description("frodo")
findings: list[CheckedClaim] = []


def show_findings(title: str, found: Iterable[CheckedClaim], derived: Iterable[CheckedClaim] = ()) -> None:
    """Shows the findings and counts them; `derived` are findings on the same claims with derived formulas."""
    found = [*found]
    findings.extend(found)
    here.table(title, claims.findings_table(found, derived))


# %% [markdown]
# ## Parameters: table 5 and figure 1
#
# The description charges a send with g, since SMPI has no gap besides overheads and links; so its L is shorter than
# table 5's by g - o, and a message of m bytes takes L + 2 o + (m - 1) G, as by table 5. "o" below is the mean of
# sending's and receiving's. Each procedure takes six processes; the fit to broadcast and barrier, whose times are
# straight in P, takes two, four and six.

# %%
with here.context() as context:
    loggp = {platform.name: paper.table_5(platform, context) for platform in (boba, frodo)}
    parameters = {platform.name: paper.figure_1(platform, context) for platform in (boba, frodo)}
table_5 = {name: paper.loggp_parameters(columns) for name, columns in loggp.items()}
for name, columns in table_5.items():
    here.table(f"Table 5: LogGP on {name.capitalize()}, by procedure", paper.table_5_text(columns))
off = {
    procedure: max(paper.worst_difference(columns, procedure) for columns in table_5.values())
    for procedure in paper.PROCEDURES
}
held, fitted = loggp["boba"]["description"], loggp["boba"]["fitted"]
here.say("table_5")
here.figure(
    draw.parameters({"Boba": parameters["boba"], "Frodo": parameters["frodo"]}, "Parameters, simulated"),
    "Figure 1: Hockney's alpha and beta, and PLogP's parameters, measured and fitted. From the eager limit on a sender "
    "waits for its receiver, and a message costs no overhead. Alpha and beta are those of the line to the next "
    "size, and that from 64 KiB on crosses the limit.",
)
show_findings("Figure 1", claims.parameters(parameters["boba"]))

# %% [markdown]
# ## Barrier: figure 2

# %%
with here.context() as context:
    models = paper.models_of_set(paper.AS_PRINTED, boba, context)
    barriers = paper.compared(boba, paper.BARRIERS, models, context)
here.figure(draw.over_procs(barriers, "Barriers on Boba"), "Figure 2: barriers, simulated and predicted as printed.")
show_findings("Figure 2", claims.barriers(barriers, parameters["boba"].measured))

# %% [markdown]
# ## Reduce: figures 3 and 4
#
# The text does not say where the axis of figure 3 ends. "Small" is up to 512 B here and in all that follows, "large"
# from 128 KiB on.

# %%
plan = paper.REDUCTIONS
with here.context() as context:
    reductions = paper.compared(boba, plan, models, context)
here.figure(
    draw.over_sizes(reductions, "Reduce on Boba"),
    "Figure 3: reduce, unsegmented and by 1 KiB, simulated and predicted as printed.",
)
of = parameters["boba"]
conditions = paper.segmentation_conditions(of, plan.message_bytes, boba.reduce_seconds_per_byte)
here.figure(
    draw.conditions(conditions, "Segments help a binomial reduction where the whole costs more"),
    "Figure 4: both sides of the conditions under which segments of 1 KiB would make binomial reduce faster.",
)
show_findings("Figures 3 and 4", claims.reductions(reductions, conditions, of.eager_limit_bytes))

# %% [markdown]
# ## Alltoall: figure 5

# %%
with here.context() as context:
    exchanges = paper.compared(boba, paper.EXCHANGES, models, context)
here.figure(
    draw.exchange(exchanges, "pairwise", (2, 8, 16, 24), "Pairwise exchange on Boba"),
    "Figure 5: pairwise alltoall, simulated and predicted as printed.",
)
show_findings("Figure 5", claims.exchanges(exchanges))

# %% [markdown]
# ## Broadcast: figures 6 and 7
#
# Linear, binomial, binary, split-binary and chain ("pipeline" in the paper), unsegmented and by 1 and 8 KiB, on Frodo,
# for P = 3 to 32 and m from 1 B to 8 MiB. Linear has no segments here. The best method by simulation replaces the
# paper's measured one. A penalty is the slowdown of a model's pick against the best method.

# %%
plan = paper.FEW_BROADCASTS if here.quick else paper.BROADCASTS
with here.context() as context:
    model_sets = {name: paper.models_of_set(name, frodo, context) for name in paper.MODEL_SETS}
    maps = {}
    for name, models in model_sets.items():
        predictions = [one_segment_is_none(predicted(model, plan)) for model in models]
        maps[name] = beside_simulation(frodo, plan, predictions, context)
printed, derived = maps[paper.AS_PRINTED], maps[paper.DERIVED]
here.text(f"Simulated by {printed.right.complete().maker}: {len(plan.cases())} times.")
for name, made in ((paper.AS_PRINTED, printed), (paper.DERIVED, derived)):
    stem, caption = name.replace(" ", "-"), f"Figure 6: the best method, simulated and by the models {name}."
    here.figure(decision_figure(made, f"Best broadcast on Frodo; models {name}"), caption, f"figure-6-{stem}")
    figure = slowdown_figure(made, f"Penalty of the models' picks, {name}: broadcast on Frodo")
    here.figure(figure, f"Figure 7: the penalties of the picks of the models {name}.", f"figure-7-{stem}")

# %%
show_findings("Figure 6 (a): the best methods", claims.on_maps(printed, "6a"))
show_findings(
    "Figure 6 (b) to (d): the models' picks",
    *(claims.on_maps(one, "6b", "6c", "6d") for one in (printed, derived)),
)  # fmt: skip
show_findings("Figure 7: penalties", *(claims.on_maps(one, "7") for one in (printed, derived)))
summaries = {(name, model): made.summary(model, CLOCK) for name, made in maps.items() for model in made.times}
rows = [
    (
        *(name, model, f"{100 * one.best_share:.0f} %", f"{100 * one.mean:.1f} %", f"{100 * one.worst:.0f} %"),
        f"P = {plan.procs[one.worst_at[0]]}, {format_size(plan.message_bytes[one.worst_at[1]])}: "
        f"{maps[name].pick(model, *one.worst_at).label}",
    )
    for (name, model), one in summaries.items()
]
columns = ["formulas and parameters", "model", "picks the best", "mean penalty", "worst", "at"]
here.table("Penalties over the whole map: formulas and procedures apart", pd.DataFrame(rows, columns=columns))

# %% [markdown]
# ### The cost of a further segment of the chain
#
# The switch from 1 to 8 KB depends on it. By LogGP a pipeline passes on one segment per gap.

# %%
steps = paper.chain_steps(printed, loggp["frodo"]["description"])
times = steps.drop(columns="segment_bytes").map(format_seconds)
times.insert(0, "segment", steps.segment_bytes.map(format_size))
columns = ["segment", "each further one, simulated", "g + (m_s - 1) G", "a whole message"]
here.table("Chain on Frodo, simulated, beside LogGP with the description's parameters", times.set_axis(columns, axis=1))
longer = 100 * (steps.simulated_seconds / steps.gap_seconds - 1)
here.say("segments")

# %% [markdown]
# ### Exact switching points
#
# A decision table made from a model holds, to the byte, where its choice changes; the paper remarks that for large
# messages this depends on P.

# %%
exact = replace(paper.BROADCASTS, procs=(4, 8, 16, 24, 32))
switches = dict(sorted(select(predicted(model_sets[paper.DERIVED][1], exact), exact=True).rules.items()))
here.table(
    "Where LogGP (derived, Culler's parameters) switches on Frodo: first message size in bytes and method",
    ((procs, "; ".join(f"{start}: {choice.label}" for start, choice in row)) for procs, row in switches.items()),
    columns=["P", "switches"],
)
last = {procs: row[-1][0] for procs, row in switches.items()}
here.say("switches")

# %% [markdown]
# ## Conclusions

# %%
verdicts = [one.verdict for one in findings]
tally = {verdict: verdicts.count(verdict) for verdict in (claims.YES, claims.IN_PART, claims.NO)}
here.conclude_all("conclude_tally")
others = [one for one in findings if one.verdict != claims.YES]
unexplained = [one for one in others if one.published.open]
here.conclude_all("conclude_claims")
best = {name: min(made.times, key=lambda model: made.summary(model).mean) for name, made in maps.items()}
for name in (paper.AS_PRINTED, paper.DERIVED):
    costs = [f"{model} {100 * summaries[name, model].mean:.1f} %" for model in maps[name].times]
    here.conclude_all("conclude_penalties")
chain = {name: claims.Map(made, "PLogP").share(paper.CLAIMS["best-large"]) for name, made in maps.items()}
here.conclude_all("conclude_split_binary")
here.publish({
    "claims": {
        one.claim: {"here": one.here, "verdict": one.verdict, "reason": one.published.reason} for one in findings
    },
    "tally": tally,
    "loggp": {name: columns.loc[["L", "o", "g", "G"]].to_dict() for name, columns in table_5.items()},
    "penalties": {
        f"{name}; {model}": {"mean": one.mean, "worst": one.worst, "best_share": one.best_share}
        for (name, model), one in summaries.items()
    },
    "chain_steps": steps.to_dict("records"),
    "last_switch_bytes": {str(procs): size for procs, size in last.items()},
})  # fmt: skip
