"""The websocket, frame by frame, in one revision of Engine.IO. Standard library only.

    python3 wire_websocket.py 2|3|4
"""

import base64
import hashlib
import json
import os
import socket
import sys
from urllib.parse import urlencode, urlsplit

from harness import (
    BASE, REQUEST_DEADLINE_SECONDS, STREAMER, StepFailed, Suite, as_user, call, ready_token,
)  # fmt: skip
from polling import MESSAGES

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 section 1.3
TEXT, CLOSE = 1, 8


class Websocket:
    """A client's side of RFC 6455: masked frames out; unmasked, unfragmented text frames in."""

    def __init__(self, session_url, revision):
        parts = urlsplit(session_url)
        self.socket = socket.create_connection((parts.hostname, parts.port), REQUEST_DEADLINE_SECONDS)
        self.file = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16))
        query = urlencode({"EIO": revision, "transport": "websocket"})
        request = [
            f"GET /socket.io/?{parts.query}&{query} HTTP/1.1", f"Host: {parts.netloc}", "Connection: Upgrade",
            "Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key.decode()}",
            "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
        ]  # fmt: skip
        self.socket.sendall("\r\n".join([*request, "", ""]).encode())
        status = self.file.readline()
        assert status.startswith(b"HTTP/1.1 101 "), status
        lines = iter(self.file.readline, b"\r\n")
        headers = {name.lower(): value.strip() for name, value in (line.decode().split(":", 1) for line in lines)}
        accept = base64.b64encode(hashlib.sha1(key + GUID).digest()).decode()
        assert headers["sec-websocket-accept"] == accept, headers
        assert "sec-websocket-extensions" not in headers, "an extension that nobody here understands"

    def frame(self):
        """The opcode and the data of the next frame."""
        first, second = self.file.read(2)
        assert first & 0xF0 == 0x80, f"a fragment, or reserved bits: {first:#x}"
        assert second < 128, "servers do not mask"
        length = second
        if second >= 126:
            length = int.from_bytes(self.file.read(2 if second == 126 else 8))
        return first & 0x0F, self.file.read(length)

    def packet(self):
        """The next packet. It must be ASCII, because clients count and decode other characters differently."""
        opcode, data = self.frame()
        assert opcode == TEXT, (opcode, data)
        assert data.isascii(), f"not escaped to ASCII: {data!r}"
        return data.decode()

    def send(self, packet):
        mask, data = os.urandom(4), packet.encode()
        assert len(data) < 126
        masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))
        self.socket.sendall(bytes([0x80 | TEXT, 0x80 | len(data)]) + mask + masked)

    def event(self, wanted):
        """The payload of the next packet, which must be an event of this name."""
        packet = self.packet()
        assert packet.startswith("42"), packet
        name, payload = json.loads(packet[2:])
        assert name == wanted and isinstance(payload, str), packet
        return json.loads(payload)


def opening(suite, revision):
    """A connection, up to SYSTEM connected."""
    with suite.step("the handshake names the timing, and no upgrade"):
        url = call("GET", f"{BASE}/open/v1/sessions/auth", as_user(ready_token()))["url"]
        connection = Websocket(url, revision)
        packet = connection.packet()
        handshake = json.loads(packet[1:])
        assert packet[0] == "0" and handshake["upgrades"] == [], packet
        assert (handshake["pingInterval"], handshake["pingTimeout"]) == (25_000, 60_000), handshake
    if revision == "4":
        with suite.step("nothing comes before the client asks for its namespace"):
            connection.send("40")
            packet = connection.packet()
            assert packet.startswith("40{") and json.loads(packet[2:])["sid"], packet
    else:
        with suite.step("40 comes unasked, and a client's own is accepted"):
            assert connection.packet() == "40"
            connection.send("40")
    with suite.step("SYSTEM connected is next"):
        connected = connection.event("SYSTEM")
        assert connected["type"] == "connected", connected
    return connection, connected["data"]["sessionKey"]


def main(suite, revision):
    connection, session_key = opening(suite, revision)
    if revision != "4":
        with suite.step("a ping is answered, with its data if it has some"):
            connection.send("2")
            assert connection.packet() == "3"
            connection.send("2probe")
            assert connection.packet() == "3probe"
    with suite.step("subscribing is answered by SYSTEM subscribed"):
        query = urlencode({"sessionKey": session_key})
        call("POST", f"{BASE}/open/v1/sessions/events/subscribe/chat?{query}", as_user(ready_token()))
        subscribed = connection.event("SYSTEM")
        data = {"eventType": "CHAT", "channelId": STREAMER["channelId"]}
        assert subscribed == {"type": "subscribed", "data": data}, subscribed
    for message in MESSAGES:
        with suite.step(f"a message of {len(message)} code points arrives unchanged"):
            call("POST", f"{BASE}/open/v1/chats/send", as_user(ready_token()), {"message": message})
            assert connection.event("CHAT")["content"] == message
    with suite.step("after the goodbye the server closes, and says why"):
        connection.send("41")
        connection.send("1")
        opcode, data = connection.frame()
        assert (opcode, data) == (CLOSE, b"\x03\xe8client_goodbye"), (opcode, data)


if __name__ == "__main__":
    suite = Suite()
    try:
        main(suite, sys.argv[1])
    except StepFailed:
        pass
    sys.exit(suite.finish())
