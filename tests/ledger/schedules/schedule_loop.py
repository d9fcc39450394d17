"""An event loop in virtual time and pipes for sockets: what happens next is the schedule's."""

import asyncio
import heapq
from collections import deque


class Timer:
    __slots__ = ("arguments", "call", "cancelled", "when")

    def __init__(self, when, call, arguments):
        self.when, self.call, self.arguments, self.cancelled = when, call, arguments, False

    def cancel(self):
        self.cancelled = True

    def __lt__(self, other):
        return self.when < other.when


class Loop(asyncio.AbstractEventLoop):
    """Runs what is ready; time passes, messages arrive and threads end when the schedule says."""

    def __init__(self, connect, thread):
        self.connect, self.thread = connect, thread
        self.now = 0.0
        self.ready = deque()
        self.timers = []
        self.faults = []

    def call_soon(self, call, *arguments, context=None):
        timer = Timer(self.now, call, arguments)
        self.ready.append(timer)
        return timer

    def call_at(self, when, call, *arguments, context=None):
        timer = Timer(when, call, arguments)
        heapq.heappush(self.timers, timer)
        return timer

    def call_later(self, delay, call, *arguments, context=None):
        return self.call_at(self.now + delay, call, *arguments)

    def time(self):
        return self.now

    def create_future(self):
        return asyncio.Future(loop=self)

    def create_task(self, work, *, name=None, context=None):
        return asyncio.Task(work, loop=self)

    def run_in_executor(self, executor, work, *arguments):
        return self.thread(work)

    def get_debug(self):
        return False

    def call_exception_handler(self, context):
        self.faults.append(context)

    def run(self, most=10**6):
        ready = self.ready
        if not ready:
            return
        asyncio._set_running_loop(self)
        try:
            while ready and most > 0:
                most -= 1
                timer = ready.popleft()
                if not timer.cancelled:
                    timer.call(*timer.arguments)
        finally:
            asyncio._set_running_loop(None)

    def pass_time(self, seconds):
        until = self.now + seconds
        while self.timers and self.timers[0].when <= until:
            timer = heapq.heappop(self.timers)
            if not timer.cancelled:
                self.now = max(self.now, timer.when)
                self.ready.append(timer)
                self.run()
        self.now = until


class Reader:
    """`wire.payloads` asks for a frame's length, then for the rest of it."""

    def __init__(self, loop):
        self.loop, self.parts, self.ended, self.waiter = loop, deque(), False, None

    async def readexactly(self, count):
        while not self.parts:
            if self.ended:
                raise asyncio.IncompleteReadError(b"", count)
            self.waiter = self.loop.create_future()
            await self.waiter
        return self.parts.popleft()

    def feed(self, frame):
        if frame is None:
            self.ended = True
        else:
            self.parts += (frame[:4], frame[4:])
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)


class Side:
    """One direction: what was written and has not arrived; `None` is the end."""

    def __init__(self, reader):
        self.reader, self.flight, self.closed = reader, deque(), False

    def write(self, frame):
        if not self.closed:
            self.flight.append(frame)

    def is_closing(self):
        return self.closed

    def close(self):
        if not self.closed:
            self.closed = True
            self.flight.append(None)

    def deliver(self):
        self.reader.feed(self.flight.popleft())
