"""What a gateway is told of the upstream that makes clients run tools (`loop_upstream.py`)."""

from typing import Any

KEY_VARIABLE = "LOOP_KEY"
MODELS = ("loop", "gpt-5.5", "gpt-5.6-sol", "gpt-4o-mini", "claude-sonnet-4-5")
FEATURES = ["tools", "json_schema", "images", "logprobs", "n", "reasoning", "media_urls"]


def config_of(port: int) -> dict[str, Any]:
    """A model for each name that a client thinks it knows, all served by the one upstream."""
    provider = {
        "base_url": f"http://127.0.0.1:{port}/v1", "api_key_env": KEY_VARIABLE,
        "networks": ["127.0.0.0/8"], "prices_as": "openai/gpt-4o-mini", "features": FEATURES,
        "kinds": ["chat", "embedding"],
    }  # fmt: skip
    return {
        "dashboard": {"enabled": False},
        "models": {
            "loop": {"targets": ["loops/loop"]},
            **{name: {"same_as": "loop"} for name in MODELS[1:]},
            "text-embedding-3-small": {"targets": ["loops/embed"]},
        },
        "providers": {"loops": provider},
        "policies": [{"name": "default", "otherwise": "best_effort"}],
    }
