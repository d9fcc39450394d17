"""The person at this machine's command line, as the books name them."""

import getpass
import os


def os_user() -> str:
    """The user's name; where the system has none for it, as in containers, its number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no variable says it and no line of the passwd file does
        return f"uid:{os.getuid()}"
