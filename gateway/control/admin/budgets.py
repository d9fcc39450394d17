"""Operations of `breakeven budgets`: limits entered by people over the configuration's."""

from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
from pydantic import ValidationError
from sqlalchemy import Connection

from gateway.auth import APPLY, BUDGETS, CONTRACTS, EVERY_TEAM
from gateway.config.crosschecks_budgets import check_scopes, check_windows
from gateway.config.declarations import budgets
from gateway.config.schema_limits import BudgetSection
from gateway.config.settings import Settings
from gateway.control.admin.books import bound_document
from gateway.control.admin.verb import (
    NoInput,
    Note,
    OperationContext,
    OperationRefused,
    list_document,
    verb,
)
from gateway.followers import FOLLOW_S
from ledger.budgets.binding import scope_of
from ledger.budgets.entered import BudgetSpec, EnteredBudget, budget_of, entered_budgets
from ledger.budgets.escrow import budget_key
from ledger.budgets.states import BudgetState, budget_states
from ledger.database import is_declared
from ledger.declared import carry_budgets
from ledger.manual_entries import BUDGET, ManualEntry, enter
from ledger.money import PPM, usd_exact

_Scope = Annotated[
    str, msgspec.Meta(min_length=1, max_length=600, description="`team:search`, `user:*`, `global`")
]
_Period = Literal["day", "month"]


class EnterBudgetInput(msgspec.Struct, forbid_unknown_fields=True):
    """A budget to enter; a missing member has the configuration's default."""

    scope: _Scope
    usd: Annotated[Decimal, msgspec.Meta(description="limit of one period")]
    period: _Period = "month"
    hard: Annotated[bool, msgspec.Meta(description="refuse before the limit is passed")] = True
    timezone: Annotated[str | None, msgspec.Meta(description="IANA zone of the window")] = None
    alert_at: Annotated[
        list[float] | None, msgspec.Meta(description="shares of the limit that are told")
    ] = None
    note: Note | None = None


class BudgetInput(msgspec.Struct, forbid_unknown_fields=True):
    scope: _Scope
    period: _Period = "month"
    note: Note | None = None


@verb(
    "GET /budgets/terms",
    BUDGETS + EVERY_TEAM,
    "budgets list",
    "Every budget: limit, used, held and left, as configured and as entered, and who entered it",
    NoInput,
)
def budgets_terms(place: OperationContext, _: NoInput) -> dict[str, Any]:
    file = _configured(place.settings)
    with place.ledger.connect() as connection:
        entered = entered_budgets(connection, place.now_us)
        standing = {name for name, entry in entered.items() if entry.says is not None}
        states = {state.account: state for state in budget_states(connection, place.now_us)}
    return list_document(
        [
            {
                "budget": name,
                "in_force": _state(states.get(name)),
                "configured": _terms(file.get(name)),
                "entered": _entry(entered.get(name)),
            }
            for name in sorted({*file, *states, *standing})
        ]
    )


@verb(
    "POST /budgets",
    CONTRACTS + APPLY,
    "budgets enter",
    f"Enter a budget or another limit of one, at once; gateways follow within {FOLLOW_S:g} s",
    EnterBudgetInput,
)
def budgets_enter(place: OperationContext, given: EnterBudgetInput) -> dict[str, Any]:
    section = _checked(place.settings, given)
    alerts = tuple(round(share * PPM) for share in section.alert_at)
    said = EnteredBudget(f"{given.usd:f}", section.hard, section.timezone, alerts)
    return _enter(place, given.scope, given.period, msgspec.to_builtins(said), given.note)


@verb(
    "POST /budgets/end",
    CONTRACTS + APPLY,
    "budgets end",
    "End a budget, also one of the configuration: nothing is refused for it any more",
    BudgetInput,
)
def budgets_end(place: OperationContext, given: BudgetInput) -> dict[str, Any]:
    name = budget_key(given.scope, given.period)
    with place.ledger.connect() as connection:
        known = {state.line.id for state in budget_states(connection, place.now_us)}
    if not is_declared(place.ledger):  # no gateway started yet: the file's budgets are added later
        known |= _configured(place.settings).keys()
    if name not in known:
        raise OperationRefused(
            f"there is no budget `{name}`; `breakeven budgets list` shows all", param="scope"
        )
    said = msgspec.to_builtins(EnteredBudget(None))
    return _enter(place, given.scope, given.period, said, given.note)


@verb(
    "POST /budgets/withdraw",
    CONTRACTS + APPLY,
    "budgets withdraw",
    "Take what was entered for a budget back: the configuration's counts again, or there is none",
    BudgetInput,
)
def budgets_withdraw(place: OperationContext, given: BudgetInput) -> dict[str, Any]:
    name = budget_key(given.scope, given.period)
    with place.ledger.connect() as connection:
        entry = entered_budgets(connection, place.now_us).get(name)
    if entry is None or entry.says is None:
        raise OperationRefused(
            f"no entry exists for the budget `{name}`; `breakeven budgets list` shows all",
            param="scope",
        )
    return _enter(place, given.scope, given.period, None, given.note)


def _enter(
    place: OperationContext, scope: str, period: str, says: dict[str, Any] | None, note: str | None
) -> dict[str, Any]:
    """Append the entry and apply it to the budget, in one transaction."""
    name, at_us = budget_key(scope, period), place.now_us
    given = ManualEntry(0, BUDGET + name, says, at_us, at_us, place.by, note)
    file = _configured(place.settings)
    with place.ledger.begin() as connection:
        made = enter(connection, given)
        carry_budgets(connection, at_us, {name: file.get(name)} if says is None else None)
        found = _in_force(connection, name, at_us)
    return {"budget": name, "entered": _entry(made), "in_force": found, "by": place.by}


def _in_force(connection: Connection, name: str, at_us: int) -> dict[str, Any] | None:
    found = budget_states(connection, at_us, [scope_of(name)])
    return _state(next((state for state in found if state.account == name), None))


def _checked(settings: Settings, given: EnterBudgetInput) -> BudgetSection:
    """Validate the input as a budget of the configuration file; errors name the member."""
    stated = {"scope": given.scope, "usd": given.usd, "period": given.period, "hard": given.hard,
              "timezone": given.timezone or settings.timezone}  # fmt: skip
    if given.alert_at is not None:
        stated["alert_at"] = given.alert_at
    try:
        section = BudgetSection.model_validate(stated)
    except ValidationError as error:
        first = error.errors()[0]
        member = str(first["loc"][0])
        raise OperationRefused(f"`{member}`: {first['msg']}", param=member) from error
    if section.scope != given.scope:  # a name as a person sees it, which no key has
        words = "`scope`: remove the blank at its start or end"
        raise OperationRefused(words, param="scope")
    alone = settings.model_copy(update={"budgets": (section,)})
    for check in (check_scopes, check_windows):
        for fault in check(alone):
            if fault.place[0] == "budgets":
                member = str(fault.place[-1])
                raise OperationRefused(f"`{member}`: {fault.message}", param=member)
    return section


def _configured(settings: Settings) -> dict[str, BudgetSpec]:
    return {spec.id: spec for spec in budgets(settings)}


def _terms(spec: BudgetSpec | None) -> dict[str, Any] | None:
    if spec is None:
        return None
    limit = usd_exact(spec.limit_pusd)
    return {"limit_usd": limit, "hard": spec.hard, "timezone": spec.timezone}


def _state(state: BudgetState | None) -> dict[str, Any] | None:
    """Return the current state of a budget; `None` if it ended or was never active."""
    if state is None:
        return None
    return {
        "limit_usd": usd_exact(state.line.limit_pusd),
        "spent_usd": usd_exact(state.spent_pusd),
        "held_usd": usd_exact(state.held_pusd),
        "claimed_usd": usd_exact(state.claimed_pusd),
        "left_usd": usd_exact(state.remaining_pusd),
        "hard": state.line.hard,
        "timezone": state.line.timezone,
        "default": state.default,
        "bound": bound_document(state),
    }


def _entry(manual_entry: ManualEntry | None) -> dict[str, Any] | None:
    """Return the entry; `None` if there is none or it was withdrawn."""
    if manual_entry is None or (said := budget_of(manual_entry)) is None:
        return None
    return {
        "number": manual_entry.number,
        "limit_usd": said.usd,
        "ended": said.usd is None,
        "hard": said.hard,
        "timezone": said.timezone,
        "alert_at": [ppm / PPM for ppm in said.alert_ppm],
        "entered_us": manual_entry.recorded_us,
        "by": manual_entry.actor,
        "note": manual_entry.note,
    }


VERBS = (budgets_terms, budgets_enter, budgets_end, budgets_withdraw)
