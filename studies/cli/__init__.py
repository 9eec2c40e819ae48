"""The commands of the command line: one file for a command, or for a few that belong together (commands.py)."""
