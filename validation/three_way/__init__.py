"""Predicted, simulated and measured times side by side: what differs, what it costs, and why."""
