"""Compares times and deciders, by errors, ranks and the slowdowns of picks."""
