"""The person at this machine's command line, as recorded in the ledger."""

import getpass
import os


def os_user() -> str:
    """Return the user's name, or `uid:NUMBER` if the system has none, as in containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # neither a variable nor the passwd file has a name
        return f"uid:{os.getuid()}"
