"""`breakeven ledger`: what was spent, and whether the books hold."""

import typer

app = typer.Typer(help="The ledger: report and verify.", no_args_is_help=True)
