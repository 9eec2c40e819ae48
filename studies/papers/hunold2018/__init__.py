"""Hunold & Carpen-Amarie 2018: performance guidelines and their repair, on the paper's machines in simulation."""
