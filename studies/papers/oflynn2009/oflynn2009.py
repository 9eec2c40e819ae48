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
# # O'Flynn 2009: does LMO describe a heterogeneous cluster better?
#
# M. O'Flynn's thesis (University College Dublin, 2009) separates the contributions of processors and of the network to
# the time of a message: C_i + L_ij + C_j + m (t_i + 1 / beta_ij + t_j), the LMO model. It finds that LMO predicts
# scatter and gather on a cluster of 16 nodes of 7 types better than Hockney, LogGP and PLogP do. This study repeats
# what simulation can repeat, on the platform `hcl16`, which has that cluster's nodes and the alpha and beta of the
# thesis's table 7.1:
#
# - **(a)** What does estimation find, and how much time does it take (tables 7.1 and 5.1, section 4.4)?
# - **(b)** How well do the models predict single messages (figure 5.2), and linear and binomial scatter and gather
#   (table 5.2, figures 5.3 to 5.5, 7.1 and 7.2)?
# - **(c)** What do thresholds and optimal mappings gain (sections 7.1 and 7.2)?
# - **(d)** Is LMO exact where all its assumptions hold?
#
# The curves of the thesis's figures are not printed as numbers; what can be compared is how close each model comes.
# Nothing here is adjusted to make rows agree. Blocks are m bytes for each process; the root is node 0, of type 1.

# %%
from collwise.common.units import format_size
from collwise.platforms import load
from collwise.studies.papers.oflynn2009 import analysis as thesis
from collwise.studies.papers.oflynn2009 import estimates as estimating
from collwise.studies.papers.oflynn2009 import tables as published
from collwise.studies.papers.oflynn2009.estimates import percent
from collwise.studies.papers.oflynn2009.figures import size_curves
from collwise.studies.papers.study import Study

here = Study()
platform = load(estimating.PLATFORM)
limit = platform.eager_limit_bytes

# %%
with here.context() as context:
    found = estimating.estimates(platform, context)
    pace = estimating.side_by_side(platform, context)
    lmo_alone = estimating.effort_of_lmo_without_thresholds(platform, found.thresholds, context)
    messages = estimating.message_seconds(platform, estimating.SIZES_OF_ALL_PAIRS, estimating.ALL_PAIRS, context)
    one_pair = estimating.message_seconds(platform, thesis.SIZES, [estimating.PAIR], context)[0]
    curves = thesis.simulated_curves(platform, thesis.SERIES, context)
    cut = {
        name: thesis.simulated_curves(platform, [("gather", "lmo"), ("scatter", "lmo")], context, thresholds)
        for name, thresholds in (("thesis", published.THRESHOLDS), ("estimated", found.thresholds))
    }
    models = found.collective_models()
    gains = thesis.all_mapping_gains(platform, models, context)
    unshared = thesis.without_shared_links(platform, context)
    exact = thesis.on_the_exact_platform(context)
here.text(f"Estimates are {found.lmo.made_by}.")

# %% [markdown]
# ## (a) Table 7.1: alpha and beta of every two types
#
# The description was made from table 7.1, so that agreement here says that estimation works, not that the cluster is
# described well. Estimates are means over the pairs of nodes of two types. Two sizes: roundtrips of 1 byte and of half
# the eager limit. Regression: ten sizes up to 100 kB, as in the thesis.

# %%
cells = estimating.table_7_1(*estimating.hockneys(found))
here.table(
    "Table 7.1: alpha (us), beta (ns per byte), published and estimated; difference in percent",
    estimating.table_7_1_beside_estimates(cells),
)
worst_two, worst_alpha, worst_beta = estimating.worst_deviations(cells)
here.text(
    f"By two sizes, every cell is reproduced within {100 * worst_two:.4f} %. By regression alpha differs by up to "
    f"{percent(worst_alpha)} % and beta by up to {percent(worst_beta)} %: some of the ten sizes lie "
    f"above the eager limit of {format_size(limit)}, from which on SMPI charges no processor time, so that the line "
    "goes through two kinds of messages. The thesis does not say what its regression did with the leap at 64 KB."
)
homogeneous = estimating.homogeneous_hockneys(found)
printed, mean = list(homogeneous.values())[:2]
here.table("The homogeneous Hockney model", estimating.homogeneous_table(homogeneous))
same_cells = estimating.cells_like_the_homogeneous_model()
here.text(
    "The published homogeneous parameters are, digit for digit, those of table 7.1 between nodes of types "
    f"{', '.join(same_cells)}; the mean of the table over the {len(estimating.ALL_PAIRS)} pairs of nodes has an alpha "
    f"{percent(mean[0] / printed[0] - 1)} % and a beta "
    f"{percent(mean[1] / printed[1] - 1)} % larger. Whether the thesis measured "
    "one pair or averaged something else is open. Homogeneous models here are means over all pairs."
    if same_cells
    else "The published homogeneous parameters are those of no cell of table 7.1."
)

# %% [markdown]
# ### Table 5.1: the effort of estimation
#
# Counts are experiments; saturation sends many messages in one of them. Simulated time has no noise, so each is made
# once (k0 = k1 = r = 1), while the thesis repeats to 2.5 % at 95 % confidence; seconds pass on the simulated cluster,
# where disjoint pairs and triplets are measured side by side.

# %%
efforts = estimating.efforts(found, lmo_alone)
here.table("Table 5.1, n = 16", estimating.table_5_1(efforts))
seconds_of = {name: effort.seconds for name, effort in efforts.items()}
knots = estimating.mean_knots(found)
thresholds_effort = (found.lmo.measurements - lmo_alone.measurements, found.lmo.seconds - lmo_alone.seconds)
order = sorted(seconds_of, key=lambda name: seconds_of[name])
here.text(
    "LMO has k2 = 2: one-to-two experiments with the smallest and with large messages, (4.4) and (4.7). Its "
    f"thresholds take {thresholds_effort[0]} scatters and gathers more, {thresholds_effort[1]:.2f} s. PLogP's adaptive "
    f"sizes are {knots:.1f} per pair on average, two roundtrips each; the rest are saturations. LogGP's row is "
    "Culler's procedure, whose link is saturated with two sizes of messages, not three: the least message that costs "
    f"what a message costs is the empty one. In order of seconds: {', '.join(order)}; PLogP takes "
    f"{seconds_of['PLogP'] / seconds_of['LMO']:.0f} times as long as LMO, in the thesis "
    f"{published.TABLE_5_1_SECONDS['PLogP'] / published.TABLE_5_1_SECONDS['LMO']:.0f} times. How often the thesis "
    "repeated its experiments is not printed, so equal seconds, as Hockney's, prove nothing."
)
here.text(
    f"**Side by side.** Heterogeneous Hockney by regression takes {pace.parallel.seconds:.2f} s with disjoint pairs at "
    f"one time and {pace.serial.seconds:.2f} s with one after another, "
    f"{pace.serial.seconds / pace.parallel.seconds:.1f} times as long; in the thesis {published.PARALLEL_SECONDS:.0f} "
    f"s and {published.SERIAL_SECONDS:.0f} s, {published.SERIAL_SECONDS / published.PARALLEL_SECONDS:.1f} times. The "
    f"parameters differ by {pace.worst_difference:.0e} of themselves at most: both give the same values, as the thesis "
    f"found. With {estimating.PROCS // 2} pairs at one time it could be {estimating.PROCS // 2} times; every round "
    "waits for its slowest pair. Real repetitions until means are precise differ from pair to pair, which may explain "
    "the thesis's smaller gain."
)

# %% [markdown]
# ## (b) Single messages: figure 5.2
#
# Simulated: half a roundtrip. LogGP is estimated in two ways, by Culler's procedure and, as in the thesis, from PLogP's
# parameters.

# %%
predicted = estimating.message_predictions(found, thesis.SIZES, estimating.PAIR)
here.figure(
    size_curves(
        thesis.SIZES,
        {f"nodes {estimating.PAIR[0]} and {estimating.PAIR[1]}": {"simulated": one_pair} | {
            name: predicted[name] for name in ("LogGP, from PLogP", "PLogP", "LMO", "Hockney")}},
        "One message between a node of type 1 and one of type 3", limit, what="message size m",
    ),
    "figure-5-2",
    "Figure 5.2: simulated, and by heterogeneous models.",
)  # fmt: skip
by_protocol = {eager: estimating.message_errors(found, messages, eager) for eager in (True, False)}
here.table(
    f"Errors over all {len(estimating.ALL_PAIRS)} pairs, mean / worst (%), at "
    + ", ".join(format_size(size) for size in estimating.SIZES_OF_ALL_PAIRS),
    estimating.message_errors_table(by_protocol[True], by_protocol[False]),
)
message_error = {eager: {one.model: one for one in errors} for eager, errors in by_protocol.items()}
rates = thesis.root_rates(found, platform)
negative = thesis.negative_networks(found)
spread = thesis.spread_of_rates(found)
here.text(
    "PLogP has a knot wherever times bend and is right by construction. **LMO's estimates do not add up to every "
    "single message.** On this platform a sender's messages share its link, and the second message of a one-to-two "
    f"experiment waits for the link rather than for the processor: t_0 is estimated as {rates[0] * 1e9:.2f} ns per "
    f"byte, where the processor takes {rates[1] * 1e9:.2f} and the link {rates[2] * 1e9:.2f}. What is left for 1 / "
    f"beta_ij is below 0 for {negative[0]} of {negative[1]} pairs. How long the second message waits depends on both "
    "partners (shares of a link go by the length of the route), so that t_i is not one number: over the nodes it runs "
    f"from {spread[0] * 1e9:.1f} to {spread[1] * 1e9:.1f} ns per byte. (4.10) averages t_i over all triplets of i and "
    "1 / beta_ij over those of i and j, and the averages need not sum up to the pair's own time: errors of "
    f"{message_error[True]['LMO']} % (mean / worst) below the eager limit, where Hockney by regression has "
    f"{message_error[True]['Hockney']}. The thesis reports no such thing: its figure shows one pair. Culler's LogGP is "
    "worst between types 5 and 6: saturation has several messages under way at once, of which the wire limits each by "
    "itself, so that G is the time of a link."
)

# %% [markdown]
# ## (b) Linear scatter and gather: table 5.2, figures 5.3 and 5.4
#
# Three properties of SMPI matter here. Below the eager limit a send returns when the processor is done, and the
# messages of the scatter share the root's link. From the limit on a blocking send returns when the message has arrived,
# so that the linear scatter becomes serial. And an eager message starts to flow when its receive is posted: the linear
# gather, whose root posts one receive after another, is serial at every size.

# %%
shown = {"Hockney, heterogeneous": "hockney_heterogeneous", "LogGP, from PLogP": "loggp_of_plogp", "PLogP": "plogp",
         "LMO, heterogeneous": "lmo_heterogeneous"}  # fmt: skip
linear = {collective: thesis.predicted_curves(models, collective, "linear") for collective in ("scatter", "gather")}
for collective, number in (("scatter", "5-3"), ("gather", "5-4")):
    simulated = {"simulated": curves[collective, "linear"]}
    if collective == "scatter":
        simulated["simulated, non-blocking sends"] = curves["scatter", "linear_nonblocking"]
    lines = simulated | {name: linear[collective][key] for name, key in shown.items()}
    here.figure(
        size_curves(thesis.SIZES, {"16 nodes": lines}, f"Linear {collective}, simulated and predicted", limit),
        f"figure-{number}",
        f"Figure {number.replace('-', '.')}: linear {collective} on the heterogeneous cluster.",
    )

# %%
eager = thesis.eager_sizes(found)
scores = thesis.Scores(models, curves, eager)
here.table(
    f"Errors of predictions, mean / worst (%): blocks below the eager limit ({int(eager.sum())} sizes), from it on "
    f"({int((~eager).sum())}), and all",
    scores.table(),
)

# %%
described = thesis.errors(
    {"described": thesis.with_true_parameters(platform)}, curves, ("scatter", "linear"), eager
)["described"]  # fmt: skip
serial_model = {"serial": thesis.serial_gather(models)}
serial_below, serial_above = (
    thesis.errors(serial_model, curves, ("gather", "linear"), where)["serial"] for where in (eager, ~eager)
)
here.text(
    "**Linear scatter below the eager limit** is the case that LMO was made for, and it is the thesis's result: "
    "Hockney adds up whole messages although only the root's part is serial, and is "
    f"{scores.mean('linear', 'below', 'hockney_heterogeneous')} % off on average, LMO "
    f"{scores.mean('linear', 'below', 'lmo_heterogeneous')} %. It works because t_0 was estimated with the link's time "
    "in it: with the processor's own t_0, as the platform's description has it, (4.1) would be "
    f"{percent(described.mean)} % off. LMO's worst, "
    f"{percent(scores.by_key['scatter', 'linear', 'below']['lmo_heterogeneous'].worst)} %, is at the smallest block: "
    "C_0 + m t_0 adds the processor's constant to the link's time, while in simulation the link sends one message as "
    "the processor prepares the next."
)
here.text(
    f"**From the eager limit on** the simulated linear scatter is serial, and Hockney, a sum, is "
    f"{scores.mean('linear', 'above', 'hockney_heterogeneous')} % off, LMO "
    f"{scores.mean('linear', 'above', 'lmo_heterogeneous')} %. In the thesis the measured scatter leaps at 64 KB as "
    "well, but the leaps repeat and converge to a line of the same slope (section 5.3.1), near which LMO stays. With "
    f"non-blocking sends, the simulation follows such a line: Hockney "
    f"{scores.mean('linear_nonblocking', 'above', 'hockney_heterogeneous')} %, LMO "
    f"{scores.mean('linear_nonblocking', 'above', 'lmo_heterogeneous')} %."
)
here.text(
    "**Linear gather.** In SMPI it is a sum of whole messages at every size, for which heterogeneous Hockney has the "
    f"formula ({scores.mean('linear', 'below', 'hockney_heterogeneous', 'gather')} % and "
    f"{scores.mean('linear', 'above', 'hockney_heterogeneous', 'gather')} % below and above the limit). LMO's (4.2), "
    "with senders side by side, is "
    f"{scores.mean('linear', 'below', 'lmo_heterogeneous', 'gather')} % and "
    f"{scores.mean('linear', 'above', 'lmo_heterogeneous', 'gather')} % off; with (4.3), which is the sum, it would be "
    f"{percent(serial_below.mean)} % and {percent(serial_above.mean)} %. (4.3) is for blocks above M2, and "
    "estimation finds no M2: nothing in the simulated gather changes from one behaviour to the other. On the real "
    "cluster small messages came in side by side, medium ones escalated and large ones came one after another; only "
    "the last is in the simulation."
)

# %% [markdown]
# ## (b) Binomial scatter: figures 7.1 and 7.2
#
# The thesis's point: the heterogeneous Hockney model follows the binomial scatter much better than the homogeneous one,
# and neither follows the linear scatter.

# %%
hockneys = {"Hockney, homogeneous": "hockney", "Hockney, heterogeneous": "hockney_heterogeneous",
            "LMO, heterogeneous": "lmo_heterogeneous"}  # fmt: skip
panels = {
    name: {"simulated": curves["scatter", name]}
    | {label: thesis.predicted_curves(models, "scatter", name)[key] for label, key in hockneys.items()}
    for name in ("linear", "binomial")
}
here.figure(
    size_curves(thesis.SIZES, panels, "Scatter on 16 nodes: linear (figure 7.1) and binomial (figure 7.2)", limit),
    "figure-7-1-and-7-2",
    "Figures 7.1 and 7.2: linear and binomial scatter.",
)
pieces = thesis.binomial_regions(limit)
split = {name: thesis.errors(models, curves, ("scatter", "binomial"), where) for name, where in pieces.items()}
here.table(
    "Binomial scatter: errors by how the root's messages are sent, mean / worst (%)",
    thesis.binomial_regions_table(pieces, split),
)
names = list(split)
here.text(
    "**Heterogeneous against homogeneous Hockney.** Over all sizes the heterogeneous model is "
    f"{scores.mean('binomial', 'all', 'hockney_heterogeneous')} % off on average, the homogeneous one "
    f"{scores.mean('binomial', 'all', 'hockney')} %: as in the thesis. **Hockney against LMO.** They are "
    f"{scores.mean('binomial', 'all', 'hockney_heterogeneous')} % and "
    f"{scores.mean('binomial', 'all', 'lmo_heterogeneous')} % off. The regression has seen messages of both protocols, "
    "LMO eager ones only; Hockney from the same eager messages, by two sizes, is "
    f"{scores.mean('binomial', 'all', 'hockney_two_sizes')} % off. The largest errors are where all messages of the "
    f"root are eager (LMO {split[names[0]]['lmo_heterogeneous']}, Hockney {split[names[0]]['hockney_heterogeneous']}): "
    "both models let the largest message go first at full speed, while in simulation the later and smaller ones share "
    "the link with it and delay the largest subtree. That is the cause of LMO's error here: on the same cluster with "
    f"links too wide to be shared, and with the parameters of its description, LMO is {percent(unshared['lmo'].mean)} "
    f"% off at these sizes, Hockney {percent(unshared['hockney'].mean)} %. Hockney errs in the other direction, counts "
    "whole messages where only the sender's part is serial, and is closer because of that. Where the largest messages "
    "use rendezvous, they go one by one as the models have it."
)

# %% [markdown]
# ## (b) Linear or binomial? Figure 5.5
#
# For 100 to 200 KB the thesis measured the linear scatter as the faster one; Hockney chose the binomial one, wrongly,
# and LMO chose rightly.

# %%
between = thesis.sizes_of_figure_5_5()
few = [size for size, inside in zip(thesis.SIZES, between, strict=True) if inside]
both_algorithms = {
    label: {name: thesis.predicted_curves(models, "scatter", name)[key][between] for name in ("linear", "binomial")}
    for label, key in (("Hockney, heterogeneous", "hockney_heterogeneous"), ("LMO, heterogeneous", "lmo_heterogeneous"))
}
simulated = {
    "simulated linear": curves["scatter", "linear"][between],
    "simulated linear, non-blocking sends": curves["scatter", "linear_nonblocking"][between],
    "simulated binomial": curves["scatter", "binomial"][between],
}
here.figure(
    size_curves(few, {"simulated": simulated, **both_algorithms}, "Linear or binomial scatter, 16 nodes"),
    "figure-5-5",
    "Figure 5.5: linear and binomial scatter from 100 to 200 KB, simulated and by two models.",
)
chosen = {
    (kind, region): thesis.choices(models, curves, kind, where)
    for kind in ("linear", "linear_nonblocking")
    for region, where in (("below the eager limit", eager), ("100 to 200 KB", between))
}
here.table(
    "At how many sizes the linear scatter is the faster one, in simulation and by each model; in brackets, how often "
    "the choice is right",
    thesis.choices_table(chosen),
)

# %% [markdown]
# ## (c) Thresholds, LMO_Gather and LMO_Scatter: figure 7.3
#
# LMO_Gather cuts blocks from M1 to M2 into pieces below M1 with barriers between, to avoid escalations of TCP;
# LMO_Scatter cuts blocks from S on into pieces below S, to avoid the leap. **The escalations do not exist in SMPI**:
# only the overhead of LMO_Gather can be seen here.

# %%
here.table("Thresholds", thesis.thresholds_table(found.thresholds))
panels = {
    collective: {
        "simulated linear": curves[collective, "linear"],
        "simulated LMO, thresholds of the thesis": cut["thesis"][collective, "lmo"],
    }
    for collective in ("gather", "scatter")
}
here.figure(
    size_curves(thesis.SIZES, panels, "MPI_ (linear) and LMO_ versions on 16 nodes", limit, share_y=False),
    "figure-7-3",
    "Figure 7.3: linear gather and scatter, and the versions that cut messages at the thesis's thresholds.",
)
gather_ratio, scatter_ratio, _ = thesis.lmo_over_linear(cut["thesis"], curves)
unchanged = thesis.lmo_over_linear(cut["estimated"], curves)[2]
same_s = found.thresholds.scatter_leap_bytes == published.THRESHOLDS.scatter_leap_bytes
here.text(
    f"S is found at {format_size(found.thresholds.scatter_leap_bytes)}, "
    + ("the thesis's S, " if same_s else "")
    + "which is the eager limit that the description was given."
    if found.thresholds.scatter_leap_bytes
    else "No S is found. "
)
here.text(
    "LMO_Gather with the thesis's M1 and M2 takes "
    f"{gather_ratio.mean():.1f} times as long as the linear gather on average over medium "
    f"blocks, {gather_ratio.max():.1f} times at worst: barriers, and latencies of pieces. "
    + ("With the estimated thresholds (no M1) it is the linear gather. " if unchanged else "")
    + "In the thesis it won by avoiding escalations. LMO_Scatter takes "
    f"{percent(1 - scatter_ratio.mean())} % less than the linear scatter on average from S on "
    f"({percent(1 - scatter_ratio.max())} to "
    f"{percent(1 - scatter_ratio.min())} %): its pieces are eager, so that the root does not wait "
    "for each to arrive. That gain is of the same kind as the thesis's, although the cause of its leap was TCP."
)

# %% [markdown]
# ## (c) Optimal mapping
#
# Section 7.1: by a homogeneous model all mappings of processors to the binomial tree are equally good; a heterogeneous
# one distinguishes them. Node 0 remains the root. The thesis names this use and prints no numbers for it.

# %%
here.table(
    "Time saved by the optimal mapping against the default one: predicted, simulated (%)",
    thesis.mapping_table(gains),
)
gather_gain = gains["gather", "hockney_heterogeneous"][0]
scatter_gain = max((one[0] for (name, _), one in gains.items() if name == "scatter"), key=lambda g: g.simulated_gain)
worst_gain = min((gain for several in gains.values() for gain in several), key=lambda gain: gain.simulated_gain)
here.text(
    "Slow pairs differ most in alpha, which counts in small blocks. In a gather messages reach a parent one after "
    f"another, as Hockney has it: of {percent(gather_gain.predicted_gain)} % promised for "
    f"{format_size(gather_gain.message_bytes)}, {percent(gather_gain.simulated_gain)} % are gained. In an eager "
    "scatter messages of one parent share its link, which no model knows: at best "
    f"{percent(scatter_gain.simulated_gain)} % of {percent(scatter_gain.predicted_gain)} % for "
    f"{format_size(scatter_gain.message_bytes)}. The least gain of all rows is {percent(worst_gain.simulated_gain)} %."
)

# %% [markdown]
# ## (d) Where LMO's assumptions hold
#
# `exact-heterogeneous` is synthetic: 16 different nodes, links so wide that a sender's messages do not wait for one
# another, everything eager, sending as costly as receiving.

# %%
here.table(
    "LMO's parameters recovered: means over processors and pairs, and the worst error of any (%)",
    thesis.recovered_table(exact.recovered),
)
here.text(
    f"Linear scatter by (4.1) from the estimates, over {exact.scatter.points} sizes: {exact.scatter} % off (mean "
    "/ worst) with ranks in the order of the nodes. (4.1) adds the largest of the others' times to the root's; that is "
    f"what happens when the slowest is served last, and then the formula is {100 * exact.slowest_last.worst:.2f} % off "
    f"at worst. Heterogeneous Hockney is {exact.hockney_scatter} % off. Binomial scatter by LMO is "
    f"{100 * exact.binomial.worst:.0e} % off at worst: what is missing on the cluster of (b) is the sharing of links."
)

# %% [markdown]
# ## Conclusions

# %%
here.conclude(
    f"(a) Table 7.1 is reproduced within {100 * worst_two:.4f} % by two sizes; by regression, which crosses the eager "
    f"limit, within {percent(worst_alpha)} % in alpha and {percent(worst_beta)} % in beta. The published homogeneous "
    f"parameters are those between types {', '.join(same_cells) or 'of no cell'}, not the mean of the table."
)
here.conclude(
    f"(a) Measuring disjoint pairs at one time is {pace.serial.seconds / pace.parallel.seconds:.1f} times as fast "
    f"(thesis: {published.SERIAL_SECONDS / published.PARALLEL_SECONDS:.1f}) with the same parameters; PLogP takes "
    f"{seconds_of['PLogP']:.0f} s of the cluster's time (thesis: {published.TABLE_5_1_SECONDS['PLogP']:.0f}), LMO "
    f"{seconds_of['LMO']:.2f} s ({published.TABLE_5_1_SECONDS['LMO']}), Hockney {seconds_of['Hockney']:.2f} s "
    f"({published.TABLE_5_1_SECONDS['Hockney']})."
)

here.conclude(
    "(b) Does heterogeneous LMO predict scatter better than heterogeneous and homogeneous Hockney, on average? "
    + "; ".join(
        (
            f"linear, below the eager limit: {scores.lmo_is_better('linear', 'below')}",
            f"linear, above it: {scores.lmo_is_better('linear', 'above')}",
            f"linear with non-blocking sends, above it: {scores.lmo_is_better('linear_nonblocking', 'above')}",
            f"binomial, below: {scores.lmo_is_better('binomial', 'below')}",
            f"binomial, above: {scores.lmo_is_better('binomial', 'above')}",
        )
    )
    + ". Where the answer is no: a blocking send above the limit waits for its message to arrive in SMPI, which makes "
    "the linear scatter the sum that Hockney has; and small messages of a binomial scatter share a link, which neither "
    f"model knows (where links are too wide to be shared, LMO is {percent(unshared['lmo'].mean)} % off and Hockney "
    f"{percent(unshared['hockney'].mean)} %)."
)
here.conclude(
    "(b) With Hockney from eager messages only (two sizes), as LMO is, the mean errors over all sizes are "
    f"{scores.mean('linear', 'all', 'hockney_two_sizes')} % (linear) and "
    f"{scores.mean('binomial', 'all', 'hockney_two_sizes')} % (binomial) against LMO's "
    f"{scores.mean('linear', 'all', 'lmo_heterogeneous')} % and "
    f"{scores.mean('binomial', 'all', 'lmo_heterogeneous')} %."
)
for kind, what in (("linear", "blocking"), ("linear_nonblocking", "non-blocking")):
    counts = chosen[kind, "100 to 200 KB"]
    here.conclude(
        f"(b) Linear or binomial scatter from 100 to 200 KB, with {what} sends: the linear one is faster at "
        f"{counts['simulation'][0]} of {counts['simulation'][1]} sizes; heterogeneous Hockney is right at "
        f"{counts['hockney_heterogeneous'][1]}, LMO at {counts['lmo_heterogeneous'][1]} (thesis: linear, Hockney "
        "wrong, LMO right)."
    )
here.conclude(
    "(b) The linear gather is serial in SMPI: LMO's (4.2) is "
    f"{scores.mean('linear', 'below', 'lmo_heterogeneous', 'gather')} % off below the eager limit, a sum of whole "
    f"messages (Hockney) {scores.mean('linear', 'below', 'hockney_heterogeneous', 'gather')} %. The parallel small "
    "gather and the escalations that the thesis saw cannot be judged here."
)
here.conclude(
    "(c) LMO_Scatter saves "
    f"{percent(1 - scatter_ratio.mean())} % on average from S on; LMO_Gather costs "
    f"{gather_ratio.mean():.1f} times the linear gather, as there are no escalations to avoid. "
    f"The optimal mapping saves up to {percent(max(g.simulated_gain for several in gains.values() for g in several))} "
    "% of a binomial collective in simulation."
)
here.conclude(
    "(d) Where its assumptions hold, LMO's parameters are recovered within "
    f"{100 * max(row.worst_error for row in exact.recovered):.4f} % and its linear scatter within "
    f"{percent(exact.scatter.worst)} %, within {100 * exact.slowest_last.worst:.2f} % when the slowest node is served "
    "last."
)

# %%
here.publish({
    "simulated_by": found.lmo.made_by,
    "table_7_1": {
        f"{cell.types[0]}-{cell.types[1]}": {
            "published": cell.published, "two_sizes": cell.by_two_sizes, "regression": cell.by_regression,
        }
        for cell in cells
    },
    "homogeneous_hockney": homogeneous,
    "table_5_1": {name: {"measurements": one.measurements, "seconds": one.seconds} for name, one in efforts.items()},
    "side_by_side_seconds": pace.parallel.seconds,
    "one_after_another_seconds": pace.serial.seconds,
    "messages": {
        "below" if below else "above": {one.model: one.document() for one in errors}
        for below, errors in by_protocol.items()
    },
    "errors": scores.document(),
    "linear_or_binomial": {
        f"{kind}, {region}": {name: {"linear": count, "right": right} for name, (count, right) in counts.items()}
        for (kind, region), counts in chosen.items()
    },
    "thresholds": {
        "S": found.thresholds.scatter_leap_bytes,
        "M1": found.thresholds.gather_irregular_from_bytes,
        "M2": found.thresholds.gather_regular_from_bytes,
    },
    "lmo_against_linear": {
        "gather, medium": float(gather_ratio.mean()),
        "scatter, large": float(scatter_ratio.mean()),
    },
    "mapping": thesis.mapping_document(gains),
    "without_shared_links": {name: one.document() for name, one in unshared.items()},
    "exact": {
        "worst_recovery": max(row.worst_error for row in exact.recovered),
        "scatter_worst": exact.scatter.worst,
        "slowest_last_worst": exact.slowest_last.worst,
        "hockney_worst": exact.hockney_scatter.worst,
    },
})  # fmt: skip
