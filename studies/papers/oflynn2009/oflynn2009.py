# %% [markdown]
# # O'Flynn 2009: does LMO describe a heterogeneous cluster better?
#
# M. O'Flynn's thesis (University College Dublin, 2009) separates processors from the network in the time of a
# message: C_i + L_ij + C_j + m (t_i + 1 / beta_ij + t_j), the LMO model. This study repeats it on `hcl16`, its 16 nodes
# of 7 types. **By construction** table 7.1 is found again: the platform was made from it.
#
# Blocks have m bytes; the root is node 0, of type 1.

# %%
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from collwise.common.units import format_size
from collwise.models.fitting.lmo import lmo_by_triplets
from collwise.models.fitting.rounds import with_effort
from collwise.models.point_to_point import PointToPointModel
from collwise.models.single_messages import Thresholds
from collwise.platforms.linear_costs import point_to_point
from collwise.studies.papers.figures import over_sizes
from collwise.studies.papers.oflynn2009 import analysis as thesis
from collwise.studies.papers.oflynn2009.analysis import BINOMIAL, LINEAR, MODELS, NONBLOCKING, percent, shown
from collwise.studies.papers.oflynn2009.figures import escalations, series_curves, size_curves
from collwise.studies.papers.study import Study
from collwise.validation.measurement.irregular_regions import HALF_BOUND

here = Study("oflynn2009", globals())
platform = thesis.cluster()
limit = platform.eager_limit_bytes

# %%
with here.context() as context:
    fits = thesis.estimates(platform, context)
    fitted: dict[str, Any] = {name: fit.parameters for name, fit in fits.items()}
    hockney, two_sizes, plogp, lmo = (fitted[name] for name in ("Hockney", "Hockney, two sizes", "PLogP", "LMO"))
    parallel, serial, parameters_differ = thesis.side_by_side(platform, context)
    lab = context.laboratory(platform)
    lmo_alone = with_effort(lab, lambda: lmo_by_triplets(lab, lmo.thresholds))[1]
    messages = thesis.message_seconds(platform, thesis.SIZES_OF_ALL_PAIRS, thesis.ALL_PAIRS, context)
    (one_pair,) = thesis.message_seconds(platform, thesis.SIZES, [thesis.PAIR], context)
    times = thesis.simulated(platform, thesis.GRIDS, context)
    lmo_algorithms = thesis.simulated(platform, thesis.lmo_grids(thesis.THRESHOLDS), context)
    by_thesis = {name: over_sizes(of).squeeze() for name, of in lmo_algorithms.items()}
    models = thesis.collective_models(fits)
    gains = thesis.all_mapping_gains(platform, models, context)
    unshared = thesis.without_shared_links(platform, context)
    recovered, exact = thesis.on_the_exact_platform(context)
    series = thesis.back_to_back(platform, context)
    communication = thesis.multiplications(platform, models["lmo_heterogeneous"], context)
    leap_on_64_nodes, lmo_scatter_on_64_nodes = thesis.leaping_scatters(context)
sizes = np.array(thesis.SIZES)
here.text(f"Estimates are {fits['LMO'].made_by}.")

# %% [markdown]
# ## (a) Table 7.1: alpha and beta of every two types
#
# Values are means over all pairs of nodes of two types: by two sizes, 1 byte and half the eager limit, and by
# regression over ten sizes up to 100 kB, as in the thesis.

# %%
cells = thesis.table_7_1(platform, hockney, two_sizes)
here.table(
    "Table 7.1: alpha (us), beta (ns per byte), published and estimated; difference in percent",
    thesis.table_7_1_beside_estimates(cells),
)
off = {source: (cells[source] / cells.published - 1).abs().max() for source in ("two_sizes", "regression")}
worst_two = off["two_sizes"].max()
here.say("table_7_1")
homogeneous = thesis.homogeneous_hockneys(platform, hockney, two_sizes)
printed = homogeneous.loc["published homogeneous model"]
mean = homogeneous.loc["mean of table 7.1 over all pairs of nodes"]
micro = ((name, f"{one.alpha * 1e6:.1f}", f"{one.beta * 1e6:.5f}") for name, one in homogeneous.iterrows())
here.table("The homogeneous Hockney model", micro, columns=["", "alpha (us)", "beta (us per byte)"])
same_cells = thesis.cells_like(cells, printed)
here.say("homogeneous")

# %% [markdown]
# ### Table 5.1: the effort of estimation

# %%
counted: dict[str, Any] = {name: fits[name] for name in ("Hockney", "LogGP", "PLogP")} | {"LMO": lmo_alone}
efforts = pd.DataFrame([(item.measurements, item.seconds) for item in counted.values()], index=list(counted),
                       columns=["measurements", "seconds"])  # fmt: skip
here.table("Table 5.1, n = 16", thesis.table_5_1(efforts))
seconds_of, thesis_seconds = efforts.seconds, thesis.PUBLISHED["table_5_1_seconds"]
alone_seconds, at_once_seconds = thesis.PUBLISHED["serial_seconds"], thesis.PUBLISHED["parallel_seconds"]
knots = np.mean([len(pair.gap.message_bytes) for row in plogp.pairs for pair in row if pair is not None])
order = seconds_of.sort_values(kind="stable").index
here.say("effort")

# %% [markdown]
# ## (b) Single messages: figure 5.2
#
# The simulated time is half a roundtrip. LogGP is estimated by Culler's procedure and, as in the thesis, also taken
# from PLogP's parameters.

# %%
predicted = thesis.message_predictions(fits, thesis.SIZES, thesis.PAIR)
pair, title = "nodes {} and {}".format(*thesis.PAIR), "One message between a node of type 1 and one of type 3"
lines = predicted.assign(simulated=one_pair)[["simulated", "LogGP, from PLogP", "PLogP", "LMO", "Hockney"]]
here.figure(
    size_curves({pair: lines}, title, limit, what="message size m"),
    "Figure 5.2: simulated, and by heterogeneous models.",
)
below, above = (thesis.message_errors(fits, messages, eager) for eager in (True, False))
at = ", ".join(map(format_size, thesis.SIZES_OF_ALL_PAIRS))
here.table(
    f"Errors over all {len(thesis.ALL_PAIRS)} pairs, mean / worst (%), at {at}",
    pd.DataFrame({"below the eager limit": shown(below), "above it": shown(above)}).rename_axis("model").reset_index(),
)
truth = point_to_point(platform)
rates = lmo.processor_seconds_per_byte * 1e9
link = truth.network_seconds_per_byte[0, 1:].min()
networks = lmo.network_seconds_per_byte[np.triu_indices(thesis.PROCS, 1)]
here.say("messages")

# %% [markdown]
# ## (b) Linear scatter and gather: table 5.2, figures 5.3 and 5.4
#
# In SMPI a blocking send returns when the processor is done, or from the eager limit on when the message has arrived.
# An eager message starts to flow when its receive is posted.

# %%
drawn = ("hockney_heterogeneous", "loggp_of_plogp", "plogp", "lmo_heterogeneous")
scores = {collective: thesis.scores_of(right, models) for collective, right in times.items()}
simulated = {collective: over_sizes(of) for collective, of in times.items()}
predicted = {
    collective: {key: over_sizes(of) for key, of in score.times.items()} for collective, score in scores.items()
}
for collective, number in (("scatter", "5.3"), ("gather", "5.4")):
    lines = {"simulated": simulated[collective].linear}
    if collective == "scatter":
        lines["simulated, non-blocking sends"] = simulated[collective].linear_nonblocking
    lines |= {MODELS[key]: predicted[collective][key].linear for key in drawn}
    here.figure(
        size_curves({"16 nodes": lines}, f"Linear {collective}, simulated and predicted", limit),
        f"Figure {number}: linear {collective} on the heterogeneous cluster.",
    )

# %%
eager = sizes < fits["LMO"].eager_limit_bytes
errors = thesis.errors_by_region(scores, eager)
# Mean errors in percent, by algorithm and region, then by model.
scatter, gather = (errors["mean"].map(percent)[collective] for collective in ("scatter", "gather"))
table = shown(errors).unstack(sort=False).set_axis(list(MODELS.values()), axis=1)
names = [
    f"{algorithm} {collective}".replace("_nonblocking scatter", " scatter, non-blocking sends")
    for collective, algorithm, _ in table.index
]
table = table.droplevel([0, 1]).rename_axis("blocks").reset_index()
table.insert(0, "algorithm", names)
here.table(
    f"Errors of predictions, mean / worst (%): blocks below the eager limit ({int(eager.sum())} sizes), from it on "
    f"({int((~eager).sum())}), and all",
    table,
)

# %%
by_description = thesis.scores_of(times["scatter"], {"": thesis.with_true_parameters("lmo_heterogeneous", platform)})
described = thesis.errors_of(by_description, LINEAR, eager)
# (4.3) for every gather, as if M2 were 0.
sum_of_messages = replace(lmo, thresholds=Thresholds(gather_regular_from_bytes=0))
serial_lmo = PointToPointModel("lmo_heterogeneous", platform.name, sum_of_messages)
by_sum = thesis.scores_of(times["gather"], {"": serial_lmo})
serial_below = thesis.errors_of(by_sum, LINEAR, eager)["mean"][""]
here.say("linear")

# %% [markdown]
# ## (b) Binomial scatter: figures 7.1 and 7.2

# %%
compared = ("hockney", "hockney_heterogeneous", "lmo_heterogeneous")
of_scatter = scores["scatter"]
panels = {
    name: {"simulated": simulated["scatter"][name]} | {MODELS[key]: predicted["scatter"][key][name] for key in compared}
    for name in ("linear", "binomial")
}
here.figure(
    size_curves(panels, "Scatter on 16 nodes: linear (figure 7.1) and binomial (figure 7.2)", limit),
    "Figures 7.1 and 7.2: linear and binomial scatter.",
    "figure-7-1-and-7-2",
)
pieces = thesis.binomial_regions(limit)
split = pd.DataFrame({name: shown(thesis.errors_of(of_scatter, BINOMIAL, where)) for name, where in pieces.items()}).T
table = split.set_axis(list(MODELS.values()), axis=1).rename_axis("messages of the root").reset_index()
table.insert(1, "sizes", [where.sum() for where in pieces.values()])
here.table("Binomial scatter: errors by how the root's messages are sent, mean / worst (%)", table)
here.say("binomial")

# %% [markdown]
# ## (b) Linear or binomial? Figure 5.5

# %%
least, largest = thesis.PUBLISHED["figure_5_5_bytes"]
between = (sizes >= least) & (sizes <= largest)
of_models = {MODELS[key]: predicted["scatter"][key][["linear", "binomial"]][between] for key in compared[1:]}
titles = {"linear_nonblocking": "linear, non-blocking sends"}
linear_or_binomial = simulated["scatter"][between].rename(columns=lambda name: f"simulated {titles.get(name, name)}")
here.figure(
    size_curves({"simulated": linear_or_binomial, **of_models}, "Linear or binomial scatter, 16 nodes"),
    "Figure 5.5: linear and binomial scatter from 100 to 200 KB, simulated and by two models.",
)
chosen = {
    (choice.algorithm, region): thesis.choices(of_scatter, choice, where)
    for choice in (LINEAR, NONBLOCKING)
    for region, where in (("below the eager limit", eager), ("100 to 200 KB", between))
}
here.table(
    "At how many sizes the linear scatter is the faster one, in simulation and by each model; in brackets, how often "
    "the choice is right",
    (
        (
            "non-blocking sends" if kind == "linear_nonblocking" else "blocking sends",
            *(region, counts.right["simulation"], counts.linear["simulation"]),
            *(f"{counts.linear[name]} ({counts.right[name]})" for name in MODELS),
        )
        for (kind, region), counts in chosen.items()
    ),
    columns=["linear scatter", "blocks", "sizes", "simulation", *MODELS.values()],
)

# %% [markdown]
# ## (c) Thresholds, LMO_Gather and LMO_Scatter: figure 7.3
#
# LMO_Gather cuts blocks from M1 to M2 into pieces below M1, with barriers between the pieces; LMO_Scatter cuts blocks
# from S on.

# %%
here.table(
    "Thresholds",
    (
        (name, *(format_size(size) if size else "none found" for size in vars(one).values()))
        for name, one in (("thesis, LAM on the cluster", thesis.THRESHOLDS), ("estimated", lmo.thresholds))
    ),
    columns=["", "S", "M1", "M2"],
)
linear = {collective: simulated[collective].linear for collective in ("gather", "scatter")}
# Medium blocks are those from M1 to M2 of the thesis, large ones those from its S on.
medium, large = thesis.THRESHOLDS.irregular(sizes), sizes >= (thesis.THRESHOLDS.scatter_leap_bytes or 0)
gather_ratio = (by_thesis["gather"] / linear["gather"])[medium]
scatter_ratio = (by_thesis["scatter"] / linear["scatter"])[large]
leap = lmo.thresholds.scatter_leap_bytes
same_leap = "the thesis's S, " if leap == thesis.THRESHOLDS.scatter_leap_bytes else ""
here.say("thresholds")

# %%
with here.context("schedule") as context:
    predicted_gathers = thesis.predicted_gathers(context, thesis.BED, thesis.BED_PROCS, thesis.BED_THRESHOLDS)
    on_64_nodes = thesis.predicted_escalations(
        thesis.predicted_gathers(context, thesis.MYRINET, thesis.MYRINET_PROCS, thesis.THRESHOLDS), thesis.THRESHOLDS
    )
repeated = thesis.measured_gathers()
gathers = thesis.escalations_beside_measured(repeated, predicted_gathers)
here.figure(
    escalations(predicted_gathers, repeated, "Gather on 8 nodes, 32 kB in each port of the switch, TCP as in 2009"),
    "Figure 7.3: escalations of gathers, predicted by the schedule engine and measured.",
)
here.table(
    "Gathers of blocks from M1 to M2, relative to the linear gather without losses",
    (
        (
            *(name, row["median"], row.ninetieth, row["mean"], row.worst, 100 * row.share),
            *(row.predicted_mean, row.predicted_worst),
            100 * row.predicted_share,
        )
        for name, row in gathers.iterrows()
    ),
    "{:.2f}",
    [
        *("gather", "median", "90 % below", "mean", "worst", "with time-out (%)"),
        *("predicted mean", "worst", "sizes with time-out (%)"),
    ],
)
half = HALF_BOUND
here.say("escalations")
here.table(
    "Figure 7.4: gathers of blocks from M1 to M2 on 64 nodes, predicted, relative to the linear gather without losses",
    (
        (name, f"{row['mean']:.2f}", f"{row.worst:.2f}", f"{row.share:.0%}")
        for name, row in on_64_nodes.drop("no losses").iterrows()
    ),
    columns=["gather", "mean", "worst", "sizes with time-out"],
)
here.say("myrinet")

# %% [markdown]
# ## (c) Optimal mapping of processors to the binomial tree

# %%
saved = gains.predicted.map(percent) + ", " + gains.simulated.map(percent)
columns = [("binomial " + gains.collective).rename("collective"), gains.model.map(MODELS)]
saved = saved.groupby([*columns, gains.message_bytes], sort=False).first().unstack(sort=False)
here.table(
    "Time saved by the optimal mapping against the default one: predicted, simulated (%)",
    saved.rename(columns=format_size).reset_index(),
)

# %% [markdown]
# ## (c) Matrix multiplication: table 7.2
#
# The program is `matmul` ([applications](applications.md)), with rows in proportion to clock rates, since the thesis
# does not print the measured speeds. Native collectives scatter and gather by flat trees, optimized ones by binomial
# trees, here also with processors mapped by LMO; all broadcasts are binomial.

# %%
multiplied = thesis.TABLE_7_2.join(communication)
saved_there, saved_here = multiplied.native - multiplied.optimized, multiplied.flat - multiplied.mapped
here.table(
    "Table 7.2: seconds of the multiplication in the thesis, and of its communication in simulation",
    (
        (
            *(size, row.native, row.optimized, f"{saved_there[size]:.2f}"),
            *(f"{row[name]:.2f}" for name in communication),
            *(f"{saved_here[size]:.2f}", f"{saved_here[size] / row.native:.1%}"),
        )
        for size, row in multiplied.iterrows()
    ),
    columns=[
        *("N", "native", "optimized", "saved"),
        *("flat, here", "binomial, here", "mapped, here", "saved, here", "of the native time"),
    ],
)
here.say("multiplication")

# %% [markdown]
# ## Calls in a series: figures 2.1 and 2.2
#
# Processes' times in a linear scatter and gather: in one call after a barrier, and in a series of 30 calls that
# nothing separates, as in IMB (`measure --calls 30`), simulated in SMPI on `hcl16`, and measured under Open MPI on
# figure 7.3's bed (means over launches, `docs/methods_on_a_bed.py series`).

# %%
on_bed = thesis.measured_series()
here.figure(
    series_curves(
        {f"{name}, {where}": of for where, each in (("simulated, 16 nodes", series), ("measured, 8 nodes", on_bed))
         for name, of in each.items()},
        "One call, and a series of calls: least and largest times of a process",
    ),
    "Figures 2.1 and 2.2: single and back-to-back scatters and gathers, simulated and measured.",
)  # fmt: skip
escalating = [size for size in on_bed["gather"].index if thesis.BED_THRESHOLDS.irregular(np.array(size))]
slower_on_bed = {name: of["series, maximum"] / of["single, maximum"] for name, of in on_bed.items()}
slower = {name: of["series, maximum"] / of["single, maximum"] for name, of in series.items()}
here.say("series")

# %% [markdown]
# ## Ways of timing: table 3.1, figures 3.6 and 3.7
#
# Linear scatter and gather of 1 to 100 kB under Open MPI 4.1.4 on a test bed of 8 nodes: the benchmark's time for one
# repetition of each size, including the start of MPI, and medians of ten repetitions divided by those of global timing
# (`docs/methods_on_a_bed.py timing`).

# %%
timed, timed_on = thesis.measured_timings()
spent = timed.groupby("timing").benchmark_seconds.sum()
here.table(
    f"Table 3.1, and figures 3.6 and 3.7 in numbers; measured on {timed_on}",
    (
        (
            *(row.timing, row.collective, f"{printed[row.collective]} s", f"{row.benchmark_seconds:.1f} s"),
            f"{row.ratio:.2f} ({row.least_ratio:.2f} to {row.greatest_ratio:.2f})",
        )
        for row in timed.itertuples()
        for printed in [thesis.PUBLISHED["table_3_1"][row.timing.partition(",")[0]]]
    ),
    columns=["timing", "collective", "benchmark, thesis", "here", "times over global"],
)
here.say("timing")

# %% [markdown]
# ## (d) Where LMO's assumptions hold
#
# `exact-heterogeneous` is synthetic: 16 different nodes, links too wide to be shared, everything eager.

# %%
here.table(
    "LMO's parameters recovered: means over processors and pairs, and the worst error of one (%)",
    (
        (row.parameter, f"{row.true:.6g}", f"{row.estimated:.6g}", f"{100 * row.worst_error:.4f}")
        for row in recovered.itertuples()
    ),
    columns=["parameter", "true", "estimated", "worst error"],
)
both = shown(exact)
here.say("exact")

# %% [markdown]
# ## Conclusions


# %%
def lmo_is_better(algorithm: str, region: str) -> str:
    """'yes' if LMO predicts a scatter better than both Hockney models, else 'no', and the mean errors compared."""
    mean = errors["mean"]["scatter", algorithm, region]
    lmo, *others = (mean[name] for name in ("lmo_heterogeneous", "hockney_heterogeneous", "hockney"))
    return f"{'yes' if lmo < min(others) else 'no'}, {percent(lmo)} % against {percent(min(others))} %"


by_kind = {"blocking": "linear", "non-blocking": "linear_nonblocking"}
by_sends = {sends: chosen[kind, "100 to 200 KB"] for sends, kind in by_kind.items()}
here.conclude_all("conclude_scatter")
here.conclude_all("conclude_rest")

# %% [markdown]
# ## What the author could not do
#
# Say before measuring which gathers escalate: `collwise simulate --engine schedule
# --platform studies/papers/oflynn2009/bed.toml --collective gather --algorithms linear,linear_sync,binomial --procs 8
# --sizes 1KiB:128KiB:x2`.

# %%
here.publish({
    "simulated_by": fits["LMO"].made_by,
    "table_7_1": {
        types: {source: list(row[source]) for source in ("published", "two_sizes", "regression")}
        for types, row in cells.iterrows()
    },
    "homogeneous_hockney": homogeneous.T.to_dict("list"),
    "table_5_1": efforts.to_dict("index"),
    "side_by_side_seconds": parallel.seconds,
    "one_after_another_seconds": serial.seconds,
    "messages": {
        name: of[["mean", "worst"]].to_dict("index") for name, of in (("below", below), ("above", above))
    },
    "errors": {
        " ".join(key): of.droplevel([0, 1, 2]).to_dict("index")
        for key, of in errors.groupby(level=[0, 1, 2], sort=False)
    },
    "linear_or_binomial": {", ".join(key): counts.to_dict("index") for key, counts in chosen.items()},
    "thresholds": dict(zip(("S", "M1", "M2"), vars(lmo.thresholds).values(), strict=True)),
    "lmo_against_linear": {"gather, medium": gather_ratio.mean(), "scatter, large": scatter_ratio.mean()},
    "escalations": gathers.to_dict("index"),
    "figure_7_4": on_64_nodes.to_dict("index"),
    "figure_7_4_scatter": {"S": leap_on_64_nodes, "lmo_against_linear": lmo_scatter_on_64_nodes.mean()},
    "multiplication": communication.to_dict("index"),
    "series_over_single": {name: of.to_dict() for name, of in slower.items()},
    "series_over_single_measured": {name: of.to_dict() for name, of in slower_on_bed.items()},
    "mapping": {
        " ".join(key): rows.set_index("message_bytes")[["predicted", "simulated"]].to_dict("index")
        for key, rows in gains.groupby(["collective", "model"], sort=False)
    },
    "without_shared_links": unshared[["mean", "worst"]].to_dict("index"),
    "exact": {
        "worst_recovery": recovered.worst_error.max(),
        "scatter_worst": exact.worst.scatter,
        "slowest_last_worst": exact.worst.slowest_last,
        "hockney_worst": exact.worst.hockney_scatter,
    },
})  # fmt: skip
