"""Operations on entered values other than prices: projects, scenarios, currency rates."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any

import msgspec

from gateway.auth import APPLY, CONTRACTS, EVERY_TEAM, INVOICES, PRICES, USAGE
from gateway.config.billing_accounts import sender_of_bills
from gateway.control.admin.verb import (
    NoInput,
    Note,
    OperationContext,
    OperationRefused,
    list_document,
    verb,
)
from ledger.currencies import ExchangeRate, current_quotes, unknown
from ledger.manual_entries import (
    CURRENCY,
    PROJECT,
    SCENARIO,
    ManualEntry,
    enter,
    entries,
    latest_us,
    standing_entries,
)

MOST_MEMBERS, LONGEST = 40, 200
LEAST_RATE, MOST_RATE = Decimal("1E-9"), Decimal(10**9)  # of a currency for a dollar
_NAME = re.compile(r"[^\W_](?:[\w .,()%+-]{0,58}[\w.)%])?")

_Project = Annotated[
    str, msgspec.Meta(min_length=1, max_length=LONGEST, description="as bills name it")
]
_Team = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST, description="whose it is")]
_Named = Annotated[str, msgspec.Meta(min_length=1, max_length=60, description="its name")]
_Text = Annotated[str, msgspec.Meta(max_length=LONGEST)]


class MapProjectInput(msgspec.Struct, forbid_unknown_fields=True):
    provider: Annotated[str, msgspec.Meta(description="of the configuration")]
    project: _Project
    team: Annotated[_Team | None, msgspec.Meta(description="without one: nobody's again")] = None
    note: Note | None = None


class SaveScenarioInput(msgspec.Struct, forbid_unknown_fields=True):
    name: _Named
    page: Annotated[str, msgspec.Meta(pattern="^[a-z]{1,40}$", description="of the dashboard")]
    turned: Annotated[
        dict[_Text, _Text], msgspec.Meta(description="what was turned, by its name in the address")
    ]
    note: Note | None = None


class DropScenarioInput(msgspec.Struct, forbid_unknown_fields=True):
    name: _Named
    note: Note | None = None


class QuoteCurrencyInput(msgspec.Struct, forbid_unknown_fields=True):
    currency: Annotated[str, msgspec.Meta(description="ISO 4217, as EUR")]
    per_usd: Annotated[Decimal, msgspec.Meta(description="how much of it one dollar is")]
    day: Annotated[date, msgspec.Meta(description="of which the rate is")]
    source: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST, description="who says")]
    note: Note | None = None


@verb("GET /projects", INVOICES, None, "Whose the projects on providers' bills are", NoInput)
def projects_list(place: OperationContext, _: NoInput) -> dict[str, Any]:
    return entries_document(place, PROJECT)


@verb(
    "POST /projects",
    INVOICES + APPLY,
    "invoices project",
    "Say whose a project is",
    MapProjectInput,
)
def projects_map(place: OperationContext, given: MapProjectInput) -> dict[str, Any]:
    if given.provider not in place.settings.providers:
        words = f"there is no provider `{given.provider}` in the configuration"
        raise OperationRefused(words, param="provider")
    account = sender_of_bills(place.settings, given.provider)
    if account != given.provider:
        words = f"`{given.provider}` is on the bills of `{account}`: name that provider"
        raise OperationRefused(words, param="provider")
    subject = f"{PROJECT}{given.provider}/{given.project}"
    says = None if given.team is None else {"team": given.team}
    return enter_entry(place, subject, says, given.note)


@verb("GET /scenarios", USAGE + EVERY_TEAM, None, "Scenarios that were saved by name", NoInput)
def scenarios_list(place: OperationContext, _: NoInput) -> dict[str, Any]:
    return entries_document(place, SCENARIO)


@verb("POST /scenarios", CONTRACTS + APPLY, None, "Save a scenario by its name", SaveScenarioInput)
def scenarios_save(place: OperationContext, given: SaveScenarioInput) -> dict[str, Any]:
    if not _NAME.fullmatch(given.name):
        words = "a scenario's name begins with a letter or digit and is letters, digits, .,()%+-"
        raise OperationRefused(words, param="name")
    if len(given.turned) > MOST_MEMBERS:
        raise OperationRefused(f"a scenario has at most {MOST_MEMBERS} members", param="turned")
    says = {"page": given.page, "turned": given.turned}
    return enter_entry(place, SCENARIO + given.name, says, given.note)


@verb(
    "POST /scenarios/drop",
    CONTRACTS + APPLY,
    None,
    "Take a scenario off the list",
    DropScenarioInput,
)
def scenarios_drop(place: OperationContext, given: DropScenarioInput) -> dict[str, Any]:
    if given.name not in {entry.name for entry in current_entries(place, SCENARIO)}:
        raise OperationRefused(
            f"there is no scenario named `{given.name}`; `GET "
            "/v1/organization/scenarios` lists all",
            param="name",
        )
    return enter_entry(place, SCENARIO + given.name, None, given.note)


@verb(
    "GET /currencies",
    PRICES,
    None,
    "What a dollar is in other currencies, of which day",
    NoInput,
)
def currencies_list(place: OperationContext, _: NoInput) -> dict[str, Any]:
    return list_document([entry_document(entry) for entry in _current_quotes(place).values()])


@verb(
    "POST /currencies",
    PRICES + APPLY,
    "rates currency",
    "Enter what a dollar is in another currency",
    QuoteCurrencyInput,
)
def currencies_quote(place: OperationContext, given: QuoteCurrencyInput) -> dict[str, Any]:
    fault = unknown(given.currency)
    if fault is not None and given.currency not in _current_quotes(place):
        raise OperationRefused(f"`currency`: {fault}", param="currency")
    if not given.per_usd.is_finite() or not LEAST_RATE <= given.per_usd <= MOST_RATE:
        words = f"`per_usd` is from {LEAST_RATE:f} to {MOST_RATE:,}"
        raise OperationRefused(words, param="per_usd")
    if given.day > datetime.fromtimestamp(place.now_us / 1e6, UTC).date():
        raise OperationRefused(
            f"{given.day} is in the future: enter the rate of a past day", param="day"
        )
    quoted = ExchangeRate(f"{given.per_usd.normalize():f}", str(given.day), given.source)
    says = msgspec.structs.asdict(quoted)
    said = enter_entry(place, CURRENCY + given.currency, says, given.note)
    return {**said, "in_force": _current_quotes(place)[given.currency].says}


def _current_quotes(place: OperationContext) -> dict[str, ManualEntry]:
    with place.ledger.connect() as connection:
        found = entries(connection, CURRENCY)
    return current_quotes(found, latest_us(found, place.now_us))


def current_entries(place: OperationContext, kind: str) -> list[ManualEntry]:
    """Return the current entries of a kind, by name."""
    with place.ledger.connect() as connection:
        found = standing_entries(connection, kind, place.now_us)
    return [entry for _, entry in sorted(found.items()) if entry.says is not None]


def entries_document(place: OperationContext, kind: str) -> dict[str, Any]:
    """Return the current entries of a kind as a JSON list."""
    return list_document([entry_document(entry) for entry in current_entries(place, kind)])


def enter_entry(
    place: OperationContext, subject: str, says: dict[str, Any] | None, note: str | None
) -> dict[str, Any]:
    """Append an entry, effective at once, under the caller's name."""
    given = ManualEntry(0, subject, says, place.now_us, place.now_us, place.by, note)
    with place.ledger.begin() as connection:
        return entry_document(enter(connection, given))


def entry_document(manual_entry: ManualEntry) -> dict[str, Any]:
    """Return the entry as a JSON value."""
    return {
        "number": manual_entry.number,
        "name": manual_entry.name,
        "says": manual_entry.says,
        "entered_us": manual_entry.recorded_us,
        "by": manual_entry.actor,
        "note": manual_entry.note,
    }


VERBS = (
    projects_list,
    projects_map,
    scenarios_list,
    scenarios_save,
    scenarios_drop,
    currencies_list,
    currencies_quote,
)
