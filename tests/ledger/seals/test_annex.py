"""What links leave out is proved beside them, whichever versions of hosts seal and verify.

A host of the first version is played by what it knew: its columns, by their literal names, and no
annex. Its `verify` is written out here and shares no code with the product's.
"""

from hashlib import sha256

import msgspec
import pytest
from sqlalchemy import select, text

from ledger.fleet.model_routes import ModelRoute, record_routes
from ledger.journals.records import AttemptLeg, CacheHit, ComparedCost
from ledger.orm import tables as orm
from ledger.seals import sealed, sealer
from ledger.seals.annex import AnnexText, SealAnnex, add_entries, annex_head
from ledger.verify.annexes import annexes_hold
from ledger.verify.registers import registers_hold
from ledger.writing.repository import LedgerRepository

FIRST = {
    "attempts": (
        "attempt_id attempt_no audio_input_tokens audio_ms audio_output_tokens backend basis"
        " bid_price_pusd_per_s bound_pusd cache_write_1h_tokens cache_write_tokens cached_tokens"
        " characters compared_pusd compared_with cost_pusd duration_us engine engine_us error"
        " finish_reason flag http_status image_output_tokens input_tokens journal key_id kind"
        " kv_headroom_ppm model opened_us org_id output_tokens pictures policy policy_version pool"
        " price_version prompt_tokens_estimate provider reason reasoning_tokens request_id"
        " searches seq settled_us simulated slo_met spill_reason status stream tags target"
        " team_id tier ttft_predicted_us ttft_us upstream_model user_id"
    ),
    "compared": "attempt_id comparator cost_pusd position price_version ratio_ppm",
    "refusals": (
        "http_status key_id model org_id policy reason refused_us request_id scope seq team_id"
    ),
}
LEGS = (
    AttemptLeg("0", "prefill", 3, 9, 2, None, "done"),
    AttemptLeg("1", "decode", 2, 9, 2, 1, "done"),
)
HIT = CacheHit(
    "h", 100, "k", None, "search", "acme", "chat", False, "chat", "plain", "openai/x", "api",
    "r0", 5, 10, 3, 70, tags=(("app", "x"),),
)  # fmt: skip


@pytest.fixture
def later(engine, opened, settled, refused, write):
    """Rows that a newer host wrote: content, legs, cached tokens, the room of a budget."""
    costs = (ComparedCost("a/b", 1, 7, cached_tokens=4),)
    refusal = msgspec.structs.replace(refused(9), content="card:mask", bound_pusd=9, room_pusd=5)
    write(
        engine, opened(1, content="card:mask"), settled(1, compared=costs), refusal,
        opened(2), settled(2, engine_us=5, legs=LEGS),
    )  # fmt: skip
    return engine


def leaf(table, names, rows, *rest):
    names = FIRST[table].split() if names is None else names
    said = [pair for pair in zip(names, rows, strict=True) if pair[1] is not None]
    return sha256(msgspec.msgpack.encode((table, said)) + b"".join(rest)).digest()


def first_version_findings(engine) -> list[int]:
    """Links that `verify` of a host of the first version finds edited; of books without marks."""
    wrong, since = [], (0, 0, 0)
    with engine.connect() as connection:
        for link in connection.execute(select(orm.SealRow.__table__).order_by("number")):
            leaves = []
            inside = {"since": since[0], "to": link.attempts_to}
            row = orm.AttemptRow
            columns = [getattr(row, name) for name in FIRST["attempts"].split()]
            query = select(*columns).where(row.seq > inside["since"], row.seq <= inside["to"])
            for values in connection.execute(query.order_by(row.seq)):
                cost = orm.ComparedCostRow
                names = [getattr(cost, name) for name in FIRST["compared"].split()]
                of = select(*names).where(cost.attempt_id == values[0]).order_by(cost.position)
                mine = [leaf("compared", None, item) for item in connection.execute(of)]
                leaves.append(leaf("attempts", None, values, *mine))
            leaves += [
                item.leaf for item in sealed.postings(connection, since[1], link.postings_to)
            ]
            refusal = orm.RefusalRow
            columns = [getattr(refusal, name) for name in FIRST["refusals"].split()]
            query = select(*columns).where(refusal.seq > since[2], refusal.seq <= link.refusals_to)
            for values in connection.execute(query.order_by(refusal.seq)):
                leaves.append(leaf("refusals", None, values))
            if sha256(b"".join(leaves)).digest() != bytes(link.digest):
                wrong.append(link.number)
            since = link.attempts_to, link.postings_to, link.refusals_to
    return wrong


def seal_as_first(engine, seal_all, monkeypatch) -> None:
    """A host of the first version seals: it knows no annex."""
    with monkeypatch.context() as patch:
        patch.setattr(sealer, "add_link", lambda *_, **__: None)
        seal_all(engine)


def seal_wide(engine, seal_all, monkeypatch) -> None:
    """A host seals content and legs among its columns, and knows no annex."""

    def widened(read):
        return lambda *given, **named: (
            row._replace(leaf=row.wide) for row in read(*given, **named)
        )

    with monkeypatch.context() as patch:
        for name in ("attempts", "refusals"):
            patch.setattr(sealed, name, widened(getattr(sealed, name)))
        seal_as_first(engine, seal_all, monkeypatch)


def follow(engine) -> None:
    while SealAnnex(engine).follow(at_us=9):
        pass


def findings(engine, seal_findings) -> list[tuple[str, str]]:
    with engine.connect() as connection:
        return [*seal_findings(engine), *annexes_hold(connection)]


EDITS = {
    "content": "UPDATE attempts SET content = 'none' WHERE attempt_id = 'r1.1'",
    "content that is new": "UPDATE attempts SET content = 'none' WHERE attempt_id = 'r2.1'",
    "a leg": "UPDATE attempt_legs SET engine = '7' WHERE position = 1",
    "a leg that is gone": "DELETE FROM attempt_legs WHERE position = 0",
    "cached tokens": "UPDATE compared SET cached_tokens = 9",
    "a refusal's content": "UPDATE refusals SET content = NULL",
    "a refusal's room": "UPDATE refusals SET room_pusd = 6",
}


def edited(engine, edit) -> None:
    with engine.begin() as connection:
        connection.execute(text(EDITS[edit]))


def test_the_columns_of_leaves_are_those_of_the_first_version() -> None:
    """A column that is added goes into the annex, by a kind of its own."""
    assert " ".join(sealed._ATTEMPT_NAMES) == FIRST["attempts"]
    assert " ".join(sealed._COMPARED_NAMES) == FIRST["compared"]
    assert " ".join(sealed._REFUSAL_NAMES) == FIRST["refusals"]


@pytest.mark.parametrize("edit", EDITS)
def test_what_came_later_is_proved_beside_the_link(later, edit, seal_all, seal_findings) -> None:
    seal_all(later)
    assert findings(later, seal_findings) == []
    edited(later, edit)
    assert findings(later, seal_findings)


@pytest.mark.parametrize("edit", EDITS)
def test_what_an_old_host_sealed_is_proved_once_the_follower_came(
    later, edit, seal_all, seal_findings, monkeypatch
) -> None:
    seal_as_first(later, seal_all, monkeypatch)
    assert findings(later, seal_findings) == []  # never red, with or without the annex
    follow(later)
    assert findings(later, seal_findings) == []
    edited(later, edit)
    assert findings(later, seal_findings)


def test_an_old_host_finds_nothing_wrong_in_what_a_new_one_sealed(later, seal_all) -> None:
    seal_all(later)
    follow(later)
    assert first_version_findings(later) == []


def test_the_control_an_old_host_is_red_where_later_columns_are_sealed(
    later, seal_all, monkeypatch
) -> None:
    seal_wide(later, seal_all, monkeypatch)
    assert first_version_findings(later) == [1]


@pytest.mark.parametrize("edit", [None, *EDITS])
def test_a_link_with_content_and_legs_in_its_leaves_is_proved_as_it_was_sealed(
    later, edit, seal_all, seal_findings, monkeypatch
) -> None:
    seal_wide(later, seal_all, monkeypatch)
    if edit is not None:
        edited(later, edit)
    unproved = edit in (None, "cached tokens", "a refusal's room")  # never were in a leaf
    assert bool(seal_findings(later)) is not unproved


def test_hosts_of_both_versions_take_turns(
    later, opened, settled, write, seal_all, seal_findings, monkeypatch
) -> None:
    for number in range(4, 12):
        write(later, opened(number, content="mail:mask"), settled(number))
        if number % 3:
            seal_all(later)
        else:
            seal_as_first(later, seal_all, monkeypatch)
        if number % 4 == 0:
            follow(later)
        assert findings(later, seal_findings) == []
    follow(later)
    with later.connect() as connection:
        subjects = connection.execute(
            text("SELECT subject FROM seal_annexes WHERE kind = 'link' ORDER BY number")
        ).scalars()
        assert list(subjects) == [str(number) for number in range(1, 9)]
    assert findings(later, seal_findings) == []
    assert first_version_findings(later) == []


def test_an_attempt_is_entered_with_the_link_that_has_its_last_word(
    later, opened, settled, write, seal_all, seal_findings
) -> None:
    write(later, opened(5, content="card:mask"))
    seal_all(later)
    LedgerRepository(later, host="h").settle_lost("j", at_us=6)
    seal_all(later)
    assert findings(later, seal_findings) == []
    write(later, settled(5), journal="k")
    seal_all(later)
    assert findings(later, seal_findings) == []
    with later.begin() as connection:
        connection.execute(text("UPDATE attempts SET content = 'no' WHERE attempt_id = 'r5.1'"))
    assert [subject for subject, _ in findings(later, seal_findings)] == ["seal 3"]


def test_a_kind_and_a_register_of_a_newer_version_are_chained_and_not_judged(
    engine, later, seal_all, seal_findings
) -> None:
    seal_all(later)
    with later.begin() as connection:
        add_entries(connection, [AnnexText("unheard-of", "7", 1, b"x")], at_us=3)
    assert findings(later, seal_findings) == []
    with later.begin() as connection:
        connection.execute(text("UPDATE seal_annexes SET subject = '8' WHERE kind = 'unheard-of'"))
    assert findings(later, seal_findings)


def test_a_route_is_proved_and_a_new_statement_is_entered(engine) -> None:
    record_routes(engine, [ModelRoute("chat", "internal_only", ())], at_us=1)
    follow(engine)
    record_routes(engine, [ModelRoute("chat", "any", ())], at_us=2)
    with engine.connect() as connection:
        assert list(annexes_hold(connection)) == []  # it waits for the follower
    follow(engine)
    with engine.begin() as connection:
        assert list(annexes_hold(connection)) == []
        connection.execute(text("UPDATE model_routes SET residency = 'internal_only'"))
        assert list(annexes_hold(connection))
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM model_routes"))
        assert list(annexes_hold(connection))


def test_idle_books_are_entered_once(later, write, seal_all) -> None:
    write(later, HIT)
    seal_all(later)
    assert SealAnnex(later).follow(at_us=9) == 1
    assert SealAnnex(later).follow(at_us=9) == 0
    with later.connect() as connection:
        assert annex_head(connection)[0] == 3  # the link, its refusals, the hit
        assert list(registers_hold(connection)) == []
