"""Section `peers`: other gateway hosts with the same engines; off without `hosts`."""

from typing import Annotated

from pydantic import Field

from gateway.config.sections import HOST, ConfigSection, Variable

# `name:9444`, `10.0.0.7:9444`, `[fd00::7]:9444`.
Address = Annotated[
    str,
    Field(pattern=HOST, max_length=300),
]
MOST_HOSTS = 64


class PeersSection(ConfigSection):
    """Exchange of in-flight load between hosts, 20 times a second.

    See docs/explanation/scale.md.
    """

    listen: Address | None = Field(
        None, description="address where other hosts, and they alone, reach this one: 0.0.0.0:9444"
    )
    hosts: Annotated[tuple[Address, ...], Field(max_length=MOST_HOSTS)] = Field(
        (),
        description="hosts that send requests to the same engines: gateway-1.gateway:9444; a "
        "name of several addresses means all of them, and this host itself may be among them",
    )
    secret_env: Variable | None = Field(
        None, description="environment variable with the secret that all of them share"
    )
