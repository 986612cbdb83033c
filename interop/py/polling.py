"""Long polling, byte by byte, in every framing. Standard library only, without a client library.

    python3 polling.py text|binary|separated [EIO]

`EIO` is 3 unless given; `separated` is the framing of revision 4.
"""

import json
import sys
from urllib.parse import urlencode, urlsplit

from harness import BASE, STREAMER, VIEWER, StepFailed, Suite, as_user, call, fetch, platform, ready_token, sign_in

MESSAGES = [
    "안녕하세요 👋🏽 가족 👨‍👩‍👧‍👦 한글",
    '"따옴표" \\ 역슬래시 \u2028 줄 <b>&amp;</b> e\u0301 𠮷 🇰🇷 끝',
    "👩‍🚀" * 33 + "끝",  # 100 code points, 133 UTF-16 units, 366 bytes
]
POLLS = 20  # maximum number of answers until an expected message arrives


class TextFraming:
    """`b64=1`: `length:packet`, the length in characters."""

    query = {"b64": "1"}
    content_type = "text/plain; charset=UTF-8"

    @staticmethod
    def decode(body):
        text, packets = body.decode(), []
        while text:
            length, text = text.split(":", 1)
            packets.append(text[: int(length)])
            assert len(packets[-1]) == int(length), f"a packet is shorter than its length says: {body!r}"
            text = text[int(length) :]
        return packets

    @staticmethod
    def encode(packets):
        return "".join(f"{len(packet)}:{packet}" for packet in packets).encode()


class BinaryFraming:
    """No `b64`: a zero byte, the length in bytes as decimal digits (one byte of value 0 to 9 each), 0xff, packet."""

    query = {}
    content_type = "application/octet-stream"

    @staticmethod
    def decode(body):
        packets = []
        while body:
            assert body[0] == 0, f"not a string packet: {body!r}"
            end = body.index(b"\xff")
            assert all(digit <= 9 for digit in body[1:end]), f"a length with a digit above 9: {body!r}"
            length = int("".join(str(digit) for digit in body[1:end]))
            packet, body = body[end + 1 : end + 1 + length], body[end + 1 + length :]
            assert len(packet) == length, f"a packet is shorter than its length says: {packet!r}"
            packets.append(packet.decode())
        return packets

    @staticmethod
    def encode(packets):
        frames = []
        for packet in packets:
            data = packet.encode()
            frames.append(b"\0" + bytes(int(digit) for digit in str(len(data))) + b"\xff" + data)
        return b"".join(frames)


class SeparatedFraming:
    """Revision 4: packets with a separator between them. `b64` has no meaning here, but clients send it."""

    query = {"b64": "1"}
    content_type = TextFraming.content_type

    @staticmethod
    def decode(body):
        return body.decode().split("\x1e")

    @staticmethod
    def encode(packets):
        return "\x1e".join(packets).encode()


class Polling:
    """One connection over long polling. The handshake sets the framing, and later requests omit it, like clients do."""

    def __init__(self, framing, revision, session_url):
        self.framing, self.revision = framing, revision
        parts = urlsplit(session_url)
        self.address = f"{parts.scheme}://{parts.netloc}/socket.io/?{parts.query}"
        query = urlencode({"EIO": revision, "transport": "polling", **framing.query})
        self.url = f"{self.address}&{query}"
        self.waiting = []  # received packets that were not processed yet

    def poll(self):
        answer = fetch("GET", self.url)
        assert answer.status == 200, f"a poll answered {answer.status} {answer.body!r}"
        found = answer.headers["Content-Type"]
        assert found.lower() == self.framing.content_type.lower(), found
        assert answer.body.isascii() or self.framing is BinaryFraming, f"text that clients count differently: {answer.body!r}"
        return self.framing.decode(answer.body)

    def open(self):
        """The first answer. Clients add their handlers after it, so they would lose further packets in it."""
        packets = self.poll()
        assert packets[0][:1] == "0" and packets[1:] == ([] if self.revision == "4" else ["40"]), packets
        handshake = json.loads(packets[0][1:])
        query = urlencode({"EIO": self.revision, "transport": "polling", "sid": handshake["sid"]})
        self.url = f"{self.address}&{query}"
        if self.revision == "4":
            self.post("40")
        return handshake

    def post(self, *packets):
        headers = {"Content-Type": self.framing.content_type}
        answer = fetch("POST", self.url, headers, self.framing.encode(packets))
        assert (answer.status, answer.body) == (200, b"ok"), f"a POST answered {answer.status} {answer.body!r}"

    def next(self, matches):
        """The next packet that matches. Others before it are skipped."""
        for _ in range(POLLS):
            while self.waiting:
                packet = self.waiting.pop(0)
                if matches(packet):
                    return packet
            self.waiting = self.poll()
        raise AssertionError(f"not within {POLLS} polls")

    def event(self, wanted):
        """The payload of the next event of this name, which is one JSON string."""
        packet = self.next(lambda packet: packet.startswith(f'42["{wanted}"'))
        assert packet.isascii(), f"not escaped to ASCII: {packet}"
        name, payload = json.loads(packet[2:])
        assert name == wanted and isinstance(payload, str), packet
        return json.loads(payload)


def messages_arrive(suite, connection, token):
    """Sends each message and expects it back, unchanged."""
    for message in MESSAGES:
        with suite.step(f"a message of {len(message)} code points arrives unchanged"):
            call("POST", f"{BASE}/open/v1/chats/send", as_user(token), {"message": message})
            chat = connection.event("CHAT")
            assert chat["content"] == message, chat["content"]
            assert chat["senderChannelId"] == STREAMER["channelId"], chat
    with suite.step("several messages that wait for one poll arrive in order"):
        sent = [f"{number}번째 🎈" for number in range(5)]
        for message in sent:
            body = {"senderChannelId": VIEWER["channelId"], "message": message}
            platform(f"channels/{STREAMER['channelId']}/chats", body)
        assert [connection.event("CHAT")["content"] for _ in sent] == sent


def run(suite, framing, revision):
    """One connection, from the session URL to the goodbye."""
    with suite.step("the seed's ready token opens a session"):
        token = ready_token()
        url = call("GET", f"{BASE}/open/v1/sessions/auth", as_user(token))["url"]
        connection = Polling(framing, revision, url)
    with suite.step("the first answer holds the handshake, before revision 4 also 40, and nothing else"):
        handshake = connection.open()
        assert handshake["upgrades"] == ["websocket"], handshake
        assert (handshake["pingInterval"], handshake["pingTimeout"]) == (25_000, 60_000), handshake
    if revision == "4":
        with suite.step("the client's 40 is answered by one with a sid"):
            assert json.loads(connection.next(lambda packet: packet.startswith("40"))[2:])["sid"]
    with suite.step("SYSTEM connected comes with a later answer"):
        connected = connection.event("SYSTEM")
        assert connected["type"] == "connected", connected
        session_key = connected["data"]["sessionKey"]
    if revision != "4":
        with suite.step("a client's own 40 is accepted, a ping is answered"):
            connection.post("40", "2")
            connection.next(lambda packet: packet == "3")
    with suite.step("subscribing is answered by SYSTEM subscribed"):
        query = urlencode({"sessionKey": session_key})
        call("POST", f"{BASE}/open/v1/sessions/events/subscribe/chat?{query}", as_user(token))
        subscribed = connection.event("SYSTEM")
        expected = {"type": "subscribed", "data": {"eventType": "CHAT", "channelId": STREAMER["channelId"]}}
        assert subscribed == expected, subscribed
    messages_arrive(suite, connection, token)
    with suite.step("after the goodbye the connection is gone"):
        connection.post("41", "1")
        answers = (fetch("GET", connection.url) for _ in range(3))
        gone = next((answer for answer in answers if answer.status != 200), None)
        assert gone and gone.status in (400, 401), f"after the goodbye a poll answered {gone and gone.body!r}"


def main(suite, framing, revision="3"):
    with suite.step("the pages lead to a code"):
        answer = sign_in("폴링 a&b")
        assert set(answer) == {"code", "state"} and answer["state"] == "폴링 a&b", answer
    run(suite, framing, revision)


if __name__ == "__main__":
    suite = Suite()
    try:
        framings = {"text": TextFraming, "binary": BinaryFraming, "separated": SeparatedFraming}
        main(suite, framings[sys.argv[1]], *sys.argv[2:])
    except StepFailed:
        pass
    sys.exit(suite.finish())
