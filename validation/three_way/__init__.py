"""Predicted, simulated and measured times side by side: errors, slowdowns of picks, and causes of differences."""
