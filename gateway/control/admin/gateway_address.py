"""Address of a remote gateway and its credentials, from the environment."""

import os

GATEWAY, API_KEY = "BREAKEVEN_GATEWAY", "BREAKEVEN_API_KEY"
TOKEN, TOKEN_COMMAND = "BREAKEVEN_TOKEN", "BREAKEVEN_TOKEN_COMMAND"


def gateway_url() -> str | None:
    """Return the gateway that `--gateway` or the environment names; `None` for the local one."""
    return os.environ.get(GATEWAY) or None
