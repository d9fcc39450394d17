"""A gateway's admin API as pages ask it, without a gateway: `conftest.py` takes it from here."""

from dashboard import admin_client
from dashboard.viewer import Viewer

IN_FORCE = "policies:\n- name: calm\n"


class ScriptedDesk:
    """What pages need of a gateway, without one: it judges a text by a word, and remembers."""

    def __init__(self, viewer: Viewer) -> None:
        self.viewer = viewer
        self.sets: list[dict] = []
        self.asked: list[tuple[str, dict]] = []
        self.looks: list[dict] = []  # answers to a look at a what-if; the last one stays
        self.refuses: dict[str, admin_client.AdminRefused] = {}
        self.text = IN_FORCE

    def get(self, path: str, **query: object) -> dict:
        self._hear(path, query)
        if path == "/policies":
            newest = self.sets[0] if self.sets else _FIRST
            return {**newest, "policies": self.text, "fault": None, "source": "x"}
        if path == "/policies/history":
            return {"data": self.sets}
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def post(self, path: str, **given: object) -> dict:
        self._hear(path, given)
        text = str(given.get("policies", IN_FORCE))
        if path == "/policies/check":
            fault = {"path": "policies[0].slo.ttft", "line": 3, "message": "no such member",
                     "severity": "error"}  # fmt: skip
            faults = [fault] if "wrong" in text else []
            return {"valid": not faults, "faults": faults, "policies": ["calm: every request"],
                    "version": text[-4:]}  # fmt: skip
        changes = [] if text == self.text else [f"+{line}" for line in text.splitlines()]
        if path == "/policies/simulate":
            return {"job": "j" * 32, "limit_s": 600.0}
        if path == "/policies/diff" or given.get("look"):
            return {"set": len(self.sets), "changes": changes}
        self.text = text
        new = {"set": len(self.sets) + 1, "since": "2026-11-01 00:00:00 UTC", "version": text[-4:],
               "by": self.viewer.name, "note": given.get("note")}  # fmt: skip
        self.sets.insert(0, new)
        return {**new, "changes": changes}

    def delete(self, path: str, **query: object) -> dict:
        self._hear(f"DELETE {path}", query)
        return {}

    def _hear(self, path: str, given: dict) -> None:
        self.asked.append((path, given))
        if path in self.refuses:
            raise self.refuses[path]


_FIRST = {"set": 0, "since": None, "by": "the configuration file", "note": None, "version": "v0"}
