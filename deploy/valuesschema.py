"""The chart's values.schema.json: `python -m deploy.valuesschema`, or `make settings`.

The schema joins the chart's own (deploy/helm/values.schema.yaml) and, as `config`, the schema of
the gateway's configuration without settings that the chart makes itself. Values with a default are
required. Such a value is missing if it was set to null, for example by a key whose lines are all
comments; a NetworkPolicy rule without its peers would then admit everyone.
"""

import json
from pathlib import Path
from typing import Any

import yaml

from gateway.config.editors import json_schema

HELM = Path(__file__).resolve().parent / "helm"
OWN = HELM / "values.schema.yaml"
VALUES = HELM / "breakeven" / "values.yaml"
WRITTEN = HELM / "breakeven" / "values.schema.json"
# Settings that the chart makes itself: state folder, dashboard, peers, ports, database URL (which
# holds a password), and replicas of engines, which run in their own pods.
OURS = {
    "Settings": ("state_dir", "dashboard", "peers"),
    "ServerSection": ("host", "port", "keda_port"),
    "LedgerSection": ("url", "url_env"),
    "EngineSection": ("replicas", "port", "environment"),
}


def join_schemas() -> dict[str, Any]:
    schema: dict[str, Any] = yaml.safe_load(OWN.read_text(encoding="utf-8"))
    config = json_schema()
    definitions = config.pop("$defs")
    del config["$schema"]
    for name, keys in OURS.items():
        part = config if name == "Settings" else definitions[name]
        for key in keys:
            del part["properties"][key]
    definitions["PoolSection"]["required"].remove(
        "engine"
    )  # the chart sets it for pools under `engines`
    require_defaults(schema, yaml.safe_load(VALUES.read_text(encoding="utf-8")))
    schema["properties"]["config"] = strip_defaults(config)
    schema["$defs"] |= strip_defaults(definitions)
    return schema


def require_defaults(schema: dict[str, Any], values: dict[str, Any]) -> None:
    """Require every value of the chart that has a default, at each level of the schema."""
    if "properties" not in schema:
        return
    schema["required"] = list(values)
    for name, value in values.items():
        if isinstance(value, dict):
            require_defaults(schema["properties"].get(name, {}), value)


def strip_defaults(value: Any) -> Any:
    """Return the schema without defaults, which the gateway applies itself."""
    if isinstance(value, dict):
        return {key: strip_defaults(item) for key, item in value.items() if key != "default"}
    if isinstance(value, list):
        return [strip_defaults(item) for item in value]
    return value


def text() -> str:
    return json.dumps(join_schemas(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    WRITTEN.write_text(text(), encoding="utf-8")
