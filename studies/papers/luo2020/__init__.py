"""Luo et al. 2020, HAN: hierarchical collectives tuned by their tasks, beside simulation."""
