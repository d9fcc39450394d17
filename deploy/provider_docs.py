"""The page `docs/reference/providers.md`: `python -m deploy.provider_docs`.

`make settings` runs it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from backends.provider_refusals import KINDS, NEEDS, REFUSED
from backends.provider_table import LISTED, SPEAKS_CHAT, TABLE
from backends.providers import ANTHROPIC, BASE_URLS, LITELLM, OPENAI, PROVIDER_KINDS, SHORT_NAMES

WRITTEN: Final = Path(__file__).resolve().parents[1] / "docs" / "reference" / "providers.md"
_HEAD: Final = f"""# Providers

<!-- written by `python -m deploy.provider_docs`, which `make settings` runs -->

A provider is named under `providers`; its name, or its `litellm_prefix`, is one of these. Names
with an address here need neither `kind` nor `base_url`, all others of LiteLLM's
({TABLE.litellm}) take `kind: litellm`. Who speaks OpenAI's chat is called by the gateway's own
client in both cases, with the address, renamed members and limits that
`backends/provider_table.json` has. `python -m deploy.provider_table` writes that file after a
change of LiteLLM; `make test-long` compares it.

With `kind: litellm` and without `api_key_env`, `api_key_file` or `api_key_exec` the key is found
where the table says. For Bedrock, SageMaker, Azure and Vertex the SDKs' own chains apply: a role, a
workload's identity, a token's file. Workers see the variables of the configured vendors and no
others. What a name serves beside chat is in `kinds`.

| name | called by | address | key, or what it needs |
|---|---|---|---|
"""


def text() -> str:
    """Return the text of the page."""
    names = sorted({*LISTED, *BASE_URLS} - {*SHORT_NAMES.values()})
    rows = "\n".join(_row(name) for name in names)
    refused = "\n".join(f"* `{name}` {REFUSED[name]}." for name in sorted(REFUSED))
    return f"{_HEAD}{rows}\n\n## Names of LiteLLM's that `breakeven check` refuses\n\n{refused}\n"


def _row(name: str) -> str:
    chat = name in SPEAKS_CHAT or name in BASE_URLS
    wire = "own client" if chat else f"`kind: {LITELLM}`"
    if name == ANTHROPIC:
        wire = f"`kind: {ANTHROPIC}` or {wire}"
    if name in KINDS:
        wire += f", `kinds: [{', '.join(sorted(KINDS[name]))}]`"
    return f"| `{name}` | {wire} | {_address(name, chat=chat)} | {', '.join(_needs(name))} |"


def _address(name: str, *, chat: bool) -> str:
    needs = NEEDS.get(name)
    if name in BASE_URLS:
        return BASE_URLS[name]
    if chat or (needs is not None and needs.address == ""):
        return "`base_url`"
    if needs is not None and needs.address is not None:
        return f"`base_url` or `{needs.address}`"
    return "LiteLLM's"


def _needs(name: str) -> Iterator[str]:
    usual = PROVIDER_KINDS[OPENAI].variables.usual.get(name)
    listed = LISTED.get(name)
    key = usual or (listed.keys[0] if listed is not None and listed.keys else None)
    if key is not None:
        yield f"`{key}`"
    for group in NEEDS[name].variables if name in NEEDS else ():
        yield " or ".join(f"`{variable}`" for variable in group)
    if name in NEEDS and NEEDS[name].package:
        yield f"the package of `{NEEDS[name].package}`"


def main() -> None:
    """Write the page."""
    WRITTEN.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
