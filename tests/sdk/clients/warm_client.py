"""A process that imports an SDK once, and forks each client program that it is told to run.

    python -I warm_client.py MODULE...
        reads orders from standard input, a line of JSON each, and answers each with a line

Nothing of the product is imported. A program finds its own arguments, environment, folder and
streams, as if it had been started; what it imports of the SDK is there already.
"""

import importlib.util
import json
import os
import runpy
import ssl
import sys
import traceback

HTTP_CLIENTS = ("httpx", "httpx2")  # which of them an SDK has depends on its major version


def run(order: dict) -> int:
    """What a program's process does: it never returns to who forked it."""
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environ"])
    for number, name in enumerate(("input", "output", "errors")):
        descriptor = os.open(order[name], os.O_RDONLY if number == 0 else os.O_WRONLY)
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.argv = [order["program"], *order["words"]]
    try:
        runpy.run_path(order["program"], run_name="__main__")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001  (it is told, as by an interpreter)
        traceback.print_exc()
        return 1
    return 0


def share_authorities() -> None:
    """Certificates are read once for all clients, of which a program makes a dozen."""
    make, made = ssl.create_default_context, {}

    def find_or_make(*of, **how):
        key = of, tuple(sorted(how.items()))
        if key not in made:
            made[key] = make(*of, **how)
        return made[key]

    ssl.create_default_context = find_or_make
    for name in filter(importlib.util.find_spec, HTTP_CLIENTS):
        importlib.import_module(name).Client().close()


def main() -> None:
    share_authorities()
    for name in sys.argv[1:]:
        importlib.import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = run(json.loads(line))
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
