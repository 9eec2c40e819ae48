"""What commands decided, compared and stored before the code beneath them changed, in files that tests compare with.

commands.py is the table of command lines, shapes.py says what is kept of what they print and write, measured.py makes
the measured times of which some of them choose, keys.py lists the configurations of runners, and functions.py
has the results that no command prints. Files are written again by `python -m tests.golden.rewrite [GROUP...]`: only
when a result is meant to change, and with the reason.
"""
