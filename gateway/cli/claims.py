"""`breakeven claims`: published figures beside what follows from their own inputs; no ledger."""

from typing import Annotated, Any

import typer

from gateway.cli.output import AsJson, emit, table
from ledger.economics.claims import claims, compute, is_recomputed_equal


def claims_(
    wrong: Annotated[
        bool, typer.Option("--wrong", help="Only those that do not follow from their inputs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Published figures, recomputed from their own inputs.

    Status 1 if one comes out other than the table says: that would be our own fault.
    """
    found = [claim for claim in claims() if not (wrong and claim.is_confirmed)]
    told: list[dict[str, Any]] = [
        {
            "id": entry.id,
            "claim": entry.claim,
            "formula": entry.formula,
            "inputs": entry.inputs,
            "basis": entry.basis,
            "claimed": entry.claimed,
            "unit": entry.unit,
            "verdict": entry.verdict,
            "recomputed": [f"{float(value):.10g}" for value in compute(entry)],
            "agrees": is_recomputed_equal(entry),
        }
        for entry in found
    ]
    cells = [
        [
            finding.claim,
            finding.claimed,
            " to ".join(said["recomputed"]),
            finding.unit,
            finding.verdict,
        ]
        for finding, said in zip(found, told, strict=True)
    ]
    columns = ("claim", ">stated", ">follows", "unit", "verdict")
    emit(told, as_json=as_json,
         show=lambda out: out.print(table("Published figures", columns, cells)))  # fmt: skip
    if not all(line["agrees"] for line in told):
        raise typer.Exit(1)
