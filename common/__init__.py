"""Modules that every floor uses: errors, sizes and process counts, files, and the experiments that models ask for."""
