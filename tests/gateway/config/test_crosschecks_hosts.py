"""Ports, addresses, engines and times that cannot work together: one row per fault."""

import pytest

from gateway.config.crosschecks_hosts import HOST_CHECKS
from gateway.config.document import read_document
from gateway.config.draft import draft_settings

GOOD = """
server: {port: 8080, timeouts: {connect_s: 5, total_s: 900}}
dashboard: {enabled: true, port: 8501}
telemetry: {scrape_s: 0.5, stale_s: 10}
ledger: {url: "postgresql+psycopg://me:hunter2@db/books"}
pools:
  a:
    engine: {model: /models/a, replicas: 2, port: 9000, features: [tools]}
    gpu: {type: H200, since: 2026-11-01, until: 2026-11-01}
  b:
    engine: {model: /models/b, replicas: 2, port: 9002, endpoints: ["http://10.0.0.5:8080/v1"]}
    gpu: {type: H200}
providers:
  openai: {api_key_env: OPENAI_API_KEY}
  sim: {simulated: true, start: true}
  own: {base_url: "http://10.0.0.6:8000/v1"}
  bedrock: {kind: litellm}
policies: [{name: x, otherwise: queue, queue_ms: 2000}]
"""


def found(text: str) -> list[str]:
    settings = draft_settings(read_document(text)).settings
    assert settings is not None
    return [fault.text("f") for check in HOST_CHECKS for fault in check(settings)]


def test_the_sound_file_has_no_faults():
    assert found(GOOD) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            "features: [tools]", "kinds: [chat, speech]",
            "pools.a.engine.kinds[1]: own engines do not serve `speech` here",
        ),
        (
            "simulated: true, start: true", "simulated: true, start: true, kinds: [tokenize]",
            "providers.sim.kinds[0]: APIs are not asked for `tokenize`",
        ),
        ("bedrock: {kind: litellm}", "anthropic: {kind: anthropic, api_key_env: A}", None),
        ("bedrock: {kind: litellm}", "claude: {kind: anthropic, api_key_env: A}",
         "providers.claude.base_url: is needed"),
        ("bedrock: {kind: litellm}", "anthropic: {kind: anthropic, kinds: [rerank]}",
         "providers.anthropic.kinds[0]: Anthropic's Messages does not serve `rerank`"),
        ("start: true}", "start: true, kind: anthropic}", "providers.sim.kind: the stand-in that"),
        ("{kind: litellm}", "{kind: litellm, betas: [a]}", "providers.bedrock.betas: applies to"),
        ("{kind: litellm}", "{kind: litellm, features: [messages]}",
         "providers.bedrock.features: only providers of `kind: anthropic` speak Messages"),
        ("replicas: 2, port: 9000", "port: 9000", "pools.a.engine: set `replicas`"),
        ("model: /models/a, ", "", "pools.a.engine.model: is needed to start replicas"),
        ("replicas: 2, port: 9000", "profile: p.json, endpoints: [http://10.0.0.4/v1]",
         "pools.a.engine.profile: is for vLLM engines that are started here"),
        ("replicas: 2, port: 9000", "replicas: 2, metrics: sglang, port: 9000",
         "pools.a.engine.metrics: is for engines that already run (`endpoints`)"),
        ("replicas: 2, port: 9000", "replicas: 2, kv_capacity_tokens: 9, port: 9000",
         "pools.a.engine.kv_capacity_tokens: is for engines that already run (`endpoints`)"),
        ("port: 9002, ", "port: 9002, metrics: sglang, kv_capacity_tokens: 9, ", None),
        ("replicas: 2, port: 9000", "replicas: 2, kv_events: true, port: 9000", None),
        ("replicas: 2, port: 9000", "kind: simulated, kv_events: true, replicas: 2, port: 9000",
         "pools.a.engine.kv_events: only vLLM tells of its prefix cache"),
        ("replicas: 2, port: 9000", "kv_events: true, endpoints: [http://10.0.0.4/v1]",
         "pools.a.engine.kv_events: `true` is for `replicas`; of `endpoints` name the addresses"),
        ("replicas: 2, port: 9002", "replicas: 2, kv_events: [tcp://10.0.0.5:5557], port: 9002",
         None),
        ("replicas: 2, port: 9000", "replicas: 2, kv_events: [tcp://10.0.0.5:5557], port: 9000",
         "pools.a.engine.kv_events: 1 addresses of 0 `endpoints`"),
        ("replicas: 2, port: 9002", "replicas: 2, kv_events: ['10.0.0.5:5557'], port: 9002",
         "pools.b.engine.kv_events[0]: is not an address as tcp://10.0.0.5:5557"),
        ("server: {port: 8080", f"state_dir: /{110 * 'x'}\nserver: {{port: 8080",
         None),  # no socket is made there
        ("[tools]", "[tools, tool]", "pools.a.engine.features[1]: no feature named `tool`; did"),
        ("api_key_env: OPENAI_API_KEY", "features: [image], api_key_env: X",
         "providers.openai.features[0]: no feature named `image`; did you mean `images`?"),
        ("api_key_env: OPENAI_API_KEY",
         "kind: litellm, litellm_prefix: gemini, kinds: [chat, rerank], api_key_env: X",
         "providers.openai.kinds[1]: LiteLLM's adapter does not serve `rerank` here: add"),
        ("api_key_env: OPENAI_API_KEY", "kinds: [chat, rerank, transcription], api_key_env: X",
         None),
        ("openai: {", '"open/ai": {', "providers.open/ai: a provider's name has no `/`"),
        ("simulated: true, start", "start", "providers.sim.start: only a stand-in can be started"),
        ("start: true", 'start: true, base_url: "http://x/v1"', "providers.sim.base_url: `start`"),
        ("api_key_env: OPENAI_API_KEY", "api_key_env: X, api_key_file: y",
         "providers.openai.api_key_file: set either"),
        ("api_key_env: OPENAI_API_KEY", "", "warning: providers.openai: no key is named"),
        ("openai: {", "anthropic: {", "providers.anthropic.base_url: is needed"),
        ("openai: {", "anthropic: {", "for one that LiteLLM speaks set `kind: litellm`"),
        ("openai: {", "opnai: {", "whose address is known; did you mean `openai`"),
        ("http://10.0.0.5:8080/v1", "10.0.0.5:8080", "pools.b.engine.endpoints[0]: not an http(s)"),
        ("http://10.0.0.6:8000/v1", "nonsense", "providers.own.base_url: not an http(s)"),
        ("http://10.0.0.6:8000/v1", "http://me:secret@x/v1", "must not have credentials"),
        ("http://10.0.0.6:8000/v1", "http://x:999999/v1", "providers.own.base_url: "),
        ("http://10.0.0.6:8000/v1", "http://169.254.169.254/v1",
         "providers.own.base_url: `http://169.254.169.254/v1` is where machines keep their"),
        ("http://10.0.0.5:8080/v1", "http://[fe80::1]/v1", "endpoints[0]: `http://[fe80::1]"),
        ('own: {base_url: "http://10.0.0.6:8000/v1"',
         'own: {base_url: "http://169.254.9.9/v1", networks: [169.254.9.0/24]', None),
        ("own: {", "own: {networks: [10.0.0.1/8], ",
         "own.networks[0]: 10.0.0.1/8 has host bits set"),
        ('"http://10.0.0.5:8080/v1"', '"http://x/v1", "http://x/v1/"',
         "pools.b.engine.endpoints[1]: `http://x/v1/` is stated twice"),
        ("10.0.0.5", "localhost", "endpoints[0]: `http://localhost:8080/v1` is this gateway"),
        ("10.0.0.6:8000", "127.0.0.1:8080", "providers.own.base_url: `http://127.0.0.1:8080/v1`"),
        ("port: 8501", "port: 8080", "f: dashboard.port: 8080 is also server.port's; choose"),
        ("port: 9002", "port: 9001", "f: pools.b.engine.port: 9001 is also pools.a.engine.port's"),
        ("port: 9002", "port: 8999", "f: pools.b.engine.port: 9000 is also pools.a.engine.port's"),
        ("port: 9002", "port: 8079", "f: pools.b.engine.port: 8080 is also server.port's"),
        ("port: 9002", "port: 8501", "f: pools.b.engine.port: 8501 is also dashboard.port's"),
        ("port: 9002", "port: 65535", "2 replicas from 65535 on end above 65535"),
        ("port: 9000, ", "port: 8100, ", None),
        ("server: {port: 8080", "server: {host: 0.0.0.0, port: 9000",
         "f: pools.a.engine.port: 9000 is also server.port's; choose"),
        ("server: {port: 8080", "server: {host: 10.1.1.1, port: 9000", None),
        ("dashboard: {enabled: true, port: 8501", "dashboard: {port: 9000", None),
        ("dashboard: {enabled: true, port: 8501", "dashboard: {enabled: true, host: 0.0.0.0",
         ("dashboard.host: can be reached from other machines: name the people who "
"may sign in by `dashboard.access_file`")),
        ("dashboard: {enabled: true, port: 8501",
         "dashboard: {enabled: true, host: 0.0.0.0, access_file: access.toml", None),
        ("server: {port: 8080", "server: {port: 0", None),
        ("db/books", 'db/books", url_env: "X', "ledger.url_env: set either `url` or `url_env`"),
        ("postgresql+psycopg://me:hunter2@db", "mysql://me:hunter2@db", "ledger.url: must be a"),
        ("postgresql+psycopg://me:hunter2@db", "db:hunter2:", "ledger.url: must be a URL like"),
        ("postgresql+psycopg://me:hunter2@db", "postgresql://me:a@b:hunter2@db",
         "ledger.url: must be a URL like"),
        ("since: 2026-11-01", "since: 2026-11-02",
         "pools.a.gpu.until: the contract ends before it starts: `since` 2026-11-02 is after"),
        ("stale_s: 10", "stale_s: 0.5", "telemetry.stale_s: must be more than scrape_s (0.5)"),
        ("connect_s: 5", "connect_s: 901", "warning: server.timeouts.connect_s: is never reached"),
        ("port: 8080,", "port: 8080, idempotency: {replay: {enabled: true}},",
         "server.idempotency.replay.key_env: name the environment variable"),
        ("queue_ms: 2000", "queue_ms: 900000", "warning: policies[0].queue_ms: is never reached"),
    ],
)  # fmt: skip
def test_a_fault_is_said_at_its_place(before, after, said):
    assert before in GOOD
    faults = found(GOOD.replace(before, after, 1))
    assert not any("hunter2" in fault or "secret" in fault for fault in faults)
    if said is None:
        assert faults == []
    else:
        assert len([fault for fault in faults if said in fault]) == 1, faults


def test_ports_that_nobody_chose_move_and_are_only_told():
    engine = "{engine: {model: m, replicas: 1%s}, gpu: {type: CPU}}"
    both = f"pools: {{a: {engine % ''}, b: {engine % ''}}}"
    assert [fault[:33] for fault in found(both)] == ["f: warning: pools.b.engine.port: "]
    assert found(f"pools: {{a: {engine % ''}, b: {engine % ', port: 8101'}}}") == []
    chosen = f"pools: {{a: {engine % ', port: 8100'}, b: {engine % ', port: 8100'}}}"
    assert found(chosen)[0].startswith("f: pools.b.engine.port: 8100 is also")


def test_a_sockets_path_that_linux_refuses_is_a_fault():
    long = GOOD.replace("replicas: 2, port: 9000", "replicas: 2, kv_events: true, port: 9000")
    faults = found(f"state_dir: /{110 * 'x'}\n{long}")
    assert len(faults) == 1
    assert "longer than 107 bytes" in faults[0]
