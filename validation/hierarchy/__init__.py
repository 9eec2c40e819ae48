"""Hierarchical collectives made of tasks: measured tasks, the cost model of tasks, and autotuning (Luo et al. 2020)."""
