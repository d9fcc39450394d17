"""Text printed after a start: the key, two ways to send a request, and addresses."""

from collections.abc import Sequence

from gateway.config.settings import Settings
from gateway.config.starter import DAILY_BUDGET_USD, KnownProvider

BANNER = """
Gateway    {base}        (models: {models})
Dashboard  {dashboard}
Key        {token}

curl {base}/chat/completions \\
  -H "Authorization: Bearer {token}" \\
  -H "Content-Type: application/json" \\
  -d '{{"model": "{model}", "max_tokens": 40,
       "messages": [{{"role": "user", "content": "Hello"}}]}}'

from openai import OpenAI
client = OpenAI(base_url="{base}", api_key="{token}")
answer = client.chat.completions.create(
    model="{model}", messages=[{{"role": "user", "content": "Hello"}}], max_tokens=40)
print(answer.choices[0].message.content)
"""

BILLED_BESIDES = (
    "pool `{}` is not in this configuration, but its GPUs are still billed. If their contract has "
    "ended, put the pool back with `gpu.until` for one start"
)


def address_lines(settings: Settings, address: tuple[str, int]) -> list[str]:
    """Return lines with the addresses of a started host; `address` is the gateway's."""
    shown = _dashboard_base(settings)
    dashboard = f"on {shown}" if shown else "is off: set `dashboard.enabled: true` to start it"
    return [f"gateway on {_base(*address)}/v1", f"dashboard {dashboard}"]


def banner(settings: Settings, address: tuple[str, int], token: str, *, simulated: bool) -> str:
    """Return the banner; its commands work as printed."""
    text = BANNER.format(
        base=f"{_base(*address)}/v1",
        dashboard=_dashboard_base(settings) or "not enabled",
        token=token,
        model=next(iter(settings.models), "MODEL"),
        models=", ".join(settings.models),
    )
    labels = [
        f"provider `{name}`" for name, provider in settings.providers.items() if provider.simulated
    ]
    if simulated:
        labels.insert(0, "the engine")
    if labels:
        text += f"\nSIMULATED here, and labelled wherever it shows: {', '.join(labels)}.\n"
    return text + "Ctrl-C stops everything.\n"


def _dashboard_base(settings: Settings) -> str | None:
    shown = settings.dashboard
    return _base(shown.host, shown.port) if shown.enabled else None


def _base(host: str, port: int) -> str:
    """Return an address that a browser on this machine can open."""
    return f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"


def keys_line(found: Sequence[KnownProvider], *, used: bool) -> str:
    """Return a line on the provider keys that were found, and whether they are used."""
    if not found:
        return "No provider keys in the environment: no external API is used."
    names = ", ".join(provider.variable for provider in found)
    if used:
        return f"Provider keys in use, at most ${DAILY_BUDGET_USD} a day in all: {names}."
    return f"Provider keys found and NOT used: {names}. `make run KEYS=1` uses them."
