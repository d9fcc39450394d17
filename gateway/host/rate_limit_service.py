"""Broker of per-minute limits shared with other hosts, in the telemetry process.

The host's share of each limit is in the file in which its workers count
(`gateway.request.limits.rate_table`), and in the database, where shares add up to the limit
(`ledger.budgets.rate_shares`). The broker renews the lease, requests more where workers run short,
and releases idle shares that another host wants. A share grows in the database first and shrinks in
the file first, so no minute exceeds its limit, whatever fails in between. Requests that arrive
during a round are answered in the next one.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from gateway.clock import Clock
from gateway.request.limits.rate_share_client import (
    ASKS,
    RATE_SOCKET,
    RateShareReply,
    RateShareRequest,
)
from gateway.request.limits.rate_table import (
    RATES_FILE,
    HostRateShare,
    Pair,
    RateLimitAccount,
    RateWindowTable,
)
from ledger.budgets.broker_protocol import frame, payloads
from ledger.budgets.rate_shares import (
    KEPT_S,
    LEASE_S,
    LeaseLapsed,
    Limits,
    RateShare,
    RateShareNeed,
    RateShares,
)
from ledger.unixsocket import short_path

RENEW_S = 1.0
LOOK_S = 0.1  # polling interval for wishes of other hosts
AGAIN_S = 0.03  # interval of retries for waiting requests
WAIT_S = 0.5  # for what other hosts may give; beyond it the request is refused
DRY_S = 1.0  # time during which an empty account is not waited for again

Left = tuple[float, float]  # requests, tokens; infinite where nothing limits them

log = logging.getLogger("breakeven.rates")


@dataclass(eq=False, slots=True)
class _ShareRequests:
    writer: asyncio.StreamWriter
    ask: RateShareRequest
    until_s: float


class RateLimitService:
    """Broker of shared limits; one per host. `run` runs until cancelled."""

    def __init__(self, engine: Engine, host: str, run_dir: Path, clock: Clock) -> None:
        self._rates = RateWindowTable(run_dir / RATES_FILE, clock.now_s)
        self._rates.set_clock(clock.now_s(), clock.wall_us() // 1_000_000, clock.boot())
        self._parts = RateShares(engine, self._rates.file_id(), host)
        self._socket, self._clock = run_dir / RATE_SOCKET, clock
        self._held: dict[str, RateShare] = {}
        self._hosts = 0
        self._lease_until_s = 0.0
        self._asking: list[_ShareRequests] = []
        self._doors: set[asyncio.StreamWriter] = set()
        self._came = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._dry: dict[str, float] = {}

    async def run(self) -> None:
        self._socket.unlink(missing_ok=True)
        with short_path(self._socket) as path:
            server = await asyncio.start_unix_server(self._serve, path)
        self._socket.chmod(0o600)
        try:
            async with server, asyncio.TaskGroup() as tasks:
                tasks.create_task(self._keep())
                tasks.create_task(self._run_sharing())
                tasks.create_task(self._answer())
        finally:
            self._rates.lease(0.0, 0.0)
            for door in self._doors:
                door.close()
            with suppress(DBAPIError):
                await asyncio.to_thread(self._parts.release_all)
            self._rates.close()

    async def _keep(self) -> None:
        """Renew the lease, and take over the shares of hosts that are gone."""
        away = False
        while True:
            try:
                async with self._one_at_a_time:
                    await self._renew()
                await asyncio.to_thread(self._parts.take_over)
            except DBAPIError as error:
                if not away:
                    log.warning(
                        "rate limits are not shared: cannot reach the database error=%s", error.orig
                    )
                away = True
            else:
                away = False
            await asyncio.sleep(RENEW_S)

    async def _renew(self) -> None:
        sent_s = self._clock.now_s()
        hosts, lapsed = await asyncio.to_thread(self._parts.renew)
        if lapsed or sent_s >= self._lease_until_s:
            self._held = await asyncio.to_thread(self._parts.own_shares)
            self._rates.replace_parts(self._host_shares(self._held), self._second())
        if hosts != self._hosts:
            await self._keep_even_parts(hosts)
        self._lease_until_s = sent_s + LEASE_S
        self._rates.lease(sent_s + LEASE_S, sent_s + KEPT_S)

    async def _keep_even_parts(self, hosts: int) -> None:
        """Reduce what is kept without a lease to even shares when the number of hosts grows."""
        changed = {name: part for name, old in self._held.items()
                   if (part := _even_share(old, hosts)) != old}  # fmt: skip
        self._rates.set_parts(self._host_shares(changed), self._second())
        await asyncio.to_thread(self._parts.write_shares, changed)
        self._held |= changed
        self._hosts = hosts

    async def _run_sharing(self) -> None:
        while True:
            try:
                await self._share_once()
            except (DBAPIError, LeaseLapsed):
                self._lease_until_s = 0.0  # the shares are read again from the database
            await asyncio.sleep(LOOK_S)

    async def _share_once(self) -> None:
        if not self._held:
            return
        async with self._one_at_a_time:
            wanted = await asyncio.to_thread(self._parts.wanted_by_others)
            given = {}
            for name, pair in wanted.items():
                if (held := self._held.get(name)) is None:
                    continue
                before = HostRateShare(RateLimitAccount(name, held.limits), held.held, held.kept)
                after = self._rates.lower_part(before, pair, self._second())
                if after != before:
                    given[name] = self._held[name] = RateShare(held.limits, after.held, after.kept)
            if given:
                await asyncio.to_thread(self._parts.release_shares, given)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._doors.add(writer)
        try:
            async for payload in payloads(reader):
                until_s = self._clock.now_s() + WAIT_S
                self._asking.append(_ShareRequests(writer, ASKS.decode(payload), until_s))
                self._came.set()
        finally:
            self._doors.discard(writer)
            writer.close()

    async def _answer(self) -> None:
        """Answer in rounds: new requests, and those that still wait for other hosts."""
        waiting: list[_ShareRequests] = []
        while True:
            if waiting:
                await asyncio.sleep(AGAIN_S)
            else:
                await self._came.wait()
            self._came.clear()
            asking, self._asking = [*waiting, *self._asking], []
            try:
                async with self._one_at_a_time:
                    waiting = await self._round(asking)
            except (DBAPIError, LeaseLapsed):
                waiting = []
                for requests in asking:
                    self._send_reply(requests, None)

    async def _round(self, asking: list[_ShareRequests]) -> list[_ShareRequests]:
        """Answer what can be answered, and return the requests that continue to wait."""
        now_s = self._clock.now_s()
        if now_s >= self._lease_until_s:
            for requests in asking:
                if now_s >= requests.until_s:
                    self._send_reply(requests, None)
            return [requests for requests in asking if now_s < requests.until_s]
        left = await self._remaining_of_parts(asking, now_s)
        waiting: list[_ShareRequests] = []
        dry: dict[str, float] = {}
        for requests in asking:
            short = [
                name for name, *_ in requests.ask.accounts if not _fits(left[name], requests.ask)
            ]
            if not short:
                for name, *_ in requests.ask.accounts:
                    left[name] = (left[name][0] - 1, left[name][1] - requests.ask.tokens)
                self._send_reply(requests, True)
            elif self._is_dry(short, now_s):
                self._send_reply(requests, False)
            elif self._hosts > 1 and now_s < requests.until_s:
                waiting.append(requests)
            else:
                dry |= dict.fromkeys(short, now_s + DRY_S)
                self._send_reply(requests, False)
        still = {name: until_s for name, until_s in self._dry.items() if until_s > now_s}
        self._dry = still | dry
        return waiting

    async def _remaining_of_parts(
        self, asking: list[_ShareRequests], now_s: float
    ) -> dict[str, Left]:
        """Return what is left of this host's shares, after requesting missing ones."""
        needs = self._needs(asking)
        short = [
            need for need in needs if not self._has(need) and not self._is_dry([need.name], now_s)
        ]
        if short:
            hosts, grown = await asyncio.to_thread(self._parts.grow, short)
            self._held |= grown
            if hosts != self._hosts:
                await self._keep_even_parts(hosts)
        have = {
            need.name: held
            for need in needs
            if (held := self._held.get(need.name)) is not None and held.limits == need.limits
        }
        self._rates.set_parts(self._host_shares(have), self._second())
        names = [need.name for need in needs]
        totals = dict(zip(names, self._rates.totals(names, self._second()), strict=True))
        return {name: _remaining_of(have.get(name), totals[name]) for name in names}

    def _needs(self, asking: list[_ShareRequests]) -> list[RateShareNeed]:
        """Return the total need by account: what was admitted, plus all waiting requests."""
        limits: dict[str, Limits] = {}
        more: dict[str, Pair] = {}
        for item in asking:
            for name, requests, tokens in item.ask.accounts:
                limits[name] = (requests, tokens)
                before = more.get(name, (0, 0))
                more[name] = (before[0] + 1, before[1] + item.ask.tokens)
        totals = self._rates.totals(limits, self._second())
        return [
            RateShareNeed(name, limits[name], (total[0] + more[name][0], total[1] + more[name][1]))
            for name, total in zip(limits, totals, strict=True)
        ]

    def _has(self, need: RateShareNeed) -> bool:
        held = self._held.get(need.name)
        return held is not None and held.limits == need.limits and all(
            limit is None or mine >= target
            for limit, mine, target in zip(need.limits, held.held, need.target, strict=True)
        )  # fmt: skip

    def _is_dry(self, names: Sequence[str], now_s: float) -> bool:
        """Return whether no host had any left a moment ago, so that no request is sent again."""
        return any(self._dry.get(name, 0.0) > now_s for name in names)

    def _send_reply(self, requests: _ShareRequests, room: bool | None) -> None:
        if not requests.writer.is_closing():
            requests.writer.write(frame(RateShareReply(requests.ask.number, room)))

    def _host_shares(self, parts: Mapping[str, RateShare]) -> list[HostRateShare]:
        return [
            HostRateShare(RateLimitAccount(name, part.limits), part.held, part.kept)
            for name, part in parts.items()
        ]

    def _second(self) -> int:
        return self._rates.second(self._clock.now_s())


def _remaining_of(held: RateShare | None, total: Pair) -> Left:
    if held is None:
        return 0, 0
    requests, tokens = (
        inf if limit is None else mine - used
        for limit, mine, used in zip(held.limits, held.held, total, strict=True)
    )
    return requests, tokens


def _fits(left: Left, ask: RateShareRequest) -> bool:
    return left[0] >= 1 and left[1] >= ask.tokens


def _even_share(part: RateShare, hosts: int) -> RateShare:
    requests, tokens = (
        0 if limit is None else min(mine, limit // hosts)
        for limit, mine in zip(part.limits, part.held, strict=True)
    )
    return part._replace(kept=(requests, tokens))
