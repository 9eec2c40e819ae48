# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Nuriyev & Lastovetsky 2021: do implementation-aware models choose well?
#
# E. Nuriyev and A. Lastovetsky, "Efficient and Accurate Selection of Optimal Collective Communication Algorithms Using
# Analytical Performance Modeling", IEEE Access 9 (2021), doi 10.1109/ACCESS.2021.3101689, write one formula for each
# broadcast and gather algorithm of Open MPI, fit alpha and beta for each algorithm on its own, and let the smallest
# predicted time choose. This study asks three things:
#
# - **(a)** Do the published formulas with the published parameters make the published choices?
# - **(b)** Does the method choose well where everything can be repeated: on the same two clusters in simulation?
# - **(c)** Is the best algorithm in simulation the one that the paper measured?
#
# Nothing here is adjusted to make rows agree. Formulas, tables and sections are numbered as in the paper.

# %%
import numpy as np

from collwise.common.units import format_seconds, format_size
from collwise.models.hockney import Hockney
from collwise.studies.figures import style as draw
from collwise.studies.papers.notebook import study
from collwise.studies.papers.nuriyev2021 import analysis as paper
from collwise.studies.papers.nuriyev2021 import tables as published
from collwise.studies.tuning import percent, table_columns, table_row
from collwise.validation.selection.grid import SEGMENT_BYTES

here = study("nuriyev2021")
titles = {"grisou": "Grisou", "gros": "Gros", "shaheen": "Shaheen II"}

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
columns = [
    (table, gamma) for table in published.TABLES if table.collective == "bcast" for gamma in published.gammas_for(table)
]
matches = {table.title: paper.matches_by_reading(table) for table in published.TABLES}
here.table(
    "Broadcast: rows of ten in which the formulas choose what the paper prints",
    ("reading", *(f"{titles[table.platform]}, gamma: {gamma}" for table, gamma in columns)),
    [
        (reading.name, *(matches[table.title][reading.name, gamma] for table, gamma in columns))
        for reading in paper.READINGS
        if reading.collective == "bcast"
    ],
)
gathers = [table for table in published.TABLES if table.collective == "gather"]
here.table(
    "Gather: rows of five",
    ("reading", *(titles[table.platform] for table in gathers)),
    [
        (reading.name, *(matches[table.title][reading.name, "table 6"] for table in gathers))
        for reading in paper.READINGS
        if reading.collective == "gather"
    ],
)


# %%
def row_by_row(table: published.PublishedTable, reading: paper.Reading, gamma: str) -> list[tuple[object, ...]]:
    return [
        (
            choice.row.message_kib,
            choice.row.model,
            choice.choice,
            "yes" if choice.matches else "no",
            "" if choice.matches else f"{percent(choice.excess_of_printed)} %",
            "" if choice.matches else ("yes" if choice.within_rounding else "no"),
            f"{choice.row.openmpi} ({choice.row.openmpi_percent})",
            percent(choice.predicted_openmpi_degradation),
        )
        for choice in paper.published_choices(table, reading, gamma)
    ]


row_columns = (
    "m (KB)", "model, printed", "by the formulas", "same?", "printed choice predicted slower by",
    "explained by rounding?", "Open MPI, printed (%)", "Open MPI, by the formulas (%)",
)  # fmt: skip
shown = {"bcast": (paper.ADOPTED["bcast"], paper.LITERAL), "gather": (paper.ADOPTED["gather"],)}
for table in published.TABLES:
    for reading in shown[table.collective]:
        # One stand-in for Shaheen II is shown row by row; the table above counts the rows of all.
        gamma = "Gros's" if table.platform == "shaheen" else "table 6"
        title = f"{table.title}; {reading.name}; gamma: {gamma}"
        here.table(title, row_columns, row_by_row(table, reading, gamma))

# %% [markdown]
# "Explained by rounding" asks whether some alpha and beta that round to the printed digits would make the printed
# choice. The last column is what the formulas say of Open MPI's choice against the measured best.


# %%
def count_of(table: published.PublishedTable, reading: paper.Reading, gamma: str = "table 6") -> int:
    return matches[table.title][reading.name, gamma]


grisou, gros, shaheen = published.TABLE_2_GRISOU, published.TABLE_2_GROS, published.TABLE_8_SHAHEEN
plus = [count_of(grisou, paper.ADOPTED["bcast"]), count_of(gros, paper.ADOPTED["bcast"]),
        count_of(shaheen, paper.ADOPTED["bcast"], "Gros's")]  # fmt: skip
literal = [count_of(grisou, paper.LITERAL), count_of(gros, paper.LITERAL), count_of(shaheen, paper.LITERAL, "Gros's")]
gathered = sum(count_of(table, paper.ADOPTED["gather"]) for table in gathers)
gather_rows = sum(len(table.rows) for table in gathers)
bcast_rows = sum(len(table.rows) for table in (grisou, gros, shaheen))
literal_with_grisou = count_of(shaheen, paper.LITERAL, "Grisou's")
here.text(
    f"Gather matches in {gathered} of {gather_rows} rows. Broadcast, with the plus that follows from (6): {plus[0]} of "
    f"10 rows on Grisou, {plus[1]} on Gros and {plus[2]} on Shaheen II. With the product that (7) has word for word: "
    f"{literal[0]}, {literal[1]} and {literal[2]}."
)
for table, gamma in ((gros, "table 6"), (shaheen, "Gros's")):
    ratio = paper.segment_seconds(table.platform, "binomial") / paper.segment_seconds(table.platform, "binary")
    wanted = [
        "{:.3f} to {:.3f}".format(*paper.segment_ratios_that_match(table, "binomial", "binary", reading, gamma))
        for reading in shown["bcast"]
    ]
    here.text(
        f"{titles[table.platform]}: by the published parameters a segment takes {ratio:.3f} times as long in the "
        "binomial tree as in the binary tree (alpha + m_s beta). Between these two trees, the printed choices need a "
        f"ratio of {wanted[0]} with the plus and of {wanted[1]} with the product."
    )
times = [paper.segment_seconds("grisou", name) for name in ("binomial", "binary")]
here.text(
    "With the plus, the parameters of table 5 choose the binomial tree for every size on Gros, while table 2 prints "
    f"the binary tree from 256 KB on. Still, {literal[1]} and {literal[2]} matching rows do not prove that the "
    "authors' program multiplies. On Grisou both readings match, and the published segment times of the two trees are "
    f"{format_seconds(times[0])} and {format_seconds(times[1])}, alike, as a fit with the plus gives them."
)
for table, row, decided in paper.openmpi_contradictions():
    here.text(
        f"A cell of the Open MPI columns contradicts the paper's Listing 1: {table.title}, m = {row.message_kib} KB, "
        f"prints {row.openmpi}, and the listing returns {decided}."
    )

# %% [markdown]
# ### What one segment size says about alpha and beta
#
# The broadcast rows of tables 4, 5 and 7 give latencies around 1e-12 seconds, a millionth of what any network has. A
# reason is visible in the ratio of alpha to beta. With a single segment size, every message of a segmented broadcast
# has the same length, so each equation says only what alpha + m_s beta is. Among all pairs with the same sum, the
# smallest has alpha : beta = 1 : m_s.

# %%
ratios = paper.alpha_beta_ratios()
here.table(
    "m_s alpha / beta of the published broadcast parameters, and the interval that the printed digits allow",
    ("platform", "algorithm", "ratio", "from", "to", "1 possible?"),
    [
        (r.platform, r.algorithm, f"{r.ratio:.3f}", f"{r.low:.3f}", f"{r.high:.3f}", "yes" if r.is_one else "no")
        for r in ratios
    ],
)
true = Hockney(2e-5, 1e-9)
recovered = {name: paper.minimum_norm_pair(name, true) for name in published.TABLE_4_GRISOU["bcast"]}
here.table(
    f"Least squares of least norm on exact times made with alpha = {true.alpha_seconds:g} s, "
    f"beta = {true.beta_seconds_per_byte:g} s/byte",
    ("algorithm", "alpha found (s)", "beta found (s/byte)", "m_s alpha / beta", "alpha + m_s beta found", "made with"),
    [
        (
            name, f"{pair.alpha_seconds:.3g}", f"{pair.beta_seconds_per_byte:.3g}",
            f"{SEGMENT_BYTES * pair.alpha_seconds / pair.beta_seconds_per_byte:.3g}",
            format_seconds(float(pair.predict(SEGMENT_BYTES))),
            format_seconds(float(true.predict(SEGMENT_BYTES))),
        )
        for name, pair in recovered.items()
    ],
)  # fmt: skip
ones = sum(r.is_one for r in ratios)
others = ", ".join(f"{r.algorithm} on {r.platform} ({r.ratio:.3f})" for r in ratios if not r.is_one)
beta = {
    kind: published.TABLE_4_GRISOU[kind][name].beta_seconds_per_byte
    for kind, name in (("bcast", "split_binary"), ("gather", "binomial"))
}
here.text(
    f"{ones} of {len(ratios)} published rows are 1 : m_s within the printed digits; not {others}. Only alpha + m_s "
    "beta of such a row carries information: the time of a segment of 8 KB. In the linear tree and in split-binary's "
    "exchange there are messages of other sizes, from which alpha and beta can be told apart (second table); most of "
    "their published rows have the ratio all the same. A linear tree that was fitted with messages of one size would "
    "explain its rows; the article does not say. One consequence: formula (9) prices split-binary's exchange of half "
    f"the message with a beta that stands for whole segment times, {beta['bcast']:.1e} s/byte on Grisou, while the "
    f"binomial gather, whose messages are long, has {beta['gather']:.1e}."
)

# %% [markdown]
# ## (b) The same tables from parameters fitted in simulation
#
# Grisou and Gros are simulated with SimGrid's SMPI. Their descriptions are calibrated against gamma of table 6 and the
# gather parameters of tables 4 and 5, not against any broadcast of table 2. The fits use 40 processes on Grisou, two a
# node, and 124 on Gros, one a node, as section V-B says. Two models are fitted: **as printed** (one alpha and beta an
# algorithm, experiments of formula (16), a plus in (7)), and **by parts** (each part of an algorithm has its own).
# Degradation is the simulated time of the pick over that of the fastest algorithm, less 1.

# %%
with here.context() as context:
    tables = paper.fitted_tables(context)
    over_procs = {
        fitted.cluster.name: paper.picks_over_procs(fitted, context)
        for fitted in tables
        if fitted.collective == "bcast"
    }
maker = tables[0].by_model["by_parts"].sweep.configuration.maker
here.text(f"Simulated by {maker}.")

# %%
paper_procs = {"grisou": 90, "gros": 100}
for fitted in tables:
    name = fitted.cluster.name
    rows = fitted.rows(procs=paper_procs[name])
    here.table(
        f"{fitted.collective} on {name}, P = {paper_procs[name]}, simulated; model: by parts",
        table_columns(rows)[1:],
        [table_row(row)[1:] for row in rows],
    )
sources = (("by_parts", "model"), ("as_printed", "model"), ("by_parts", "openmpi"), ("by_parts", "openmpi_shipped"))
labels = ("by parts", "as printed", "Open MPI 3.1", "Open MPI 3.1, its segments")
degradations = {
    f"{fitted.cluster.name} {fitted.collective}": {
        label: fitted.mean_and_worst(model, source) for label, (model, source) in zip(labels, sources, strict=True)
    }
    for fitted in tables
}
here.table(
    "Degradation over all process counts and sizes, mean / worst (%)",
    ("cluster and collective", "P", *labels),
    [
        (
            name,
            ", ".join(map(str, fitted.cluster.procs)),
            *(f"{100 * mean:.1f} / {100 * worst:.1f}" for mean, worst in costs.values()),
        )
        for (name, costs), fitted in zip(degradations.items(), tables, strict=True)
    ],
)
costly = [
    (fitted.cluster.name, row.procs, format_size(row.message_bytes), row.best.choice.algorithm,
     f"{row.model.choice.algorithm} ({percent(row.model.degradation)})")
    for fitted in tables
    for row in fitted.rows("as_printed")
    if row.model.degradation > published.NEAR_OPTIMAL
]  # fmt: skip
here.table(
    "Rows where the pick of the model as printed is more than 10 % off",
    ("cluster", "P", "m", "best", "pick (%)"),
    costly,
)

# %% [markdown]
# Figure 5 of the paper: time of each source's pick over the message size. "Open MPI" is its algorithm at the common
# segment size of 8 KiB, as in the paper; "its segments" are the sizes that Open MPI 3.1 ships.

# %%
for fitted in tables:
    name = f"{fitted.collective}-{fitted.cluster.name}"
    title = f"{fitted.collective} on {fitted.cluster.name.capitalize()}, simulated"
    here.figure(draw.picks_by_size(fitted.rows(), title), f"figure-5-{name}", f"Figure 5: {title}.")

# %% [markdown]
# Figure 6: the message size is fixed and P varies. The text of the paper does not give its size; here are one with two
# segments and one with many.

# %%
for name, result in over_procs.items():
    title = f"bcast on {name.capitalize()}, simulated"
    here.figure(draw.picks_by_procs(result.rows, title), f"figure-6-{name}", f"Figure 6: {title}.")
over_procs_costs = {name: result.degradations("model") for name, result in over_procs.items()}
here.text(
    "Degradation of the model by parts where P varies: "
    + "; ".join(f"{n} {100 * d.mean():.1f} % mean, {100 * d.max():.1f} % worst" for n, d in over_procs_costs.items())
    + ". These process counts were not fitted."
)

# %% [markdown]
# Figure 3: binary and binomial tree on Grisou with 90 processes. The traditional formulas of section III-C take alpha
# and beta from roundtrips and know no segments.

# %%
bcast_grisou = tables[0]
sizes, panels = paper.traditional_and_ours(bcast_grisou, 90)
here.figure(
    draw.model_kinds(sizes, panels, "Binary and binomial broadcast on Grisou, P = 90"),
    "figure-3",
    "Figure 3: by traditional formulas, simulated, and by the fitted model by parts.",
)
binomial_first = {kind: int(np.sum(curves["binomial"] < curves["binary"])) for kind, curves in panels.items()}
off = {
    kind: max(
        float(np.exp(np.max(np.abs(np.log(seconds / panels["simulated"][name]))))) for name, seconds in curves.items()
    )
    for kind, curves in panels.items()
    if kind != "simulated"
}
here.text(
    "Sizes of ten at which the binomial tree is the faster one: "
    + ", ".join(f"{kind} {count}" for kind, count in binomial_first.items())
    + ". Largest factor between formula and simulation for either tree: "
    + ", ".join(f"{kind} {factor:.2f}" for kind, factor in off.items())
    + "."
)

# %% [markdown]
# ## (c) The simulated best against the measured best
#
# Each row of tables 2 and 3 beside the simulation of the same point. "Indistinguishable" counts the simulated best as
# agreeing when the paper prints it with at most 3 % degradation: its means are precise to 2.5 %.

# %%
agreements = paper.agreement_with_measured_best(tables)
for printed in published.TABLES[:4]:
    here.table(
        f"{printed.title}: measured (paper) and simulated",
        (
            "m (KB)", "best, measured", "best, simulated", "same?", "indistinguishable?",
            "measured best in simulation (%)", "Open MPI, measured (%)", "same, simulated (%)",
            "model's pick, measured (%)", "same, simulated (%)",
        ),
        [
            (
                a.row.message_kib, a.row.best, a.simulated.best.choice.algorithm,
                "yes" if a.same_best else "no", "yes" if a.best_within_precision else "no",
                percent(a.degradation_of_measured_best),
                f"{a.row.openmpi} ({a.row.openmpi_percent})", percent(a.simulated_degradation(a.row.openmpi)),
                f"{a.row.model} ({a.row.model_percent})", percent(a.simulated_degradation(a.row.model)),
            )
            for a in agreements
            if a.table is printed
        ],
    )  # fmt: skip


# %%
def counts(rows: list[paper.Agreement]) -> dict[str, float]:
    return {
        "rows": len(rows),
        "same_best": sum(a.same_best for a in rows),
        "best_within_precision": sum(a.best_within_precision for a in rows),
        "worst_degradation_of_measured_best": max(a.degradation_of_measured_best for a in rows),
        "openmpi_same_way": sum(a.openmpi_same_way for a in rows),
        "model_same_way": sum(a.model_same_way for a in rows),
    }


agreement = {
    f"{printed.platform} {printed.collective}": counts([a for a in agreements if a.table is printed])
    for printed in published.TABLES[:4]
}
here.table(
    "Agreement. 'The same way': near optimal (10 %) in both, or in neither",
    ("table", "rows", "same best", "indistinguishable", "measured best in simulation, worst (%)",
     "Open MPI the same way", "model's pick the same way"),
    [
        (
            name, c["rows"], c["same_best"], c["best_within_precision"],
            percent(c["worst_degradation_of_measured_best"]), c["openmpi_same_way"], c["model_same_way"],
        )
        for name, c in agreement.items()
    ],
)  # fmt: skip

# %% [markdown]
# ### Where they differ, and why
#
# The published segment time, alpha + m_s beta, is the one number of each broadcast row that can be compared.

# %%
segment_times = {}
for fitted in tables:
    if fitted.collective != "bcast":
        continue
    name = fitted.cluster.name
    for algorithm in published.TABLE_4_GRISOU["bcast"]:
        pair = fitted.parameters.fits["as_printed"]["bcast"][algorithm].parameters["main/eager"]
        ours = float(pair.predict(SEGMENT_BYTES))
        segment_times[name, algorithm] = (paper.segment_seconds(name, algorithm), ours)
here.table(
    "Time of a segment of 8 KiB, alpha + m_s beta, of the model as printed",
    ("cluster", "algorithm", "published", "fitted in simulation"),
    [(*key, format_seconds(theirs), format_seconds(ours)) for key, (theirs, ours) in segment_times.items()],
)
gather_gros = published.TABLE_3_GROS.rows
chain, k_chain = segment_times["gros", "chain"], segment_times["gros", "k_chain"]
at_512 = next(a for a in agreements if a.table is gros and a.row.message_kib == 512)
by_formula = next(
    c for c in paper.published_choices(gros, paper.LITERAL) if c.row.message_kib == 512
).predicted_openmpi_degradation
here.text(
    f"**Chain on Gros.** At 512 KB the paper measures Open MPI's chain {at_512.row.openmpi_percent} % over the best; "
    f"simulated, it costs {percent(at_512.simulated_degradation('chain'))} %. The published segment time of the chain "
    f"is {chain[0] / k_chain[0]:.1f} times that of the K-chain, though past the root both do the same; simulated, it "
    f"is {chain[1] / k_chain[1]:.2f} times. The published parameters themselves give {percent(by_formula)} %. Whatever "
    "slowed the chain on that cluster lies neither in its schedule nor in the sharing of links, which is all that "
    "this simulation knows. So with single rows such as Open MPI's gather of 256 KB on Gros: "
    f"{gather_gros[2].openmpi_percent} % between {gather_gros[1].openmpi_percent} and {gather_gros[3].openmpi_percent}."
)
large = [a for a in agreements if a.table.collective == "bcast" and a.row.message_kib >= 512]
binary_costs = [a.simulated_degradation("binary") for a in large]
steps = bcast_grisou.parameters.fits["by_parts"]["bcast"]["chain"].parameters["steady/eager"]
here.text(
    "**Binary and split-binary.** From 512 KB on, the binary tree is at most "
    f"{max(a.row.model_percent for a in large)} % over the best as measured, and {percent(min(binary_costs))} to "
    f"{percent(max(binary_costs))} % as simulated. In SMPI, as run here, an eager message starts to flow when its "
    "receive is posted, and a process asks for a segment when it has the one before, so each segment costs a whole "
    f"latency: along the chain on Grisou {format_seconds(float(steps.predict(8192)))} a segment, where half a "
    f"roundtrip takes {format_seconds(float(bcast_grisou.parameters.hockney.predict(8192)))}. Split-binary gives "
    "every process half as many segments, hence about half the time. On a real network eager segments are under way "
    f"before they are asked for, which fits the published {format_seconds(segment_times['grisou', 'chain'][0])}. How "
    "much of the difference this explains cannot be said without the paper's raw measurements."
)
small = [a for a in agreements if a.table.collective == "bcast" and a.row.message_kib <= 32 and not a.same_best]
differing = [
    f"{titles[a.table.platform]} {a.row.message_kib} KB ({a.row.best} measured, {a.simulated.best.choice.algorithm} "
    f"simulated, {percent(a.degradation_of_measured_best)} % apart)"
    for a in small
]
binomial = [format_seconds(seconds) for seconds in segment_times["gros", "binomial"]]
here.text(
    f"**Small messages.** Rows up to 32 KB whose best differs: {', '.join(differing)}. Table 5 has the binomial tree's "
    f"segments on Gros at {binomial[0]}; simulated, they take {binomial[1]}, like those of the other trees."
)

# %% [markdown]
# ## Conclusions

# %%
by_parts = np.concatenate([fitted.by_model["by_parts"].degradations("model") for fitted in tables])
as_printed = np.concatenate([fitted.by_model["as_printed"].degradations("model") for fitted in tables])
openmpi = np.concatenate([fitted.by_model["by_parts"].degradations("openmpi") for fitted in tables])
here.conclude(
    f"(a) The published formulas and parameters make the published choice in {gathered} of {gather_rows} rows of "
    "gather."
)
here.conclude(
    f"(a) For broadcast they do in {sum(plus)} of {bcast_rows} rows when the terms of formula (7) are added, as its "
    f"derivation says, and in {sum(literal)} when they are multiplied, as its text says (Shaheen II with the gamma of "
    f"Gros, which gives {literal[2]} of its rows; with that of Grisou {literal_with_grisou})."
)
here.conclude(
    f"(a) {ones} of {len(ratios)} published broadcast rows have alpha : beta = 1 : m_s within their digits: they hold "
    "one number, the time of a segment of 8 KB, and say nothing about other segment sizes."
)
here.conclude(
    f"(b) Fitted in simulation, the model by parts costs {100 * by_parts.mean():.1f} % on average and "
    f"{100 * by_parts.max():.1f} % at worst over {len(by_parts)} points; as printed {100 * as_printed.mean():.1f} % "
    f"and {100 * as_printed.max():.1f} %; Open MPI's choice {100 * openmpi.mean():.0f} % and "
    f"{100 * openmpi.max():.0f} %."
)
bcasts = [c for name, c in agreement.items() if name.endswith("bcast")]
here.conclude(
    f"(c) The simulated best is the measured one in {sum(c['same_best'] for c in agreement.values())} of "
    f"{len(agreements)} rows, and one that the measurements cannot tell from it in "
    f"{sum(c['best_within_precision'] for c in agreement.values())}; the disagreements are all in broadcast "
    f"({sum(c['same_best'] for c in bcasts)} and {sum(c['best_within_precision'] for c in bcasts)} of "
    f"{sum(c['rows'] for c in bcasts)})."
    if all(c["same_best"] == c["rows"] for name, c in agreement.items() if name.endswith("gather"))
    else f"(c) The simulated best is the measured one in {sum(c['same_best'] for c in agreement.values())} of "
    f"{len(agreements)} rows."
)
here.conclude(
    "(c) Open MPI's choice is near optimal, or not, in simulation as in the paper in "
    f"{sum(c['openmpi_same_way'] for c in agreement.values())} of {len(agreements)} rows, the published model's choice "
    f"in {sum(c['model_same_way'] for c in agreement.values())}."
)

# %%
here.results |= {
    "simulated_by": maker,
    "matches_by_reading": {
        title: [{"reading": reading, "gamma": gamma, "rows": rows} for (reading, gamma), rows in by_reading.items()]
        for title, by_reading in matches.items()
    },
    "published_rows": {table.title: len(table.rows) for table in published.TABLES},
    "alpha_beta_one_within_rounding": {"rows": len(ratios), "one": ones},
    "degradation": {
        name: {label: {"mean": mean, "worst": worst} for label, (mean, worst) in costs.items()}
        for name, costs in degradations.items()
    },
    "degradation_over_procs": {
        name: {"mean": float(values.mean()), "worst": float(values.max())} for name, values in over_procs_costs.items()
    },
    "all_points": {
        name: {"points": len(values), "mean": float(values.mean()), "worst": float(values.max())}
        for name, values in (("by parts", by_parts), ("as printed", as_printed), ("Open MPI 3.1", openmpi))
    },
    "agreement": agreement,
    "conclusions": here.conclusions,
}
