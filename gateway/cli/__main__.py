"""Entry point for `python -m gateway.cli`, without the script `breakeven`."""

from gateway.cli.main import main

if __name__ == "__main__":
    main()
