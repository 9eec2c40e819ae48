"""What is timed of a collective, and its times: one labelled array, wherever they come from."""
