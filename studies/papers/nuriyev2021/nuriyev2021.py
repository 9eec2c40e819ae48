# %% [markdown]
# # Nuriyev & Lastovetsky 2021: do implementation-aware models choose well?
#
# E. Nuriyev and A. Lastovetsky, "Efficient and Accurate Selection of Optimal Collective Communication Algorithms Using
# Analytical Performance Modeling", IEEE Access 9 (2021), doi 10.1109/ACCESS.2021.3101689, write one formula for each
# broadcast and gather algorithm of Open MPI, fit alpha and beta for each algorithm on its own, and let the smallest
# predicted time choose. This study asks four things:
#
# - **(a)** Do the published formulas with the published parameters make the published choices?
# - **(b)** Does the method choose well where everything can be repeated: on the same two clusters in simulation?
# - **(c)** Is the best algorithm in simulation the one that the paper measured?
# - **(d)** Is it on a supercomputer, too: table 8, with 1024 processes of Shaheen II?
#
# Nothing here is adjusted to make rows agree. Formulas, tables and sections are numbered as in the paper.

# %%
import numpy as np

from collwise.common.units import format_seconds, format_size
from collwise.models.hockney import Hockney
from collwise.models.registry import AS_PRINTED, BY_PARTS
from collwise.studies.figures import picks as draw
from collwise.studies.papers.figures import in_order, panels
from collwise.studies.papers.nuriyev2021 import published_model as published, simulated as paper
from collwise.studies.papers.study import Study
from collwise.studies.present.scores import points
from collwise.studies.reports.markdown import whole_percent
from collwise.validation.libraries.baselines import PAPERS
from collwise.validation.times.defaults import SEGMENT_BYTES

here = Study("nuriyev2021", globals())

# %% [markdown]
# ## (a) Published formulas, published parameters
#
# Tables 2 and 3 print a choice of the model for each message size, on Grisou with 90 processes and on Gros with 100;
# table 8 does for 1024 processes of Shaheen II. Tables 4, 5 and 7 give alpha and beta, table 6 gives gamma, and the
# segment is 8 KB. That is all that formulas (1) to (15) ask for.
#
# **Formula (7), the binomial broadcast, can be read in several ways.** In the article's text no sign stands between
# its two terms; its last term, - 1, may belong to the sum or not; and the height of the tree is written with a floor,
# although the binomial tree's root has ceil(log2 P) children. Equation (6), from which (7) is derived, adds up the
# times of stages, so the project's models have a plus there. Taken at its word, (7) has a product. All twelve
# combinations are evaluated, and two other readings: (9) with whole segments in each half, and (11) with the longest
# chain.
#
# **gamma of Shaheen II is not published.** Four stand-ins are used: the gamma of either cluster, continued as a
# straight line as section IV-B suggests, and the two bounds of inequality (2).

# %%
matches = published.all_matches()
here.table(
    "Broadcast: rows of ten in which the formulas choose what the paper prints",
    published.matches_table(matches, "bcast"),
)
here.table("Gather: rows of five", published.matches_table(matches, "gather"))

# %%
plus, product, gather = published.ADOPTED["bcast"], published.LITERAL, published.ADOPTED["gather"]
for table in published.TABLES:
    for reading in (plus, product) if table.collective[0] == "bcast" else (gather,):
        # One stand-in for Shaheen II is shown row by row; the table above counts the rows of all.
        gamma = "Gros's" if table.cluster[0] == "shaheen-ii" else "table 6"
        choices = published.published_choices(table, reading, gamma)
        here.table(f"{table.table[0]}; {reading}; gamma: {gamma}", published.row_by_row(choices))

# %% [markdown]
# "Explained by rounding" asks whether some alpha and beta that round to the printed digits would make the printed
# choice. The last column is the slowdown of Open MPI's choice against the measured best, as the formulas predict it.

# %%
grisou, gros, shaheen = published.TABLE_2_GRISOU, published.TABLE_2_GROS, published.TABLE_8_SHAHEEN
bcast_rows = sum(len(table) for table in (grisou, gros, shaheen))
gather_rows = sum(len(table) for table in published.TABLES if table.collective[0] == "gather")
counted = matches.groupby(["reading", "gamma", "cluster"]).rows.sum()
shown_gammas = (("table 6", "grisou"), ("table 6", "gros"), ("Gros's", "shaheen-ii"))
by_plus, by_product = ([counted[reading, *one] for one in shown_gammas] for reading in (plus, product))
by_product_with_grisou = counted[product, "Grisou's", "shaheen-ii"]
gathered = counted[gather, "table 6"].sum()
here.say("matches")
for table, gamma in ((gros, "table 6"), (shaheen, "Gros's")):
    binomial, binary = (published.segment_seconds(table.cluster[0], name) for name in ("binomial", "binary"))
    wanted = [
        "{:.3f} to {:.3f}".format(*published.segment_ratios_that_match(table, "binomial", "binary", reading, gamma))
        for reading in (plus, product)
    ]
    here.say("segment_ratio")
times = [format_seconds(published.segment_seconds("grisou", name)) for name in ("binomial", "binary")]
here.say("readings")
here.say("contradictions")

# %% [markdown]
# ### What one segment size says about alpha and beta
#
# The broadcast rows of tables 4, 5 and 7 give latencies around 1e-12 seconds, a millionth of what any network has. A
# reason is visible in the ratio of alpha to beta. With a single segment size, every message of a segmented broadcast
# has the same length, so each equation says only what alpha + m_s beta is. Among all pairs with the same sum, the
# smallest has alpha : beta = 1 : m_s.

# %%
ratios = published.alpha_beta_ratios()
here.table(
    "m_s alpha / beta of the published broadcast parameters, and the interval that the printed digits allow",
    ratios,
    floats="{:.3f}",
)
true = Hockney(2e-5, 1e-9)
here.table(
    f"Least squares of least norm on exact times made with alpha = {true.alpha_seconds:g} s, "
    f"beta = {true.beta_seconds_per_byte:g} s/byte",
    published.minimum_norm_table(true),
)
ones = int(ratios["1 possible?"].sum())
others = ", ".join(
    f"{r.algorithm} on {r.platform} ({r.ratio:.3f})" for r in ratios[~ratios["1 possible?"]].itertuples()
)
exchange = published.PARAMETERS["grisou", "bcast"]["split_binary"].beta_seconds_per_byte
long = published.PARAMETERS["grisou", "gather"]["binomial"].beta_seconds_per_byte
here.say("alpha_and_beta")

# %% [markdown]
# ## (b) The same tables from parameters fitted in simulation
#
# Grisou and Gros are simulated with SimGrid's SMPI. Their descriptions are calibrated against gamma of table 6 and the
# gather parameters of tables 4 and 5, not against any broadcast of table 2. The fits use 40 processes on Grisou, two
# per node, and 124 on Gros, one per node, as section V-B says. Two models are fitted: **as printed** (one alpha and
# beta per algorithm, experiments of formula (16), a plus in (7)), and **by parts** (each part of an algorithm has its
# own). Trees run the paper's Algorithm 1 as printed; elsewhere the project's trees post the next segment's receive
# before they send a segment on. Degradation is the simulated time of the pick divided by that of the fastest algorithm,
# minus 1.

# %%
with here.context() as simulation:
    context = paper.with_algorithm_1(simulation)
    tables = paper.fitted_tables(context)
    over_procs = {one.cluster.name: paper.picks_over_procs(one, context) for one in tables if one.collective == "bcast"}
maker = tables[0].scores.right.maker
here.text(f"Simulated by {maker}.")

# %%
for fitted in tables:
    scores, procs = fitted.scores.without(AS_PRINTED), fitted.cluster.table_procs
    printed = points(scores, fitted.printed_places)
    title = f"{fitted.collective} on {fitted.cluster.name}, P = {procs}, simulated; model: by parts"
    here.table(title, (row[1:] for row in printed.rows), columns=printed.columns[1:])
slowdowns = {fitted.title: fitted.slowdowns() for fitted in tables}
here.table(
    "Degradation over all process counts and sizes, mean / worst (%)",
    (
        (
            *(fitted.title, ", ".join(map(str, fitted.cluster.procs))),
            *(f"{100 * one.mean:.1f} / {100 * one.worst:.1f}" for one in slowdowns[fitted.title].values()),
        )
        for fitted in tables
    ),
    columns=["cluster and collective", "P", *paper.SOURCES],
)
here.table(
    "Rows where the pick of the model as printed is more than 10 % off",
    (
        (
            *(fitted.cluster.name, scores.right.procs[i], format_size(scores.right.message_bytes[j])),
            *(scores.pick(None, i, j).name, f"{picked.name} ({whole_percent(picked.slowdown)})"),
        )
        for fitted in tables
        for scores in (fitted.scores,)
        for i, j in scores.places(*scores.times)
        for picked in (scores.pick(AS_PRINTED, i, j),)
        if picked.slowdown > published.NEAR_OPTIMAL
    ),
    columns=["cluster", "P", "m", "best", "pick (%)"],
)

# %% [markdown]
# Figure 5 of the paper: time of each source's pick over the message size. "common segments" is Open MPI's algorithm
# at the common segment size of 8 KiB, as in the paper; the other line has the sizes that Open MPI 3.1 ships.

# %%
for fitted in tables:
    title = f"{fitted.collective} on {fitted.cluster.name.capitalize()}, simulated"
    figure = draw.picks_by_size(fitted.scores.without(AS_PRINTED), title)
    here.figure(figure, f"Figure 5: {title}.", f"figure-5-{fitted.collective}-{fitted.cluster.name}")

# %% [markdown]
# Figure 6: the message size is fixed and P varies. The text of the paper does not give its size; here are one with two
# segments and one with many.

# %%
for name, result in over_procs.items():
    title = f"bcast on {name.capitalize()}, simulated"
    here.figure(draw.picks_by_procs(result, title), f"Figure 6: {title}.", f"figure-6-{name}")
over_procs_costs = {name: result.summary(BY_PARTS) for name, result in over_procs.items()}
costs = (f"{name} {100 * one.mean:.1f} % mean, {100 * one.worst:.1f} % worst" for name, one in over_procs_costs.items())
here.say("over_procs")

# %% [markdown]
# Figure 3: binary and binomial tree on Grisou with 90 processes. The traditional formulas of section III-C take alpha
# and beta from roundtrips and know no segments.

# %%
bcast_grisou = tables[0]
curves = paper.traditional_and_ours(bcast_grisou)
faster = ", ".join(f"{kind} {(of.binomial < of.binary).sum()}" for kind, of in curves.items())
apart = {kind: np.log(curves[kind] / curves["simulated"]).abs().max().max() for kind in ("traditional", "by parts")}
factors = ", ".join(f"{kind} {np.exp(one):.2f}" for kind, one in apart.items())
styles, title = in_order(curves["simulated"]), "Binary and binomial broadcast on Grisou, P = 90"
figure, axes = panels(curves, styles, title, (4.2, 3.6), sizes=bcast_grisou.scores.right.message_bytes, sharey=True)
axes[0].legend()
here.figure(figure, "Figure 3: by traditional formulas, simulated, and by the fitted model by parts.")
here.say("traditional")

# %% [markdown]
# ## (c) The simulated best against the measured best
#
# Each row of tables 2 and 3 beside the simulation of the same point. "Indistinguishable" counts the simulated best as
# agreeing when the paper prints it with at most 3 % slowdown: its means are precise to 2.5 %.

# %%
agreements = paper.agreement_with_measured_best(tables)
for title, rows in agreements.groupby("table", sort=False):
    here.table(f"{title}: measured (paper) and simulated", paper.agreement_rows(rows))
counts = paper.agreement_counts(agreements)
here.table(
    "Agreement. 'The same way': near optimal (10 %) in both, or in neither",
    (
        (*one[:4], whole_percent(one.worst_slowdown_of_measured_best), one.openmpi_same_way, one.model_same_way)
        for one in counts.itertuples()
    ),
    columns=[
        "table", "rows", "same best", "indistinguishable", "measured best in simulation, worst (%)",
        "Open MPI the same way", "model's pick the same way",
    ],
)  # fmt: skip

# %% [markdown]
# ### Where they differ, and why
#
# The published segment time, alpha + m_s beta, is the one number of each broadcast row that can be compared.

# %%
segment_times = paper.segment_times(tables)
here.table(
    "Time of a segment of 8 KiB, alpha + m_s beta, by the model as printed",
    segment_times.map(format_seconds).reset_index(),
)
gather_gros = published.TABLE_3_GROS.openmpi_percent
ratio = segment_times.loc["gros", "chain"] / segment_times.loc["gros", "k_chain"]
bcasts = agreements[agreements.collective == "bcast"]
(at_512,) = bcasts[(bcasts.cluster == "gros") & (bcasts.kib == 512)].itertuples()
(by_formula,) = published.published_choices(gros, product).query("kib == 512").openmpi_slowdown
here.say("chain")
large = bcasts[(bcasts.kib >= 512) & (bcasts.model == "binary")]
parameters = bcast_grisou.parameters
step, half_roundtrip = (
    format_seconds(float(one.predict(SEGMENT_BYTES)))
    for one in (parameters.fits[BY_PARTS]["bcast"]["chain"].parameters["steady/eager"], parameters.hockney)
)
here.say("binary")
differing = [
    f"{published.BCAST_CLUSTERS[row.cluster]} {row.kib} KB ({row.best} measured, {row.simulated_best} simulated, "
    f"{whole_percent(row.best_slowdown)} % apart)"
    for row in bcasts[(bcasts.kib <= 32) & ~bcasts.same_best].itertuples()
]
at_binomial = [format_seconds(seconds) for seconds in segment_times.loc["gros", "binomial"]]
here.say("small_messages")

# %% [markdown]
# ## (d) Table 8: 1024 processes of Shaheen II
#
# Shaheen II is described from what others measured on machines of its kind (docs/platforms.md). No figure of
# this article went into the description, and the memory and the links between groups are estimates. 1024 processes are
# out of SMPI's reach for the larger messages, so the schedule engine times all rows, and SMPI those up to 328 KB. The
# models are fitted in SMPI on 64 processes, two per node; the article does not say how many it took.

# %%
with here.context() as simulation:
    shaheen_ii = paper.shaheen(paper.with_algorithm_1(simulation))
at_1024 = paper.agreement_with_measured_best([shaheen_ii.table], [shaheen])
here.table("Table 8: measured (paper) and simulated by the schedule engine", paper.agreement_rows(at_1024))
here.table(
    f"Seconds of a broadcast on {paper.SHAHEEN.procs[0]} processes: schedule engine, and SMPI where it reaches",
    paper.both_engines(shaheen_ii),
)
apart = paper.engines_apart(shaheen_ii)
picks = paper.picks_of_models(shaheen_ii)
here.table("Picks of the models fitted in simulation, and their slowdowns in simulation (%)", picks)
by_smpi = shaheen_ii.smpi
here.say("engines")

# %% [markdown]
# ### Where they differ, and why

# %%
shown = paper.printed_picks(shaheen_ii)
here.table(
    "Slowdowns against the best of the algorithms that table 8 names (%): measured, by the published formulas, "
    "simulated, and simulated with segments below the rendezvous threshold",
    shown,
    floats="{:.0f}",
)
chains = shown[shown.algorithm == "chain"]
split = at_1024[at_1024.best == "binary"].best_slowdown
binary = shown[(shown.algorithm == "binary") & (shown.measured == 0)]
eager = binary["simulated, eager segments"]
of_smpi = (by_smpi.binary / by_smpi.split_binary - 1)[lambda ratios: ratios.index > 8 * published.KIB]
(first,) = at_1024[at_1024.kib == 8].itertuples()
here.say("table_8")

# %% [markdown]
# ## Conclusions

# %%
here.conclude_all("conclude_published")
everywhere = {label: paper.over_all(tables, label) for label in ("by parts", "as printed", PAPERS.title)}
by_parts, as_printed, openmpi = everywhere.values()
here.conclude_all("conclude_fitted")
bcast_counts = counts[counts.index.str.endswith("bcast")].sum()
gathers_agree = agreements.same_best[agreements.collective == "gather"].all()
same = f"(c) The simulated best is the measured one in {counts.same_best.sum()} of {len(agreements)} rows"
here.conclude_all("conclude_agreement")

by_models = shaheen_ii.table.scores.summary(AS_PRINTED)
here.conclude_all("conclude_table_8")

# %%
here.publish({
    "table_8": paper.mean_and_worst(by_models) | {
        "rows": len(at_1024),
        **{name: int(at_1024[name].sum()) for name in (
            "same_best", "best_within_precision", "openmpi_same_way", "model_same_way"
        )},
        "engines_apart": {"median": float(apart.median()), "most": float(apart.max())},
    },
    "simulated_by": maker,
    "matches_by_reading": {
        title: rows[["reading", "gamma", "rows"]].to_dict("records")
        for title, rows in matches.groupby("table", sort=False)
    },
    "published_rows": {table.table[0]: len(table) for table in published.TABLES},
    "alpha_beta_one_within_rounding": {"rows": len(ratios), "one": ones},
    "slowdown": {
        title: {label: paper.mean_and_worst(one) for label, one in of.items()} for title, of in slowdowns.items()
    },
    "slowdown_over_procs": {name: paper.mean_and_worst(one) for name, one in over_procs_costs.items()},
    "all_points": {label: {"points": one.points} | paper.mean_and_worst(one) for label, one in everywhere.items()},
    "agreement": counts.to_dict("index"),
})  # fmt: skip
