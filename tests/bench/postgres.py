"""A PostgreSQL server of a bench's own, durable as one is by default, on a free loopback port."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
from wire import free_ports

from deploy import parts


class Postgres:
    def __init__(self) -> None:
        binaries = parts.find_postgres()
        if binaries is None:
            raise SystemExit("no PostgreSQL here: make parts")
        self._binaries = binaries
        self._folder = Path(tempfile.mkdtemp(prefix="breakeven-bench-pg-"))
        self._as: dict[str, object] = {}
        if os.geteuid() == 0:  # it refuses to run as root
            names = {entry.pw_name for entry in pwd.getpwall()}
            user = "postgres" if "postgres" in names else "nobody"
            self._as = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
            shutil.chown(self._folder, user)
        (self.port,) = free_ports(1)
        self._data = self._folder / "data"
        initdb = [binaries / "initdb", "-D", self._data, "-A", "trust", "-U", "postgres"]
        subprocess.run(
            [*initdb, "-E", "UTF8", "--no-locale"],
            check=True, cwd=self._folder, stdout=subprocess.DEVNULL, **self._as,
        )  # fmt: skip
        self._begin()

    def create(self, name: str) -> str:
        """A new database's SQLAlchemy URL."""
        with psycopg.connect(self._admin, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/{name}"

    def outage(self, seconds: float) -> None:
        """Stopped as by a crash, and started again."""
        self._end(signal.SIGQUIT)
        time.sleep(seconds)
        self._begin()

    def stop(self) -> None:
        self._end(signal.SIGINT)
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _admin(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"

    def _begin(self) -> None:
        settings = {
            "listen_addresses": "127.0.0.1", "port": self.port,
            "unix_socket_directories": self._folder,
        }  # fmt: skip
        flags = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", self._data, *flags],
                cwd=self._folder, stdout=log, stderr=log, **self._as,
            )  # fmt: skip
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self._admin).close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return

    def _end(self, number: int) -> None:
        self._process.send_signal(number)
        self._process.wait(60)
