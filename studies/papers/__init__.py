"""One folder for each paper: its printed tables, its analysis and its notebook."""
