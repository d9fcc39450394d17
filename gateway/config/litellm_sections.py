"""Conversion of a LiteLLM configuration's sections other than its models."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from gateway.config.litellm_notes import OFF, ImportLoss, ImportNote, is_off, lost, note_on
from gateway.config.litellm_stages import DEPTH, FALLBACKS

SECTIONS = ("router_settings", "litellm_settings", "general_settings")
_PERIODS = {"1d": "day", "24h": "day", "1mo": "month", "30d": "month"}
_SECTION_OF_TIMEOUTS = ("router_settings", "litellm_settings")  # the last one wins
_HEEDED = {
    ("router_settings", "timeout"), ("router_settings", "stream_timeout"),
    ("litellm_settings", "request_timeout"),
}  # fmt: skip
_USUAL_TOTAL_S = 900.0
_SLACK = "SLACK_WEBHOOK_URL"
_COLLECTORS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_ENDPOINT")
_USUAL_COLLECTOR = "http://127.0.0.1:4318"
_OTEL = frozenset({"otel", "opentelemetry"})
_MIB = 1024 * 1024
_LEAST_BODY = 1024
_GUARDS = ("guard", "presidio", "lakera", "aporia", "moderation", "detect_prompt", "banned",
           "blocked", "hide_secrets")  # fmt: skip
_BY_PRICE = ("simple-shuffle", "cost-based-routing")  # shares are weights; price decides here
ADDRESSES = ("_API_BASE", "_BASE_URL", "_ENDPOINT", "_PROXY")
_RATES = {"rpm_limit": "requests_per_minute", "tpm_limit": "tokens_per_minute"}

Document = dict[str, Any]


def usual_timeouts(sections: Mapping[str, Mapping[str, Any]]) -> Document:
    """Return the server's timeouts for heads and whole answers; streams have no limit there."""
    found: Document = {}
    for section in _SECTION_OF_TIMEOUTS:
        given = sections.get(section, {})
        named = "timeout" if section == "router_settings" else "request_timeout"
        whole = number_of(given.get(named))
        if whole:
            found |= {"head_s": float(whole), "whole_s": float(whole)}
    if head := number_of(sections.get("router_settings", {}).get("stream_timeout")):
        found["head_s"] = float(head)
    return found


class FileFacts(NamedTuple):
    """Properties of the file on which the meaning of a section depends.

    `has_choices`: a model has several deployments. `has_rates`: one has `rpm`. `is_overridden`:
    `litellm_settings` state a timeout, which has precedence.
    """

    has_choices: bool
    has_rates: bool
    is_overridden: bool
    providers: Mapping[str, Document]


class SectionReader:
    """Reader of `router_settings` and the like; settings without a counterpart become notes."""

    def __init__(
        self,
        document: Document,
        notes: list[ImportNote],
        environ: Mapping[str, str],
        provider: Callable[[str], str | None],
        file: FileFacts,
    ) -> None:
        """`provider` returns our name for LiteLLM's provider name, if the document has it."""
        self._file = file
        self._document, self._notes, self._environ = document, notes, environ
        self._provider = provider
        self._readers: dict[str, Callable[[str, Any, Mapping[str, Any]], bool]] = {
            "max_budget": self._budget,
            "provider_budget_config": self._provider_budgets,
            "default_internal_user_params": self._user_limits,
            "alerting": self._alerts,
            "max_request_size_mb": self._body_limit,
            "callbacks": self._callbacks,
            "routing_strategy": self._strategy,
            "enable_pre_call_checks": self._checks_limits,
        }

    def read(self, name: str, section: Mapping[str, Any]) -> None:
        for key, value in section.items():
            place = f"{name}.{key}"
            if key in (*FALLBACKS, DEPTH, "model_group_alias"):
                continue
            if key in ("request_timeout", "timeout", "stream_timeout") and number_of(value):
                self._note_timeout(name, key)
                continue
            if key == "budget_duration" and "max_budget" in section:
                continue
            if is_off(value):
                self._notes.append(ImportNote(place, OFF, warns=False))
                continue
            reader = self._readers.get(key)
            if reader is None or not reader(place, value, section):
                self._notes.append(note_on(place, key))

    def _note_timeout(self, section: str, key: str) -> None:
        """Note a timeout that LiteLLM ignores, and that has no effect here either."""
        words = "LiteLLM ignores it in this section"
        if section == "router_settings" and key == "timeout" and self._file.is_overridden:
            words = "`request_timeout` of `litellm_settings` overrides it, as in LiteLLM"
        elif (section, key) in _HEEDED:
            return
        self._notes.append(ImportNote(f"{section}.{key}", words, warns=False))

    def put_timeouts(self, limits: Document, longest_s: float) -> None:
        """Set timeouts; a request may take `longest_s`, the maximum over all models."""
        if longest_s >= _USUAL_TOTAL_S:
            limits = {**limits, "total_s": longest_s + 60.0}
        if limits:
            self._document["server"] = {
                **self._document.get("server", {}), "timeouts": limits,
            }  # fmt: skip

    def _budget(self, place: str, value: Any, section: Mapping[str, Any]) -> bool:
        return self._add_budget(place, "global", value, section.get("budget_duration"))

    def _add_budget(self, place: str, scope: str, usd: Any, duration: Any) -> bool:
        amount, period = number_of(usd), _PERIODS.get(str(duration))
        if not amount:
            return False
        if period is None:
            words = f"`{duration}` is not a calendar day or month: write it into `budgets`"
            self._notes.append(lost(place, words, ImportLoss.BUDGETS))
            return True
        made = {"scope": scope, "usd": str(usd), "period": period, "hard": True}
        self._document.setdefault("budgets", []).append(made)
        return True

    def _provider_budgets(self, place: str, value: Any, _: Mapping[str, Any]) -> bool:
        if not isinstance(value, Mapping):
            return False
        for name, given in value.items():
            ours, here = self._provider(str(name)), f"{place}.{name}"
            limit = given if isinstance(given, Mapping) else {}
            usd = limit.get("budget_limit", limit.get("max_budget"))
            duration = limit.get("time_period", limit.get("budget_duration"))
            if ours is None and (accounts := self._accounts_of(str(name))):
                words = "becomes several accounts in the new file, each with a budget: "
                words += ", ".join(f"`provider:{account}`" for account in accounts)
                self._notes.append(lost(here, words, ImportLoss.BUDGETS))
            elif ours is None or not self._add_budget(here, f"provider:{ours}", usd, duration):
                self._notes.append(note_on(here, "provider_budget_config"))
        return True

    def _accounts_of(self, name: str) -> list[str]:
        """Return our providers with the same LiteLLM name."""
        made = self._file.providers.items()
        return [ours for ours, given in made if given.get("litellm_prefix") == name]

    def _user_limits(self, place: str, value: Any, _: Mapping[str, Any]) -> bool:
        """Convert the limits of single users."""
        if not isinstance(value, Mapping):
            return False
        rates: Document = {}
        for key, given in value.items():
            here = f"{place}.{key}"
            if key == "max_budget":
                if not self._add_budget(here, "user:*", given, value.get("budget_duration")):
                    self._notes.append(note_on(here, key))
            elif key in _RATES and number_of(given):
                rates[_RATES[key]] = int(given)
            elif key != "budget_duration":
                self._notes.append(note_on(here, key))
        if rates:
            self._document.setdefault("limits", []).append({"scope": "user:*", **rates})
        return True

    def _alerts(self, place: str, value: Any, _: Mapping[str, Any]) -> bool:
        if not isinstance(value, list) or "slack" not in value:
            return False
        self._document["alerts"] = {"webhook_env": _SLACK, "form": "slack"}
        words = f"budget alerts go to the address in {_SLACK}; other alerts are rules of Prometheus"
        self._notes.append(ImportNote(place, words))
        return True

    def _body_limit(self, place: str, value: Any, _: Mapping[str, Any]) -> bool:
        size = number_of(value)
        if not size:
            return False
        if size * _MIB < _LEAST_BODY:
            words = f"the smallest limit is {_LEAST_BODY} bytes"
            self._notes.append(lost(place, words, ImportLoss.LIMITS))
            return True
        server = self._document.setdefault("server", {})
        server["body_limit_bytes"] = int(size * _MIB)
        return True

    def _strategy(self, place: str, value: Any, _: Mapping[str, Any]) -> bool:
        if str(value).startswith("usage-based"):
            words = (
                "`rpm` and `tpm` of deployments are limits in LiteLLM: write them into `limits` "
            )
            words += "with the scope `model:NAME`"
            self._notes.append(lost(place, words, ImportLoss.LIMITS))
        elif self._file.has_choices and value not in _BY_PRICE:
            return False
        else:
            words = "equal targets are chosen by price within their promise"
            self._notes.append(ImportNote(place, words, warns=False))
        return True

    def _checks_limits(self, place: str, _value: Any, _: Mapping[str, Any]) -> bool:
        if not self._file.has_rates:
            return False
        words = "with it `rpm` of deployments is a limit in LiteLLM: write it into `limits` "
        words += "with the scope `model:NAME`"
        self._notes.append(lost(place, words, ImportLoss.LIMITS))
        return True

    def _callbacks(self, place: str, value: Any, _: Mapping[str, Any]) -> bool:
        names = [str(name) for name in value] if isinstance(value, list) else [str(value)]
        others = [name for name in names if name not in _OTEL]
        if len(others) < len(names):
            stated = [self._environ.get(name) for name in _COLLECTORS]
            known = next((address for address in stated if address), None)
            self._document["opentelemetry"] = {"endpoint": known or _USUAL_COLLECTOR}
            if known is None:
                words = f"{_COLLECTORS[0]} names no collector: the default address is written"
                self._notes.append(ImportNote(place, words))
        checking = [name for name in others if any(word in name for word in _GUARDS)]
        for name in checking:
            self._notes.append(note_on(f"{place}.{name}", "guardrails"))
        own = [name for name in others if "." in name and name not in checking]
        for name in own:
            words = (
                "the gateway does not run your own code: run it in a proxy in front of the gateway"
            )
            self._notes.append(lost(f"{place}.{name}", words, ImportLoss.CHECKS))
        if len(others) > len(checking) + len(own):
            self._notes.append(note_on(place, "callbacks"))
        return True


def number_of(value: object) -> Decimal | None:
    """Return a price, amount or time as a number; YAML reads `1e-06` as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = Decimal(str(value))
    except ArithmeticError:
        return None
    return found if found.is_finite() and found >= 0 else None
