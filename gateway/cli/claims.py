"""Command `breakeven claims`: published figures, recomputed from their own inputs.

It needs no ledger.
"""

from typing import Annotated, Any

import typer

from gateway.cli.output import AsJson, emit, fail, table
from ledger.economics.claimed_figures import judge_claim
from ledger.economics.claims import (
    claims,
    compute,
    is_recomputed_equal,
    is_within_reach,
)
from ledger.economics.cost import TokenBasis
from ledger.economics.formula_text import evaluate, read_input


def claims_(
    wrong: Annotated[
        bool, typer.Option("--wrong", help="Show only claims that do not follow from their inputs.")
    ] = False,
    formula: Annotated[
        str | None,
        typer.Option(help="Check your own formula, for example '1 - to / from'; needs --input."),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option("--input", help="NAME=NUMBER; repeat it for each name of --formula."),
    ] = None,
    claimed: Annotated[
        str, typer.Option(help="The claimed figure: 0.35, 30 to 40, over 100e9 or at most 1.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Recompute published figures from their own inputs, or a figure of yours.

    Exits with 1 if a result differs from the table, which would be a fault of this program.
    """
    if formula is not None:
        _check_own(formula, given or [], claimed, as_json=as_json)
        return
    found = [claim for claim in claims() if not (wrong and claim.is_confirmed)]
    told: list[dict[str, Any]] = [
        {
            "id": entry.id,
            "article": entry.article,
            "claim": entry.claim,
            "formula": entry.formula,
            "inputs": entry.inputs,
            "basis": entry.basis,
            "claimed": entry.claimed,
            "unit": entry.unit,
            "verdict": entry.verdict,
            "recomputed": [f"{float(value):.10g}" for value in compute(entry)],
            "within_reach": {basis.value: is_within_reach(entry, basis) for basis in TokenBasis},
            "agrees": is_recomputed_equal(entry),
        }
        for entry in found
    ]
    cells = [
        [
            finding.claim,
            finding.claimed,
            " to ".join(said["recomputed"]),
            f"{finding.unit}, {finding.basis}" if finding.basis else finding.unit,
            _reach(said["within_reach"]),
            finding.verdict,
            finding.article,
        ]
        for finding, said in zip(found, told, strict=True)
    ]
    columns = ("claim", ">stated", ">follows", "unit, basis", "reach", "verdict", "article")
    emit(told, as_json=as_json,
         show=lambda out: out.print(table("Published figures", columns, cells)))  # fmt: skip
    if not all(line["agrees"] for line in told):
        raise typer.Exit(1)


def _reach(within: dict[str, bool | None]) -> str:
    """Return whether the article's own speed serves the volume, by basis where they differ."""
    known = {basis: reach for basis, reach in within.items() if reach is not None}
    if not known:
        return ""
    words = {True: "within", False: "beyond"}
    if len(set(known.values())) == 1:
        return words[next(iter(known.values()))]
    return ", ".join(f"{words[reach]} ({basis})" for basis, reach in known.items())


def _check_own(formula: str, given: list[str], claimed: str, *, as_json: bool) -> None:
    pairs = [pair.partition("=") for pair in given]
    try:
        inputs = {name.strip(): read_input(name.strip(), text) for name, _, text in pairs}
        found = evaluate(formula, inputs)
        verdict = judge_claim(claimed, found)
    except ValueError as error:
        fail(f"--formula: {error}")
    told = {"formula": formula, "recomputed": f"{float(found):.10g}", "claimed": claimed,
            "verdict": verdict}  # fmt: skip
    line = f"{told['recomputed']}: {verdict}"
    emit(told, as_json=as_json, show=lambda out: out.print(line, markup=False))
