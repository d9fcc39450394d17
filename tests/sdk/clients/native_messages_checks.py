"""A real client program of the official `anthropic` SDK against who speaks Messages, told as JSON.

    python native_messages_checks.py URL KEY MODEL [URL KEY MODEL]... < request.json

Nothing of the product is imported. The test runs it directly at a server and through the gateway,
and compares.
"""

import json
import sys

import anthropic

SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}


def whole(client, asked: dict) -> dict:
    raw = client.messages.with_raw_response.create(**{**asked, "stream": False})
    return {"bytes": raw.http_response.text, "message": raw.parse().to_dict(mode="json")}


def streamed(client, asked: dict) -> list:
    return [event.to_dict(mode="json") for event in client.messages.create(**asked)]


def folded(client, asked: dict) -> dict:
    rest = {name: value for name, value in asked.items() if name != "stream"}
    with client.messages.stream(**rest) as stream:
        return stream.get_final_message().to_dict(mode="json")


def beta(client, asked: dict) -> dict:
    message = client.beta.messages.create(
        model=asked["model"], max_tokens=50, messages=[{"role": "user", "content": "hi"}],
        tools=[SEARCH], container={"skills": [{"type": "anthropic", "skill_id": "pptx"}]},
        mcp_servers=[{"type": "url", "url": "https://x.example", "name": "x"}],
        betas=["mcp-client-2025-11-20", "code-execution-2025-08-25"],
    )  # fmt: skip
    return message.to_dict(mode="json")


def counted(client, asked: dict) -> dict:
    rest = {name: asked[name] for name in ("model", "messages", "system", "tools", "thinking")}
    raw = client.messages.with_raw_response.count_tokens(**rest)
    return {"status": raw.http_response.status_code}


CHECKS = (whole, streamed, folded, beta, counted)


def told(url: str, key: str, model: str, given: dict) -> dict:
    client = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0)
    asked = {**given, "model": model}
    beta_only = {"context_management": asked.pop("context_management")}
    asked["extra_body"] = beta_only
    return {check.__name__: check(client, asked) for check in CHECKS}


def main() -> None:
    given, words = json.load(sys.stdin), sys.argv[1:]
    print(json.dumps([told(*words[at : at + 3], given) for at in range(0, len(words), 3)]))


if __name__ == "__main__":
    main()
