"""Luo et al. 2020 (HAN): hierarchical collectives, their tasks and their tuning, in simulation."""
