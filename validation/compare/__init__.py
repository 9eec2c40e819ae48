"""Compares times and whatever decides: errors, ranks and the slowdowns of picks."""
