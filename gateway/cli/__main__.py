"""Runs the program as `python -m gateway.cli`, where no script `breakeven` is installed."""

from gateway.cli.main import main

if __name__ == "__main__":
    main()
