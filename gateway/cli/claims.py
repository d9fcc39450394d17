"""`breakeven claims`: published figures beside what follows from their own inputs; no ledger."""

from typing import Annotated, Any

import typer

from gateway.cli.output import AsJson, emit, table
from ledger.economics.claims import agrees, claims, compute


def claims_(
    wrong: Annotated[
        bool, typer.Option("--wrong", help="Only those that do not follow from their inputs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Published figures, recomputed from their own inputs.

    Status 1 if one comes out other than the table says: that would be our own fault.
    """
    found = [one for one in claims() if not (wrong and one.holds)]
    told: list[dict[str, Any]] = [
        {
            "id": one.id, "claim": one.claim, "formula": one.formula, "inputs": one.inputs,
            "basis": one.basis, "claimed": one.claimed, "unit": one.unit, "verdict": one.verdict,
            "recomputed": [f"{float(value):.10g}" for value in compute(one)],
            "agrees": agrees(one),
        }
        for one in found
    ]  # fmt: skip
    cells = [
        [one.claim, one.claimed, " to ".join(said["recomputed"]), one.unit, one.verdict]
        for one, said in zip(found, told, strict=True)
    ]
    columns = ("claim", ">stated", ">follows", "unit", "verdict")
    emit(told, as_json=as_json,
         show=lambda out: out.print(table("Published figures", columns, cells)))  # fmt: skip
    if not all(one["agrees"] for one in told):
        raise typer.Exit(1)
