"""The catalogue of algorithms, in Python; the algorithms themselves are written in C."""
