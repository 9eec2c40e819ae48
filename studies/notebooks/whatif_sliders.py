# %% [markdown]
# # What if the network were another one?
#
# Choose a platform and a collective, and move a slider: times are made anew, for every algorithm, process count P and
# message size m. [All questions](/files/start.html)

# %%
import collwise

collwise.explorer("gros", "allreduce")
