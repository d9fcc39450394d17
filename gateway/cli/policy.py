"""Commands `breakeven policy`: explain decisions, and manage policy sets."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.admin_backend import run_query
from gateway.cli.config import Config, load_or_fail
from gateway.cli.ledger_access import ledger_if_any, prices_of
from gateway.cli.output import AsJson, emit, fail
from gateway.config.faults import suggest
from gateway.config.settings import Settings
from gateway.control.admin import explaining as verbs
from gateway.control.admin.gateway_address import gateway_url
from gateway.control.decisions.hypothetical import HypotheticalRequest, explain


def explain_command(
    request_id: Annotated[
        str | None, typer.Argument(help="Id of a past request, from its header `x-request-id`.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Explain a hypothetical request for this model instead.")
    ] = None,
    team: Annotated[
        str | None,
        typer.Option(help="Team of the hypothetical request; default: the key's, or `default`."),
    ] = None,
    prompt_tokens: Annotated[
        int, typer.Option(min=1, help="Prompt tokens of the hypothetical request.")
    ] = 500,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Maximum answer tokens of the hypothetical request.")
    ] = None,
    content: Annotated[
        str | None,
        typer.Option(help="Kinds of content that it contains, separated by commas: card,email."),
    ] = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Explain a past or hypothetical request: all candidates with reasons."""
    if (request_id is None) == (model is None):
        fail("name either a request id or --model NAME")
    if request_id is not None or gateway_url() is not None:
        wanted = verbs.ExplainInput(request_id, model, team, prompt_tokens, max_tokens, content)
        found = run_query(config, verbs.decisions_explain, wanted)
    else:
        assert model is not None, "one of both was named"
        kinds = verbs.split_kinds(content)
        question = HypotheticalRequest(model, team or "default", prompt_tokens, max_tokens, kinds)
        found = _explain_hypothetical(load_or_fail(config), question)
    emit(
        found["attempts"] or found["decision"],
        as_json=as_json,
        show=lambda out: out.print("\n".join(found["lines"]), markup=False),
    )


def _explain_hypothetical(settings: Settings, question: HypotheticalRequest) -> dict[str, Any]:
    """Explain a hypothetical request, also before the first start without a ledger."""
    with ledger_if_any(settings) as books:
        decisions = explain(settings, question, books, prices_of(settings, books))
    if decisions is None:
        fail(
            f"there is no model named `{question.model}`{suggest(question.model, settings.models)}"
        )
    return verbs.decision_document(decisions)
