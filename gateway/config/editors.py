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
    "ActuatorSection": "What starts, stops and lists the engines of a pool that sizes itself.",
    "AlertsSection": "Where budgets' alerts are posted to.",
    "BatchesSection": "What `/v1/files` and `/v1/batches` take.",
    "BudgetSection": "A limit on what one scope spends in a day or a month.",
    "CanaryShareSection": "A share of requests that goes to one target first.",
    "ContentHookSection": "A guardrail of your own that is asked over HTTP.",
    "ContentSection": "What is looked for in requests, beside what is known by itself.",
    "DashboardSection": "The dashboard that `serve` starts beside the gateway.",
    "EventsSection": "Where settled attempts and refused requests are posted to.",
    "MembersSection": "Members of request bodies that pass, or are refused, by name.",
    "IdempotencySection": "How long the same `Idempotency-Key` is the same request.",
    "KeyCommandSection": "A program that prints the key: a vault's own.",
    "LedgerSection": "Where the books are, and how long single attempts are kept.",
    "MailSection": "The server that reports are mailed by.",
    "ReportSection": "A report with the verdict that is sent by itself, and where to.",
    "LogsSection": "What `serve` and its processes write.",
    "MatchSection": "Which requests a policy is for: all that is said must hold.",
    "ModelSection": "A name that apps ask for, and the targets behind it.",
    "ModelTimeoutsSection": "How long this model's targets have, where not as others.",
    "OpsSection": "People's time on a pool, which its engines have to earn, too.",
    "PolicyRuleSection": "How requests are routed; the first that matches counts.",
    "PolicySloSection": "What is promised of latency, and to how many.",
    "PoolSection": "Own engines of one kind, and what their hardware costs.",
    "ProviderSection": "An external API and the key for it.",
    "QueueSection": "Where requests wait that a policy lets wait.",
    "RateLimitSection": "At most so many requests or tokens in any 60 seconds.",
    "RolesSection": "Engines that only read prompts, and engines that only answer.",
    "EngineRoleSection": "Engines in one role: how many, where, and what their time is worth.",
    "RetirementSection": "When a model or an alias ends, and what takes its place.",
    "ScaleSection": "How many engines a pool has, chosen by what they earn.",
    "ResponseCacheSection": "Which requests may get an answer that was given before.",
    "SelfServiceSection": "What bounds keys that members make for themselves.",
    "StageSection": "Targets that are asked once those before cannot answer.",
    "StoreSection": "What is kept of answers, so that a client may go on with them.",
    "ReplaySection": "Whether the same again gets the first one's answer.",
    "ServerSection": "Where the gateway listens, and what it takes in.",
    "TelemetrySection": "How often engines are asked how they are.",
    "SocketsSection": "How long a WebSocket stays open, and what is kept of it.",
    "TimeoutsSection": "How long the gateway waits, for what.",
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
