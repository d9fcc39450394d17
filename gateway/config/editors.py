"""JSON Schema of the configuration for editors: sections, fields and allowed values.

It covers single fields; `breakeven check` also checks fields together. It is stricter in one point:
numbers and switches in quotes are marked, although `check` accepts them.
"""

from typing import Any

from gateway.config.schema import Settings

JSON_SCHEMA = "https://json-schema.org/draft/2020-12/schema"
NUMBER = r"^\s*\+?(\d[\d_]*\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"  # numbers in text are exact
DAY = r"^\d{4}-\d{2}-\d{2}$"
SECTIONS = {
    "ActuatorSection": "Program or API that starts, stops and lists the engines of a scaled pool.",
    "AlertsSection": "Destinations of budget alerts.",
    "BatchesSection": "Limits of `/v1/files` and `/v1/batches`.",
    "BudgetSection": "A limit on what one scope spends in a day or a month.",
    "CanaryShareSection": "A share of requests that goes to one target first.",
    "ContentHookSection": "A guardrail of your own, called over HTTP.",
    "ContentSection": "Additional content that requests are searched for.",
    "DashboardSection": "The dashboard that `serve` starts beside the gateway.",
    "EventsSection": "Destination of events: settled attempts and refused requests.",
    "MembersSection": "Members of request bodies that are allowed or refused, by name.",
    "IdempotencySection": "Time for which an `Idempotency-Key` identifies the same request.",
    "KeyCommandSection": "A program that prints the key, for example a vault's client.",
    "LedgerSection": "Database of the ledger, and how long single attempts are kept.",
    "MailSection": "Mail server for reports and alerts.",
    "ReportSection": "A periodic report with the verdict, and its destinations.",
    "LogsSection": "Logs of `serve` and its processes.",
    "MatchSection": "Requests that a policy matches: all stated members must match.",
    "ModelSection": "A model name of applications, and its targets.",
    "ModelTimeoutsSection": "Timeouts of this model, where they differ from the default.",
    "OpsSection": "Hours of work on a pool, which are part of its cost.",
    "PolicyRuleSection": "A routing rule; the first policy that matches applies.",
    "PolicySloSection": "Promised latency, and the share of requests that must meet it.",
    "PoolSection": "Own engines of one kind, and what their hardware costs.",
    "ProviderSection": "An external API and the key for it.",
    "QueueSection": "Queue for requests whose policy allows waiting.",
    "RateLimitSection": "Maximum of requests or tokens in any 60 seconds.",
    "RolesSection": "Engines that only read prompts, and engines that only answer.",
    "EngineRoleSection": "Engines of one role: number, addresses and value of their time.",
    "RetirementSection": "End of a model or an alias, and its successor.",
    "ScaleSection": "Number of engines of a pool, chosen by what they earn.",
    "ResponseCacheSection": "Requests that may get an earlier answer from the cache.",
    "SelfServiceSection": "Limits of keys that members make for themselves.",
    "StageSection": "Targets that are tried after the earlier ones failed.",
    "StoreSection": "Storage of answers, so that a client can continue from them.",
    "ReplaySection": "Replay of the first answer to a repeated request.",
    "ServerSection": "Address of the gateway, and limits of its requests.",
    "TelemetrySection": "Intervals at which engines are observed.",
    "SocketsSection": "Limits of a WebSocket.",
    "TimeoutsSection": "Timeouts of the gateway.",
}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a configuration file, with a description of each field."""
    schema = Settings.model_json_schema()
    for name, section in schema["$defs"].items():
        if name in SECTIONS:
            section["description"] = SECTIONS[name]
    _sharpen(schema)
    return {"$schema": JSON_SCHEMA, **schema}


def _sharpen(node: Any) -> None:
    """Add patterns for numeric text and the format of dates."""
    if isinstance(node, list):
        for each in node:
            _sharpen(each)
    elif isinstance(node, dict):
        kinds = {item.get("type"): item for item in node.get("anyOf", ()) if isinstance(item, dict)}
        if "number" in kinds and "string" in kinds:
            kinds["string"].setdefault("pattern", NUMBER)
        if node.get("format") == "date":
            node["pattern"] = DAY
        for each in node.values():
            _sharpen(each)
