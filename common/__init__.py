"""Modules that every package uses: errors, sizes and process counts, files, and the experiments that models ask for."""
