"""Communication models: what a collective algorithm costs, from few parameters estimated on the platform."""
