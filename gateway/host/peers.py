"""Load exchange process: `python -m gateway.host.peers --config FILE --runtime FILE`.

Twenty times a second the process sends the other hosts this host's requests in flight by engine,
and writes the others' load into the peers' row, which every decision counts. It runs only if
`peers.hosts` names a host. If it ends or falls silent, the parent clears the row: decisions then
use the next scrapes, as without an exchange.
"""

import asyncio
import os
import secrets
import signal
from collections.abc import Sequence

from backends.secret import Secret
from gateway.clock import Clock
from gateway.config.credentials import peers_secret
from gateway.config.schema_peers import PeersSection
from gateway.fleet.peers.frames import ID_BYTES
from gateway.fleet.peers.keys import engine_key, network_namespace_id
from gateway.fleet.peers.listener import PeerListener
from gateway.fleet.peers.peer_load import NOTHING, PeerEngineLoad, share_of, sum_loads
from gateway.fleet.peers.row import PeerLoadRow
from gateway.fleet.peers.sender import PeerSender, split
from gateway.fleet.shared_load import SharedLoadTable
from gateway.process import start_process
from gateway.runtime import EngineReplica, Runtime
from gateway.table_layout import LoadCell

TICK_S = 0.05


class PeerExchange:
    """Load exchange of one host."""

    def __init__(
        self,
        settings: PeersSection,
        seats: Sequence[EngineReplica],
        board: SharedLoadTable,
        secret: Secret,
        clock: Clock,
    ) -> None:
        assert settings.listen is not None, "checked with the configuration"
        own_id = secrets.token_bytes(ID_BYTES)
        self._board, self._row, self._clock = board, PeerLoadRow(board), clock
        self._address = split(settings.listen)
        self._hearing = PeerListener(own_id, secret, clock)
        self._telling = PeerSender(own_id, secret, settings.hosts)
        place = network_namespace_id()
        self._keys = [engine_key(seat.base_url, seat.served_name, place) for seat in seats]
        self._known: list[tuple[float, ...]] = []
        self._written: set[int] = set()

    async def run(self) -> None:
        """Exchange load until cancelled. Raises `OSError` if it cannot listen."""
        self._row.clear()
        await self._hearing.listen(*self._address)
        telling = asyncio.create_task(self._telling.run())
        try:
            while True:
                self.tick(self._clock.now_s())
                await asyncio.sleep(TICK_S)
        finally:
            self._row.clear()
            telling.cancel()
            await asyncio.gather(self._hearing.close(), telling, return_exceptions=True)

    def tick(self, now_s: float) -> None:
        """Send own load and write received load; the time stamp is written last."""
        loads = [self._board.own_loads(row) for row in range(len(self._keys))]
        known: list[tuple[float, ...]] = [
            (*share_of(each, 0.0)[:-1], each[LoadCell.QUEUE_MOVED_S]) for each in loads
        ]
        changed, self._known = known != self._known, known
        self._telling.send(self._own(loads, now_s), now_s, changed=changed)
        self._write()
        self._row.record_alive(now_s, len(self._hearing.hosts))

    def _own(self, loads: Sequence[Sequence[float]], now_s: float) -> dict[bytes, PeerEngineLoad]:
        """Return own load by engine, added up if two pools of this host share an engine."""
        shares: dict[bytes, PeerEngineLoad] = {}
        for key, each in zip(self._keys, loads, strict=True):
            share = share_of(each, now_s)
            if share != NOTHING:
                shares[key] = sum_loads([shares[key], share]) if key in shares else share
        return shares

    def _write(self) -> None:
        """Write every value above zero each time, because the parent may have cleared the row."""
        heard = [(host.shares, host.at_s) for host in self._hearing.hosts.values()]
        for row, key in enumerate(self._keys):
            found = [(shares[key], at_s) for shares, at_s in heard if key in shares]
            if found:
                latest_s = max(at_s for _, at_s in found)
                self._row.write(row, sum_loads(share for share, _ in found), latest_s)
                self._written.add(row)
            elif row in self._written:
                self._row.write(row, NOTHING, 0.0)
                self._written.discard(row)


async def _main(settings: PeersSection, runtime: Runtime, secret: Secret) -> None:
    board = SharedLoadTable(runtime.run_dir / "board", runtime.layout)
    exchange = PeerExchange(settings, runtime.engines, board, secret, Clock())
    task = asyncio.create_task(exchange.run())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return
    except OSError as error:
        raise SystemExit(f"peers.listen: {settings.listen}: {error.strerror}") from None


def main(arguments: list[str] | None = None) -> None:
    begun = start_process("gateway.host.peers", "peers", __doc__, arguments)
    peers = begun.settings.peers
    asyncio.run(_main(peers, begun.runtime, peers_secret(peers, os.environ)))


if __name__ == "__main__":
    main()
