"""Messages between the measurer and its workers: a JSON object and raw bytes, both length-prefixed, on a socket."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

Message = dict[str, Any]

_HEADER = struct.Struct("<IQ")
_MOST_BYTES = 1 << 30
"""Of a message; artifacts are megabytes. A header that says more is no header: somebody else wrote to the socket."""


class GarbledError(ValueError):
    """Raised where what arrived is no message."""


def encode(message: Message, blob: bytes = b"") -> bytes:
    """Return the bytes of one message; `blob` travels uninterpreted behind the JSON object."""
    text = json.dumps(message).encode()
    return _HEADER.pack(len(text), len(blob)) + text + blob


class Decoder:
    """Reassembles messages from the pieces in which they arrive."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._buffer += data

    def pop(self) -> tuple[Message, bytes] | None:
        """Return the next whole message and its blob, or None when more bytes are needed; raises GarbledError."""
        if len(self._buffer) < _HEADER.size:
            return None
        text_bytes, blob_bytes = _HEADER.unpack_from(self._buffer)
        start, end = _HEADER.size + text_bytes, _HEADER.size + text_bytes + blob_bytes
        if end > _MOST_BYTES:
            raise GarbledError(f"a message of {end} bytes")
        if len(self._buffer) < end:
            return None
        try:
            message = json.loads(bytes(self._buffer[_HEADER.size : start]))
        except (ValueError, RecursionError) as error:
            raise GarbledError(str(error)) from error
        if not isinstance(message, dict):
            raise GarbledError("not a JSON object")
        blob = bytes(self._buffer[start:end])
        del self._buffer[:end]
        return message, blob


def receive(connection: socket.socket, decoder: Decoder) -> tuple[Message, bytes] | None:
    """Block until one message is there and return it; None when the other side has closed."""
    while (found := decoder.pop()) is None:
        data = connection.recv(1 << 20)
        if not data:
            return None
        decoder.feed(data)
    return found
