"""Command `breakeven serve`: the gateway and the host's processes, until stopped."""

import asyncio
import os
from pathlib import Path

from gateway import logs
from gateway.cli.config import Config
from gateway.cli.output import fail, print_line
from gateway.cli.start_config import start_or_fail
from gateway.config.credentials import known_secrets
from gateway.errors import ConfigError
from gateway.host.serve import run
from ledger.database import DatabaseError


def serve(config: Config = Path("breakeven.yaml")) -> None:
    """Start the gateway and this host's processes. Ctrl-C stops them."""
    settings = start_or_fail(config)
    for_programs = settings.logs.format == "json"
    logs.start("serve", settings.logs, known_secrets(settings, os.environ), printed=for_programs)
    try:
        asyncio.run(run(settings, config, print_line))
    except ConfigError as error:
        fail("\n".join(error.faults))
    except DatabaseError as error:
        fail(str(error))
