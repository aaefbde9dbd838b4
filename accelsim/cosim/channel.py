"""Messages between the parent and the simulation: JSON objects, one a line, on a stream socket.

What comes in: a connected socket. What goes out: dictionaries. This module must not know what the
messages mean; both ends of the co-simulation use it.
"""

from __future__ import annotations

import json
import socket
from typing import Any

Message = dict[str, Any]
CHUNK_BYTES = 1 << 16


class Channel:
    """One end of the connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._pending = b""

    def send(self, message: Message) -> None:
        """Sends one message. Raises OSError where the other end is gone."""
        self.connection.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, timeout_seconds: float | None = None) -> Message | None:
        """The next message, or None where the other end closed the connection.

        Raises TimeoutError after `timeout_seconds`.
        """
        self.connection.settimeout(timeout_seconds)
        while b"\n" not in self._pending:
            try:
                chunk = self.connection.recv(CHUNK_BYTES)
            except ConnectionResetError:
                return None
            if not chunk:
                return None
            self._pending += chunk
        line, self._pending = self._pending.split(b"\n", 1)
        message: Message = json.loads(line)
        return message

    def close(self) -> None:
        """Closes this end."""
        self.connection.close()
