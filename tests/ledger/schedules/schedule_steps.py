"""What may happen next, how often, and whole schedules of it from a seed."""

import random

from schedule_world import HARD, SCOPES, World


def _workers(world):
    return [worker for host in world.hosts for worker in host.living]


def _bound(world):
    return world.rng.choice((1, 7, 40, 90, 150, 300))


def op_ask(world):
    rng = world.rng
    if workers := _workers(world):
        world.ask(rng.choice(workers), rng.choice(SCOPES), _bound(world), dies=rng.random() < 0.03)


def op_ask_calmly(world):
    if workers := _workers(world):
        world.pump()
        worker = world.rng.choice(workers)
        if worker.alive and world.is_calm(worker.host):
            world.ask_calmly(worker, world.rng.choice(SCOPES), _bound(world))


def op_settle(world):
    rng = world.rng
    found = [
        attempt for attempt in world.attempts if attempt.state == "open" and attempt.worker.alive
    ]
    if found:
        choice = rng.choice(found)
        costs = (0, choice.bound // 3, choice.bound // 2, choice.bound, choice.bound, choice.bound)
        world.settle(choice, choice.bound + 25 if rng.random() < 0.04 else rng.choice(costs))


def op_settle_late(world):
    found = [
        attempt
        for attempt in world.attempts
        if attempt.state == "lost"
        and attempt.worker.host.desk
        and attempt.worker not in attempt.worker.host.workers
    ]
    if found and not world.away:
        choice = world.rng.choice(found)
        world.settle_late(choice, world.rng.choice((0, choice.bound // 2, choice.bound)))


def op_hang_up(world):
    found = [attempt for attempt in world.attempts if attempt.state == "asking"]
    if found:
        choice = world.rng.choice(found)
        if world.rng.random() < 0.7:
            for side in [down for _, down in choice.worker.host.links if down.flight]:
                side.deliver()
            world.loop.run(world.rng.randint(0, 6))
        choice.task.cancel()


def op_deliver(world):
    if sides := world.sides():
        world.rng.choice(sides).deliver()


def op_database(world):
    if world.jobs:
        world.database_answers(
            crash=world.rng.choice((None, None, None, None, None, "before", "after"))
        )


def op_pump(world):
    world.pump()


def op_moment(world):
    world.loop.pass_time(world.rng.choice((0.06, 0.06, 1.1, 5.1)))


def op_hours(world):
    if world.now_s < world.last_s:
        world.now_s += world.rng.choice((3600, 5 * 3600, 13 * 3600))


def op_apply(world):
    host = world.rng.choice(world.hosts)
    waiting = [worker for worker in host.workers if world.unapplied(worker)]
    if host.desk and waiting and not world.away:
        crash = world.rng.random() < 0.05
        world.apply(host, world.rng.choice(waiting), world.rng.choice((1, 2, 9)), crash=crash)


def op_replay(world):
    host = world.rng.choice(world.hosts)
    if host.desk and host.workers and not world.away:
        world.replay(host, world.rng.choice(host.workers))


def op_bury(world):
    host = world.rng.choice(world.hosts)
    dead = [worker for worker in host.workers if not worker.alive and not world.unapplied(worker)]
    if host.desk and dead and not world.away:
        crash = world.rng.choice((None, None, None, None, "before", "after"))
        world.bury(host, world.rng.choice(dead), crash=crash)


def op_news(world):
    host = world.rng.choice(world.hosts)
    if host.desk and not world.away:
        world.news(host)


def op_kill_worker(world):
    if workers := _workers(world):
        world.kill_worker(world.rng.choice(workers))


def op_start_worker(world):
    host = world.rng.choice(world.hosts)
    if len(host.living) < 2:
        world.start_worker(host)


def op_kill_desk(world):
    host = world.rng.choice(world.hosts)
    if host.desk:
        world.kill_desk(host)


def op_start_desk(world):
    for host in world.hosts:
        if host.desk is None and not world.away:
            world.start_desk(host)
            world.news(host)
            world.loop.pass_time(1.1)


def op_away(world):
    world.away = not world.away


def op_limit(world):
    budget_id = world.rng.choice(tuple(HARD.values()))
    world.books.limits[budget_id] = world.rng.choice((200, 500, 1500, 12_000))


OPS = {
    "ask": (10, op_ask),
    "ask_calmly": (12, op_ask_calmly),
    "settle": (12, op_settle),
    "settle_late": (2, op_settle_late),
    "hang_up": (4, op_hang_up),
    "deliver": (10, op_deliver),
    "database": (5, op_database),
    "pump": (5, op_pump),
    "moment": (2, op_moment),
    "hours": (2, op_hours),
    "apply": (6, op_apply),
    "replay": (1, op_replay),
    "bury": (6, op_bury),
    "news": (3, op_news),
    "kill_worker": (2, op_kill_worker),
    "start_worker": (3, op_start_worker),
    "kill_desk": (3, op_kill_desk),
    "start_desk": (6, op_start_desk),
    "away": (1, op_away),
    "limit": (1, op_limit),
}
STEPS = 20


def play(code, seed):
    """One schedule of `STEPS` steps, and its end; what fails says the seed and the steps."""
    rng = random.Random(seed)
    weights = [weight for weight, _ in OPS.values()]
    world = World(code, rng)
    try:
        for name in rng.choices(list(OPS), weights, k=STEPS):
            world.step(name, OPS[name][1])
        world.finish()
    except Exception as error:
        error.add_note(f"seed {seed}: {' '.join(world.trace)}")
        raise
    return world
