"""What commands decided, stored and showed before the code beneath them changed, in files that tests compare with.

commands.py is the table of command lines, shapes.py says what is kept of what they print and write, presented.py what
is kept of tables, sentences and figures. measured.py makes the measured times of which some of them choose, keys.py
lists the configurations of runners, functions.py has the results that no command prints, and made_up.py presents
results that need MPI, a test bed or hours. Files are written again by `python -m tests.golden.rewrite [GROUP...]`: only
when a result is meant to change, and with the reason.
"""
