"""An API outside of the network, for tests of what must not reach it."""

import socket
import threading


class CountingApi:
    """An API that takes every connection, counts what comes, and says nothing."""

    def __init__(self) -> None:
        self.connections = self.received = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection:
                self.received += len(connection.recv(65536))

    def close(self) -> None:
        self._listener.close()
