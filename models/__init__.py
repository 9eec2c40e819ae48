"""Communication models, which predict a collective algorithm's time from few parameters estimated on the platform."""
