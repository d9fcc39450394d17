"""SIGTERM: readiness goes first, then the listener; whoever was let in is served to the end."""

import signal
import socket
import time

import httpx
import pytest

MESSAGES = [{"role": "user", "content": "hello there"}]
UNREADY_S = 0.3


def terminate(stack, number: int = signal.SIGTERM) -> None:
    server, _ = stack._servers[-1]

    async def signalled() -> None:
        server.handle_exit(number, None)

    stack.call(signalled())


def is_ready(stack) -> bool:
    return stack.get("/readyz").status_code == 200


def test_a_balancer_has_time_to_notice(run_stack) -> None:
    with run_stack(server={"timeouts": {"drain_s": 1, "unready_s": 60}}) as stack:
        assert is_ready(stack)
        terminate(stack)
        assert not is_ready(stack)
        assert stack.chat("api", max_tokens=3).status_code == 200, "still served"
        server, _ = stack._servers[-1]
        assert not server.should_exit


def test_after_that_time_the_listener_closes_and_streams_go_on(run_stack, patiently) -> None:
    with run_stack(server={"timeouts": {"drain_s": 5, "unready_s": UNREADY_S}}) as stack:
        stream = stack.raw({"model": "steady", "messages": MESSAGES, "stream": True,
                            "max_tokens": 60, "ignore_eos": True})  # fmt: skip
        began = time.monotonic()
        terminate(stack)
        server, _ = stack._servers[-1]
        patiently(lambda: server.should_exit)
        assert time.monotonic() - began >= UNREADY_S
        patiently(lambda: refuses(stack))
        read = b""
        while not read.endswith(b"0\r\n\r\n"):
            part = stream.recv(65536)
            assert part, read[-200:]
            read += part
        stream.close()
        assert b"[DONE]" in read
        (row,) = patiently(lambda: stack.rows("model = 'steady' AND settled_us IS NOT NULL"))
        assert row["status"] == "finished"


def refuses(stack) -> bool:
    try:
        socket.create_connection(("127.0.0.1", stack.port), timeout=5).close()
    except OSError:
        return True
    return False


@pytest.mark.parametrize("second", [None, signal.SIGTERM, signal.SIGINT])
def test_an_interrupt_after_it_waits_for_nobody(run_stack, patiently, second) -> None:
    """Without it, the control, all have their time, though systemd tells each process by itself."""
    with run_stack(server={"timeouts": {"drain_s": 60, "unready_s": 60}}) as stack:
        stream = stack.raw({"model": "steady", "messages": MESSAGES, "stream": True,
                            "max_tokens": 2000, "ignore_eos": True})  # fmt: skip
        assert stream.recv(65536).startswith(b"HTTP/1.1 200")
        terminate(stack)
        if second is not None:
            terminate(stack, second)
        server, _ = stack._servers[-1]
        if second != signal.SIGINT:
            assert not server.should_exit
            assert b'"error"' not in stream.recv(65536)
            stream.close()
            terminate(stack, signal.SIGINT)
            return
        patiently(lambda: refuses(stack))
        read = b""
        while part := stream.recv(65536):
            read += part
        stream.close()
        assert b'"code":"unavailable"' in read
        (row,) = patiently(lambda: stack.rows("model = 'steady' AND settled_us IS NOT NULL"))
        assert (row["status"], row["output_tokens"] > 0) == ("timeout", True)


def test_without_that_time_a_balancer_meets_a_closed_door(run_stack, patiently) -> None:
    """The control, and the default: who stands alone need not wait."""
    with run_stack(server={"timeouts": {"drain_s": 1}}) as stack:
        terminate(stack)
        assert stack.app.hot.draining
        patiently(lambda: refuses(stack))
        with pytest.raises(httpx.TransportError):
            is_ready(stack)
