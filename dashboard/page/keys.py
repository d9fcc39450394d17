"""Keys page: keys that a viewer made, with rights and usage; create, rotate, revoke.

Everything goes through the gateway's admin API as the viewer. The access file says who may make
which keys, and the gateway decides. A token is shown once, until it is dismissed.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import streamlit as st

from dashboard import admin_client, confirmation, formatting, theme
from dashboard.admin_client import AdminClient, AdminRefused, AdminUnavailable
from dashboard.data.reads import DashboardView
from dashboard.figures import money_columns
from ledger.money import usd_to_pusd

KEYS, TOKEN = "keys", "keys-token"
OVERLAPS = {"an hour": "1h", "a day": "24h", "a week": "7d", "not at all": "1s"}
IN_FORCE = ("active", "ending")
NOBODY = (
    "Nobody has signed in here, and a key is somebody's. Name people in an access file, with what "
    "keys they may make (docs/how-to/member-keys.md), or use `breakeven keys create` where the "
    "gateway runs."
)


def show(view: DashboardView) -> None:
    desk = admin_client.desk(view.who)
    if desk is None:
        words = f"No gateway is named, so there are no keys to see. {admin_client.HOW}"
        st.info(words, icon=":material/link_off:")
        return
    if view.viewer.name is None:
        st.info(NOBODY, icon=":material/key_off:")
        return
    try:
        leave, found = desk.get("/own"), desk.get("/own/keys")["data"]
    except AdminUnavailable as error:
        st.warning(f"The gateway does not answer. {error}", icon=":material/cloud_off:")
    except AdminRefused as refused:
        icon = ":material/lock:" if refused.status == 403 else ":material/error:"
        st.info(str(refused), icon=icon)
    else:
        confirmation.show_outcome(KEYS)
        _cards(leave, found)
        _bounds(leave)
        _table(found)
        left, right = st.columns(2)
        with left:
            _make(desk, leave)
        with right:
            _change(desk, found)


def _show_token(wanted: str) -> None:
    """Draw the new token where `wanted` was pressed, until the viewer dismisses it."""
    made, shown = st.session_state.get(TOKEN, ("", ""))
    if made != wanted:
        return
    with st.container(border=True):
        st.markdown("**Store this token now: it is not shown again**")
        st.code(shown, language=None, wrap_lines=True)
        if st.button("I have stored it", key="keys-stored", icon=":material/visibility_off:"):
            del st.session_state[TOKEN]
            st.rerun()


def _cards(leave: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> None:
    first, second, third = st.columns(3)
    keys, daily = leave["keys"], leave["keys_per_day"]
    with first:
        theme.card(
            "Keys in force",
            theme.big(f"{keys['in_force']} of {keys['limit']}", size="mid"),
            theme.small(f"{daily['made']} of {daily['limit']} made within a day"),
            about="own_keys",
        )
    with second:
        models = leave["models"]
        named = "every model" if models is None else ", ".join(models) or "no model"
        told = [f"models: **{named}**", f"team: **{leave['team']}**"]
        if leave["internal_only"]:
            told.append("requests never leave the network")
        tags = ", ".join(f"{name}={value}" for name, value in leave["tags"].items())
        told += [f"tags: **{tags}**"] if tags else []
        told += [] if leave["days"] is None else [f"for **{leave['days']} days** at most"]
        theme.card("What they may do", theme.small(*told), about="own_keys")
    with third:
        month, day = (_spent(found, span) for span in ("month", "day"))
        unpriced = sum(key["usage"]["month"]["unpriced_attempts"] for key in found)
        more = [f"**{formatting.plural(unpriced, 'request')}** without a price"] if unpriced else []
        theme.card(
            "Used this month",
            theme.big(formatting.money(month), size="mid"),
            theme.small(f"{formatting.money(day)} today (UTC)", *more),
            about="own_keys",
        )


def _spent(found: Sequence[Mapping[str, Any]], span: str) -> int:
    return sum(usd_to_pusd(Decimal(key["usage"][span]["cost_usd"])) for key in found)


def _bounds(leave: Mapping[str, Any]) -> None:
    lines = [
        {
            "budget": line["scope"],
            "window": line["period"],
            "limit": _shown(line["limit_usd"]),
            "left": _shown(line["left_usd"]),
            "at the limit": "hard stop" if line["hard"] else "alert only",
            "state": "nothing left" if line["exhausted"] else "open",
        }
        for line in leave["budgets"]
    ]
    if lines:
        st.subheader("Budgets that bind them", anchor=False)
        columns: dict[str, Any] = {}
        for name in ("limit", "left"):
            columns |= money_columns(lines, (name,))
        theme.table(lines, about="budget", column_config=columns)
    limits = [
        f"{line['scope']}: "
        + ", ".join(
            f"{number:,} {what} a minute"
            for what, number in (
                ("requests", line["requests_per_minute"]), ("tokens", line["tokens_per_minute"])
            )
            if number is not None
        )
        for line in leave["rate_limits"]
    ]  # fmt: skip
    if limits:
        st.caption("Limits: " + "; ".join(limits) + ".")


def _shown(usd: str | None) -> float | None:
    return None if usd is None else usd_to_pusd(Decimal(usd)) / 1e12


def _table(found: Sequence[Mapping[str, Any]]) -> None:
    st.subheader("Your keys", anchor="yours")
    if not found:
        st.caption("You made none so far.")
        return
    rows = [row(key) for key in reversed(found)]
    columns: dict[str, Any] = {}
    for name in ("today", "this month"):
        columns |= money_columns(rows, (name,))
    theme.table(rows, about="own_keys", column_config=columns)


def row(key: Mapping[str, Any]) -> dict[str, Any]:
    """Return one key as a row of the table."""
    used = key["usage"]
    return {
        "name": key["name"],
        "key": key["key_id"],
        "state": key["state"],
        "today": _shown(used["day"]["cost_usd"]),
        "this month": _shown(used["month"]["cost_usd"]),
        "requests": used["month"]["attempts"],
        "unpriced": used["month"]["unpriced_attempts"],
        "models": "every one" if key["models"] is None else ", ".join(key["models"]),
        "may": ", ".join(key["scopes"]),
        "made": key["created"],
        "ends": key["expires"] or "",
    }


def _make(desk: AdminClient, leave: Mapping[str, Any]) -> None:
    with st.container(border=True):
        st.markdown("**Make a key**")
        given = _form(leave)
        full = leave["keys"]["in_force"] >= leave["keys"]["limit"]
        ready = bool(given["name"]) and not full
        why = "All keys that you may have are in force: revoke one." if full else "It has no name."
        if st.button(
            "Make it", key="keys-make", icon=":material/key:", disabled=not ready,
            help=None if ready else why,
        ):  # fmt: skip
            confirmation.request_confirmation(KEYS, "make")
        _show_token("make")
        if confirmation.pending_change(KEYS) == "make" and ready:
            st.warning(
                f"Its requests are charged to you and to {formatting.quote(leave['team'])}. "
                "Its token is shown once.",
                icon=":material/warning:",
            )
            if confirmation.is_confirmed(KEYS, "Yes, make it"):
                made = confirmation.send_change(KEYS, desk, "/own/keys", **given)
                st.session_state[TOKEN] = ("make", made["token"])
                confirmation.report_done(KEYS, f"Key {made['key_id']} is made.")


def _form(leave: Mapping[str, Any]) -> dict[str, Any]:
    name = st.text_input("What it is for", max_chars=200, key="keys-name")
    models = st.multiselect(
        "Models; none chosen: all that you may use", leave["usable_models"], key="keys-models"
    )
    first, second = st.columns(2, vertical_alignment="bottom")
    days = first.number_input(
        "Days until it ends", value=None, min_value=1, max_value=leave["days"] or 36_500,
        step=1, key="keys-days", placeholder=_longest(leave),
    )  # fmt: skip
    inside = second.toggle(
        "Requests stay inside", value=leave["internal_only"], disabled=leave["internal_only"],
        key="keys-inside",
    )  # fmt: skip
    scopes = st.multiselect(
        "What it may do", leave["scopes"], default=[x for x in leave["scopes"] if x == "inference"],
        key="keys-scopes",
    )  # fmt: skip
    return {
        "name": name.strip(), "models": models or None, "scopes": scopes or None,
        "internal_only": inside, "days": None if days is None else int(days),
    }  # fmt: skip


def _longest(leave: Mapping[str, Any]) -> str:
    return "never" if leave["days"] is None else f"after {leave['days']}"


def _change(desk: AdminClient, found: Sequence[Mapping[str, Any]]) -> None:
    active = {key["key_id"]: key for key in found if key["state"] in IN_FORCE}
    if not active:
        return
    with st.container(border=True):
        st.markdown("**Rotate or revoke one**")
        chosen = st.selectbox(
            "Key", list(reversed(active)), key="keys-chosen",
            format_func=lambda key: f"{active[key]['name']} ({key})",
        )  # fmt: skip
        overlap = st.selectbox(
            "When rotated, the old one goes on for", OVERLAPS, key="keys-overlap"
        )
        left, right = st.columns(2)
        ending = active[chosen]["state"] != "active"
        if left.button(
            "Rotate", key="keys-rotate", icon=":material/autorenew:", disabled=ending,
            help="It was rotated already." if ending else None,
        ):  # fmt: skip
            confirmation.request_confirmation(KEYS, "rotate")
        if right.button("Revoke", key="keys-revoke", icon=":material/block:"):
            confirmation.request_confirmation(KEYS, "revoke")
        _show_token("rotate")
        _confirm_change(desk, active[chosen], OVERLAPS[overlap])


def _confirm_change(desk: AdminClient, key: Mapping[str, Any], overlap: str) -> None:
    wanted, named = confirmation.pending_change(KEYS), formatting.quote(key["name"])
    if wanted == "rotate":
        words = f"A new key takes the place of {named}; the old one ends after {overlap}."
        st.warning(words, icon=":material/warning:")
        if confirmation.is_confirmed(KEYS, "Yes, rotate it"):
            given = {"key_id": key["key_id"], "overlap": overlap}
            made = confirmation.send_change(KEYS, desk, "/own/keys/rotate", **given)
            st.session_state[TOKEN] = ("rotate", made["token"])
            said = f"Key {made['key_id']} replaces {made['replaces']}, which ends {made['until']}."
            confirmation.report_done(KEYS, said)
    elif wanted == "revoke":
        words = f"{named} is refused within a second, for good, with all keys that it made."
        st.warning(words, icon=":material/warning:")
        if confirmation.is_confirmed(KEYS, "Yes, revoke it"):
            confirmation.send_change(KEYS, desk, "/own/keys/revoke", key_id=key["key_id"])
            confirmation.report_done(KEYS, f"Key {key['key_id']} is revoked.")
