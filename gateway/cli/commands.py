"""Registry of all commands in the order of the help: `module:function` in this folder."""

from collections.abc import Mapping

from gateway.cli.lazy_commands import CommandGroupSpec

_KEYS = {
    "create": "keys:create",
    "list": "keys:list_keys",
    "rotate": "keys:rotate",
    "revoke": "keys:revoke",
    "import": "keyimport:import_",
}
_ENGINE = {
    "bench": "enginebench:bench",
    "fit": "enginefit:fit",
    "plan": "engineplan:plan",
    "probe": "engineprobe:probe",
    "profile": "engineprofile:profile",
    "ladder": "engineladder:ladder",
    "tune": "enginetune:tune",
    "pack": "enginepack:pack",
    "unpack": "enginepack:unpack",
    "status": "engineops:status",
    "drain": "engineops:drain",
    "resume": "engineops:resume",
    "restart": "engineops:restart",
    "logs": "engineops:logs",
    "quantize": "enginequantize:quantize",
    "eval": "engineeval:evaluate",
    "install": "engine:install",
    "list": "engine:list_gpus",
}
_POLICY = {
    "show": "policysets:show",
    "check": "policysets:check",
    "diff": "policysets:diff",
    "apply": "policysets:apply",
    "history": "policysets:history",
    "rollback": "policysets:rollback",
    "simulate": "simulate:simulate",
    "explain": "policy:explain_command",
}
_TARGET = {
    "list": "operate:list_targets",
    "disable": "operate:disable",
    "enable": "operate:enable",
}
_ROUTE = {
    "force": "operate:force",
    "release": "operate:release",
    "list": "operate:list_routes",
}
_FLEET = {
    "status": "fleet:status",
    "plan": "fleet:plan",
    "explain": "fleet:explain",
    "play": "fleetplay:play",
    "pause": "fleet:pause",
    "resume": "fleet:resume",
}
_ESTIMATES = {
    "show": "estimates:show",
    "targets": "estimates:targets",
    "reset": "estimates:reset",
}
_LEDGER = {
    "export": "export:export",
    "report": "ledger:report",
    "verify": "ledger:verify",
    "seal": "ledger:seal",
    "migrate": "ledger:migrate_",
    "changes": "ledger:changes_",
    "rebuild": "ledger:rebuild",
    "retire": "ledger:retire",
    "findings": "journals:findings",
    "acknowledge": "journals:acknowledge",
    "salvage": "journals:salvage",
    "drain": "journals:drain",
}
_INVOICES = {
    "import": "invoices:import_file",
    "list": "invoices:list_invoices",
    "show": "invoices:show",
    "project": "invoices:project",
    "post": "invoices:post",
    "claims": "billing_claims:list_claims",
    "waive": "billing_claims:waive",
}
_PRICES = {
    "show": "prices:show",
    "check": "prices:check",
    "diff": "prices:diff",
    "import": "prices:import_prices",
}
_RATES = {
    "list": "rates:list_rates",
    "enter": "rates:enter",
    "withdraw": "rates:withdraw",
    "currency": "rates:currency",
    "gpus": "offers:gpus",
    "reserve": "offers:reserve",
}
_BUDGETS = {
    "list": "budgets:list_budgets",
    "enter": "budgets:enter",
    "end": "budgets:end",
    "withdraw": "budgets:withdraw",
}
_ANOMALIES = {
    "muted": "anomalies:muted",
    "mute": "anomalies:mute",
    "unmute": "anomalies:unmute",
}
_TAGS = {
    "list": "virtualtags:list_tags",
    "enter": "virtualtags:enter",
    "withdraw": "virtualtags:withdraw",
}
_METRICS = {
    "list": "businessmetrics:list_metrics",
    "import": "businessmetrics:import_metric",
    "withdraw": "businessmetrics:withdraw",
}
_CONFIG = {
    "import": "configuration:import_command",
    "schema": "configuration:schema_command",
}
COMMANDS: Mapping[str, str | CommandGroupSpec] = {
    "check": "check:check",
    "doctor": "doctor:doctor",
    "claims": "claims:claims_",
    "up": "up:up",
    "demo": "up:demo",
    "serve": "serve:serve",
    "keys": CommandGroupSpec("Keys that applications authenticate with.", _KEYS),
    "engine": CommandGroupSpec(
        "Own engines: install, probe, plan, bench, tune, eval, operate.", _ENGINE
    ),
    "policy": CommandGroupSpec("Routing policies: explain, change, take back.", _POLICY),
    "target": CommandGroupSpec("Targets: take one out, put it back.", _TARGET),
    "route": CommandGroupSpec("Routes: own engines alone, or APIs alone.", _ROUTE),
    "fleet": CommandGroupSpec(
        "Pools that size themselves: plans, changes, a what-if, a pause.", _FLEET
    ),
    "estimates": CommandGroupSpec("Learned estimates: show, targets, reset.", _ESTIMATES),
    "ledger": CommandGroupSpec("The ledger: what was spent, and proof that it adds up.", _LEDGER),
    "invoices": CommandGroupSpec("Invoices beside the books.", _INVOICES),
    "prices": CommandGroupSpec("The price book: prices in force, doubts, imports.", _PRICES),
    "rates": CommandGroupSpec("Rates of own GPUs and of currencies.", _RATES),
    "budgets": CommandGroupSpec("Limits of what may be spent.", _BUDGETS),
    "anomalies": CommandGroupSpec("Series whose unusual days are told to nobody.", _ANOMALIES),
    "tags": CommandGroupSpec("Virtual tags: values that rules give to requests.", _TAGS),
    "metrics": CommandGroupSpec("Customers, tickets or orders that cost is divided by.", _METRICS),
    "config": CommandGroupSpec("Configuration files: import, schema.", _CONFIG),
}
