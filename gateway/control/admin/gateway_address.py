"""The address of another gateway and its credentials, from the environment."""

import os

GATEWAY, API_KEY = "BREAKEVEN_GATEWAY", "BREAKEVEN_API_KEY"
TOKEN, TOKEN_COMMAND = "BREAKEVEN_TOKEN", "BREAKEVEN_TOKEN_COMMAND"


def gateway_url() -> str | None:
    """The gateway elsewhere that `--gateway` or the environment names; None: this host's own."""
    return os.environ.get(GATEWAY) or None
