"""The times of an attempt's row, beside those of its grant and its release."""

from dataclasses import replace

from gateway.clock import Clock

MESSAGES = [{"role": "user", "content": "hello there"}]
HARD = [{"scope": "global", "usd": 100, "period": "day", "hard": True}]


class PausingClock:
    """The clock of a process that the machine holds up after each reading, by `pause_s`."""

    def __init__(self, real: Clock) -> None:
        self._real, self._paused_s, self.pause_s = real, 0.0, 0.0

    def now_s(self) -> float:
        paused_s = self._pause()
        return self._real.now_s() + paused_s

    def wall_us(self) -> int:
        paused_s = self._pause()
        return self._real.wall_us() + round(paused_s * 1e6)

    def _pause(self) -> float:
        before_s = self._paused_s
        self._paused_s += self.pause_s
        return before_s


def test_by_its_times_an_attempt_holds_nothing_before_its_grant_nor_after_its_release(
    run_stack, patiently, monkeypatch
) -> None:
    """Held up between its grant and its record: whoever replays holds goes by these times."""
    with run_stack(budgets=HARD) as stack:
        dispatcher = stack.app.hot._dispatcher
        clock, desk, metering = (
            PausingClock(dispatcher.clock), dispatcher.admission.desk, dispatcher.metering,
        )  # fmt: skip
        monkeypatch.setattr(stack.app.hot, "_dispatcher", replace(dispatcher, clock=clock))
        monkeypatch.setattr(metering, "_clock", clock)
        hold, open_, release, granted, released = desk.hold, metering.open, desk.release, [], []

        async def hold_at(*given):
            answer = await hold(*given)
            granted.append(clock.wall_us())
            clock.pause_s = 60.0
            return answer

        def open_at(*given):
            clock.pause_s = 0.0
            return open_(*given)

        def release_at(*given):
            released.append(clock.wall_us())
            return release(*given)

        monkeypatch.setattr(desk, "hold", hold_at)
        monkeypatch.setattr(metering, "open", open_at)
        monkeypatch.setattr(desk, "release", release_at)
        asked = {"model": "own", "messages": MESSAGES}
        assert stack.post("/v1/chat/completions", asked).status_code == 200
        (row,) = patiently(lambda: stack.rows("settled_us IS NOT NULL"))
        assert granted[0] <= row["opened_us"] <= row["settled_us"] <= released[-1]
