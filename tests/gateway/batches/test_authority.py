"""A ticket opens only what it was signed for, while it is valid, under the secret of this start."""

import msgspec
import pytest

from gateway.batches.authority import LineTicket, TicketAuthority, load_authority, make_secret

TICKET = LineTicket("key", "batch_1", "batch_1-1-1", expires_us=100, spill=True)


def test_a_signed_ticket_is_read_until_its_time_is_over() -> None:
    authority = TicketAuthority(b"s" * 32)
    token = authority.sign(TICKET)
    assert authority.read(token, now_us=99) == TICKET
    assert authority.read(token, now_us=100) is None


@pytest.mark.parametrize(
    "token", ["", ".", "a.b", "gw_1_2", "é.é", "=.=", "x" * 5000, "e30=.e30=", "e30=."]
)
def test_anything_else_is_none(token: str) -> None:
    assert TicketAuthority(b"s" * 32).read(token, now_us=0) is None


def test_nobody_else_signs_or_changes_one() -> None:
    authority = TicketAuthority(b"s" * 32)
    token = authority.sign(TICKET)
    forged = TicketAuthority(b"t" * 32).sign(TICKET)
    assert authority.read(forged, now_us=0) is None
    content, _, mark = token.partition(".")
    other = authority.sign(msgspec.structs.replace(TICKET, key_id="rich")).partition(".")[0]
    assert authority.read(f"{other}.{mark}", now_us=0) is None
    assert authority.read(f"{content}.{mark[:-4]}AAA=", now_us=0) is None


def test_each_start_has_its_own_secret_that_only_its_user_reads(tmp_path) -> None:
    make_secret(tmp_path)
    token = load_authority(tmp_path).sign(TICKET)
    assert load_authority(tmp_path).read(token, now_us=0) == TICKET
    (kept,) = tmp_path.iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    make_secret(tmp_path)
    assert load_authority(tmp_path).read(token, now_us=0) is None
