"""The algorithms' catalogue, seen from Python; the algorithms themselves are C."""
