# %% [markdown]
# # Hunold & Carpen-Amarie 2018: which guidelines do simulated libraries violate?
#
# S. Hunold and A. Carpen-Amarie, "Autotuning MPI Collectives using Performance Guidelines", HPC Asia 2018, check on
# three machines whether collectives are slower than mock-ups of other collectives, and replace them where they are.
# Here SMPI's selectors and the known decisions of Open MPI 4.1 and MPICH 4 stand for the libraries, on descriptions of
# the three machines, and the same checks and repairs are made.
#
# Nothing measured on these machines was at hand. Their descriptions hold what the paper and the makers say, and
# estimates, which they mark; no figure of the paper went into them. SMPI's selectors and the known decisions are of
# other versions than the paper's libraries: the nearest ones to IBM's and Intel's MPI, which come from MPICH. The
# hardware's collectives of a Blue Gene/Q are not simulated. Where the paper runs 512 or 1024 processes, SMPI runs 64 on
# 16 nodes, and the schedule engine all of them. So what can agree is which collective is beaten by which mock-up, and
# not by how much.

# %%
from collwise.common.units import format_size
from collwise.studies.figures.guidelines import guidelines_figure
from collwise.studies.papers.hunold2018 import analysis as paper
from collwise.studies.papers.study import Study
from collwise.studies.present.guidelines import SUMMARY_COLUMNS, summary_row

here = Study()
settings = paper.QUICK if here.quick else paper.SETTINGS
with here.context() as simulation:
    found = {setting: paper.checked(setting, simulation) for setting in settings}

# %% [markdown]
# ## Violations before and after repair

# %%
here.table(
    "Violations by setting; times of the check are those of the last run, with stored simulations",
    (summary_row(one)[:-1] for one in found.values()),
    columns=SUMMARY_COLUMNS[:-1],
)

# %% [markdown]
# ## Figure 4: default, mock-ups and tuned

# %%
for number, (setting, one) in enumerate(found.items()):
    caption = f"{setting.title} in the paper; {setting.simulation}, simulated."
    here.figure(guidelines_figure(one, max(one.plan.procs)), caption, f"figure-4-{number + 1}")

# %% [markdown]
# ## Beside the paper's findings
#
# A simulation shows a finding if half of the message sizes checked violate the guidelines, and if their largest ratio,
# of the default's time to the mock-up's, exceeds 1 by at least half as much as the gain that the paper states; in part
# if fewer do, or by less.

# %%
table = paper.compared(found)
here.table("What the paper states, and where the simulation violates the same guidelines", table.drop(columns="engine"))

# %% [markdown]
# What explains the findings that at least one simulation does not show in full:

# %%
for line in paper.remarks(table):
    here.text(f"- {line}")

# %% [markdown]
# ## Conclusions

# %%
for engine, rows in table.groupby("engine"):
    counts = rows.agrees.value_counts()
    here.conclude(f"""
    By {"the " if engine != "SMPI" else ""}{engine}: of {len(rows)} findings of the paper's {len(paper.FINDINGS)},
    {counts.get("yes", 0)} are found in simulation, too, {counts.get("in part", 0)} in part.""")
repaired = [*found.values()]
before = sum(one.before.counts()["pattern"] for one in repaired)
after = sum(one.tuned.checked.counts()["pattern"] for one in repaired if one.tuned is not None)
here.conclude(f"Mock-ups repair the violations: {before} of the pattern before, {after} after.")
for setting, one in found.items():
    if (greatest := one.greatest_gain()) is not None:
        repair, gain = greatest
        here.conclude(f"""
        {setting.title} ({setting.simulation}): the largest gain is {gain:.2f} times, {repair.call.collective} of
        {format_size(repair.call.message_bytes)} by {repair.guideline.label}.""")

# %%
here.publish({
    "violations": {
        f"{setting.title}, {setting.simulation}": {"before": one.before.counts(),
                        "after": None if one.tuned is None else one.tuned.checked.counts()}
        for setting, one in found.items()
    },
    "findings": table.to_dict("records"),
})  # fmt: skip
