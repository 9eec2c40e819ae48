"""The timed cases of a collective, and its times in one labelled array."""
