"""Every command of `breakeven`, in the order of its lists: where it is, and one sentence of it."""

from collections.abc import Mapping

from gateway.cli.late import Command, Noun

_KEYS = {
    "create": Command("keys:create", "Make a key."),
    "list": Command("keys:list_keys", "List all keys; tokens are not stored and cannot be shown."),
    "rotate": Command(
        "keys:rotate",
        "Make a key that may do the same, and let the old one go on for a while beside it.",
    ),
    "revoke": Command(
        "keys:revoke",
        "Revoke a key: every worker refuses it within a second, and nothing brings it back.",
    ),
}
_ENGINE = {
    "bench": Command(
        "enginebench:bench",
        "Send load to an OpenAI URL: latencies with intervals, goodput, saturation, cost per 1M.",
    ),
    "fit": Command(
        "enginefit:fit",
        "Fit an iteration-level model to measured requests; a table says what it misses.",
    ),
    "plan": Command(
        "engineplan:plan",
        "What a GPU can do with a model: memory, KV room, floors; every number with its formula.",
    ),
    "probe": Command(
        "engineprobe:probe",
        "Measure bandwidth, FLOP/s, launches, attention and all-reduce; `engine plan` reads the "
        "file.",
    ),
    "profile": Command(
        "engineprofile:profile",
        "Record a running vLLM with its own torch profiler, and show its kernels by their time.",
    ),
    "ladder": Command(
        "engineladder:ladder",
        "Measure each step from a naive server to vLLM with everything on; what is done is kept.",
    ),
    "tune": Command(
        "enginetune:tune",
        "Search vLLM's flags for the best TTFT, TPOT, throughput or cost at an SLO; write a "
        "profile.",
    ),
    "pack": Command(
        "enginepack:pack",
        "Pack the engine, this command and a model for a host without a network.",
    ),
    "unpack": Command(
        "enginepack:unpack",
        "Unpack a bundle and install it here, with no network; the same again goes on.",
    ),
    "status": Command(
        "engineops:status",
        "Every engine of this host: state, load, KV cache in use, what is held over it, upkeep.",
    ),
    "drain": Command(
        "engineops:drain",
        "Send an engine no new request, and wait until those under way have ended.",
    ),
    "resume": Command("engineops:resume", "Let requests go to an engine again."),
    "restart": Command(
        "engineops:restart",
        "Drain, restart and resume one engine after the other; no request fails for it.",
    ),
    "logs": Command("engineops:logs", "What an engine that this gateway started has written."),
    "eval": Command(
        "engineeval:evaluate",
        "Compare models with their baseline on your prompts; status 1 unless every one passes.",
    ),
    "install": Command(
        "engine:install",
        "Install vLLM into an environment of its own (CUDA where a GPU is, else the CPU build).",
    ),
    "list": Command(
        "engine:list_gpus",
        "The GPU catalogue: memory, bandwidth, FLOP/s, dated public prices.",
    ),
}
_POLICY = {
    "show": Command("policysets:show", "The policies in force, as YAML, and since when."),
    "check": Command(
        "policysets:check",
        "Every fault of a set under this configuration; puts nothing in force.",
    ),
    "diff": Command(
        "policysets:diff", "What a set would change in the policies in force, line by line."
    ),
    "apply": Command(
        "policysets:apply",
        "Show what changes, ask, and put a set in force; running gateways follow by themselves.",
    ),
    "history": Command("policysets:history", "Which sets were put in force, when and by whom."),
    "rollback": Command(
        "policysets:rollback", "Put an earlier set in force again, as a new entry of the history."
    ),
    "simulate": Command(
        "simulate:simulate",
        "Dollars, kept promises, spill and load that a set of policies would have made of traffic.",
    ),
    "explain": Command(
        "policy:explain_command",
        "Show every candidate with its reason and numbers, for a past request or a supposed one.",
    ),
}
_TARGET = {
    "list": Command(
        "operate:list_targets",
        "Every name that can be disabled, and what operators hold over policies at this moment.",
    ),
    "disable": Command(
        "operate:disable", "No new request goes there; those under way end where they are."
    ),
    "enable": Command("operate:enable", "Requests may go there again."),
}
_ROUTE = {
    "force": Command(
        "operate:force",
        "Send requests to own engines alone, or to APIs alone; what is internal-only stays inside.",
    ),
    "release": Command("operate:release", "Let policies decide again."),
    "list": Command("operate:list_routes", "What operators hold over policies at this moment."),
}
_LEDGER = {
    "export": Command(
        "export:export",
        "Attempts as CSV or Parquet, or all costs (API charges, GPU hours) as FOCUS 1.2.",
    ),
    "report": Command(
        "ledger:report",
        "Spend by team, model and target; own GPUs used and idle; what an API would have cost.",
    ),
    "verify": Command(
        "ledger:verify",
        "Run every invariant check over the books; status 1 when one does not hold.",
    ),
    "seal": Command(
        "ledger:seal",
        "The heads of both chains, seals and changes: `verify --seal` proves them later.",
    ),
    "migrate": Command(
        "ledger:migrate_",
        "Bring the schema up to this version's; the address comes from BREAKEVEN_LEDGER_URL.",
    ),
    "changes": Command(
        "ledger:changes_",
        "Who changed contracts, prices, policies and keys, from what to what; never a secret.",
    ),
    "rebuild": Command(
        "ledger:rebuild",
        "Add all attempts up anew, by hour and day; pages answer from rows until it is done.",
    ),
    "retire": Command(
        "ledger:retire",
        "Delete single attempts that are old; what they add up to stays, and the proof of it.",
    ),
}
_INVOICES = {
    "import": Command(
        "invoices:import_file",
        "Read an invoice: OpenAI's costs as JSON, a CSV of days and amounts, or FOCUS of a cloud.",
    ),
    "list": Command("invoices:list_invoices", "Every imported invoice, the latest first."),
    "show": Command("invoices:show", "What differs from the books, where, and what explains it."),
    "project": Command(
        "invoices:project",
        "Say whose a project on a provider's bills is; every comparison goes by it.",
    ),
    "post": Command(
        "invoices:post",
        "Approve: bring the books to the invoice by adjustments, one a day.",
    ),
}
_PRICES = {
    "show": Command(
        "prices:show",
        "The prices in force: version, source, dates, doubts; of one name also its versions.",
    ),
    "check": Command(
        "prices:check",
        "Stale, expired, source-less, implausible, missing, unapproved: status 1 for any of them.",
    ),
    "diff": Command(
        "prices:diff",
        "What an import would change: old and new price of every kind; stores nothing.",
    ),
    "import": Command(
        "prices:import_prices",
        "Show what changes, ask, and store it as new versions; running gateways follow by "
        "themselves.",
    ),
}
_RATES = {
    "list": Command(
        "rates:list_rates",
        "What every pool costs, as configured and as entered, and what is to come.",
    ),
    "enter": Command(
        "rates:enter",
        "Enter a pool's rates; what is left out stays as it is, hours that are closed too.",
    ),
    "withdraw": Command(
        "rates:withdraw", "Take back what was entered: the configuration's rates count again."
    ),
    "currency": Command(
        "rates:currency",
        "Enter what a dollar is in another currency, for the dashboard to show money in.",
    ),
}
_CONFIG = {
    "import": Command(
        "configuration:import_command",
        "Write the configuration that does the same, and say what it could not carry over.",
    ),
    "schema": Command(
        "configuration:schema_command",
        "Print the JSON Schema of a configuration file: editors complete and check by it.",
    ),
}
COMMANDS: Mapping[str, Command | Noun] = {
    "check": Command(
        "check:check", "List every fault of a configuration file at once; starts nothing."
    ),
    "claims": Command("claims:claims_", "Published figures, recomputed from their own inputs."),
    "up": Command("up:up", "Start everything for a first look; no configuration is needed."),
    "demo": Command("up:demo", "Simulated engines, 30 replayed days, live traffic: needs no keys."),
    "serve": Command(
        "serve:serve", "Start the gateway and what this host runs; Ctrl-C stops it all."
    ),
    "keys": Noun("Keys that applications authenticate with.", _KEYS),
    "engine": Noun("Own engines: install, probe, plan, bench, tune, eval, operate.", _ENGINE),
    "policy": Noun("Routing policies: explain, change, take back.", _POLICY),
    "target": Noun("Targets: take one out, put it back.", _TARGET),
    "route": Noun("Routes: own engines alone, or APIs alone.", _ROUTE),
    "ledger": Noun("The ledger: what was spent, and proof that it adds up.", _LEDGER),
    "invoices": Noun("Invoices beside the books.", _INVOICES),
    "prices": Noun("The price book: prices in force, doubts, imports.", _PRICES),
    "rates": Noun("Rates of own GPUs and of currencies.", _RATES),
    "config": Noun("Configuration files: import, schema.", _CONFIG),
}
