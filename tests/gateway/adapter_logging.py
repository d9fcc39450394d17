"""LiteLLM's tasks that log its calls outlive the loop of a gateway under test, unless they end."""

import asyncio

WORKER = "LoggingWorker._worker_loop"


async def end_adapter_logging() -> None:
    """End those of this loop; LiteLLM itself forgets them as soon as another loop calls it."""
    tasks = [task for task in asyncio.all_tasks() if task.get_coro().__qualname__ == WORKER]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
