"""`python -m collwise.studies` is the command line."""

from collwise.studies.cli.main import main

if __name__ == "__main__":
    main()
