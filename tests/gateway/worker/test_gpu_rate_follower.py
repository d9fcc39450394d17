"""A rate that is entered is charged by a running gateway, and budgets know it."""

from types import SimpleNamespace

from sqlalchemy.exc import OperationalError

from gateway.worker.gpu_rate_follower import GpuRateFollower

FOR = "/v1/organization"


def test_an_entered_rate_is_charged_without_a_restart(run_stack, patiently) -> None:
    def adjust(document: dict, _ports: dict) -> None:
        for pool in document["pools"].values():
            pool["gpu"] = {"type": "H200"}

    with run_stack(adjust=adjust) as stack:
        finance = stack.key("rates", scopes=("contracts:apply",)).token
        (row,) = stack.settled(stack.chat("own", max_tokens=4))
        assert row["cost_pusd"] is None, "the control: a rate that nobody entered is not $0"
        given = {"pool": "main", "usd_per_hour": "3.50", "source": "contract 2026-17"}
        assert stack.post(FOR + "/rates", given, finance).status_code == 200

        def charged() -> bool:
            (row,) = stack.settled(stack.chat("own", max_tokens=4))
            return bool(row["cost_pusd"])

        patiently(charged)


async def test_what_cannot_be_read_leaves_what_is_known() -> None:
    told, used = [], []
    fleet = SimpleNamespace(rerate=lambda rates: told.append(rates) or rates != {"main": 7})
    in_force = SimpleNamespace(settings="s", version="v", use=lambda *given: used.append(given))
    answers = [OperationalError("x", None, Exception()), {"main": 7}, {"main": 9}]

    def read() -> dict:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    rerating = GpuRateFollower(read, fleet, in_force)
    assert (await rerating.follow(3), rerating.known) == (False, 0)
    assert (await rerating.follow(3), rerating.known) == (False, 3)
    assert used == []
    assert (await rerating.follow(4), rerating.known, used) == (True, 4, [("s", "v")])
    assert told == [{"main": 7}, {"main": 9}]
