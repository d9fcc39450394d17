"""Checks of the section `peers`: requirements of the exchange between hosts."""

from collections.abc import Iterator, Sequence

from gateway.config.faults import ConfigFault
from gateway.config.pool_seats import seat_count
from gateway.config.schema import Settings

MOST_ENGINES = 500  # below the maximum of one frame (`gateway.fleet.peers.frames`)


def check_peers(settings: Settings) -> Iterator[ConfigFault]:
    said = settings.peers
    if not said.hosts:
        for name in ("listen", "secret_env"):
            if getattr(said, name) is not None:
                yield ConfigFault(("peers", name), "has no effect without `peers.hosts`")
        return
    if said.listen is None:
        words = "is required to receive load from other hosts: 0.0.0.0:9444"
        yield ConfigFault(("peers", "listen"), words)
    elif wrong := _wrong_port(settings, said.listen):
        yield ConfigFault(("peers", "listen"), wrong)
    if said.secret_env is None:
        words = "is required: without it anybody could report false load"
        yield ConfigFault(("peers", "secret_env"), words)
    yield from _wrong_hosts(said.hosts)
    engines = sum(map(seat_count, settings.pools.values()))
    if engines > MOST_ENGINES:
        words = f"hosts exchange the load of {MOST_ENGINES} engines at most, not of {engines}"
        yield ConfigFault(("peers", "hosts"), words)


def _wrong_hosts(hosts: Sequence[str]) -> Iterator[ConfigFault]:
    for index, host in enumerate(hosts):
        if port_of(host) > 65535:
            yield ConfigFault(("peers", "hosts", index), f"`{host}`: no port is beyond 65535")
        if host in hosts[:index]:
            yield ConfigFault(("peers", "hosts", index), f"`{host}` is stated twice")


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def _wrong_port(settings: Settings, listen: str) -> str:
    port = port_of(listen)
    if port > 65535:
        return "no port is beyond 65535"
    taken = {"server.port": settings.server.port}
    if settings.dashboard.enabled:
        taken["dashboard.port"] = settings.dashboard.port
    for name, other in taken.items():
        if port == other:
            return f"port {port} is also `{name}`: name another"
    return ""
