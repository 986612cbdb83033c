#!/usr/bin/env python3
"""A bot for the tests of `stagedoor doctor`: it does well, or it commits the misdeeds that its arguments name.

    doctor_bot.py [MISDEED...]

It speaks Engine.IO 4 over long polling, with the standard library only. Where STAGEDOOR_WEBHOOK_URL is set, it is a
webhook receiver instead.
"""

import concurrent.futures
import hashlib
import hmac
import http.server
import json
import os
import random
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import datetime, timedelta, timezone

MISDEEDS = {
    "accept-bad-signature": "takes webhook messages with any signature",
    "accept-old": "takes old webhook messages",
    "answer-twice": "answers a repeated chat message again, and updates a repeated claim again",
    "bad-path": "calls a path that does not exist",
    "crash": "ends when the socket closes",
    "give-up": "makes no further call after a failure of the service",
    "hang": "prints nothing, and hangs when the socket closes",
    "hammer": "repeats refused calls without an end",
    "ignore-retry-after": "repeats a call at once after 429",
    "no-backoff": "repeats failed calls at once",
    "no-reconnect": "does not connect again",
    "no-refresh": "does not refresh its tokens",
    "no-resubscribe": "does not subscribe again on a new session",
    "not-listening": "has no webhook receiver",
    "old-token": "goes on with the old access token after a refresh",
    "refresh-each": "refreshes for each call that was refused, with the same refresh token",
    "refuse-good": "refuses webhook messages",
    "reuse-refresh": "sends a refresh token again and again",
    "reuse-url": "connects again with the old session URL",
    "rush": "connects again at once when the socket closes",
    "silent": "makes no call",
    "subscribe-early": "subscribes before SYSTEM connected, with the key of the newest session in the list",
    "subscribe-twice": "subscribes at each SYSTEM connected, also a repeated one",
    "wait-forever": "does not notice that nothing comes any more",
}
EVENTS = ["chat", "donation", "subscription"]
CALL_SECONDS = 30
PAUSE_SECONDS_MAX = 60


class SignInNeeded(Exception):
    """The tokens are gone. Only the user can help."""


class Lost(Exception):
    """There was no answer."""


def say(text):
    if "hang" not in sys.argv:
        print(text, flush=True)


def setting(name):
    return os.environ[f"STAGEDOOR_{name}"]


def send(method, url, headers=None, body=None, seconds=CALL_SECONDS):
    """One HTTP exchange: status, headers and bytes."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers, refused.read()
    except (OSError, ValueError) as error:
        raise Lost(str(error)) from None
    except Exception as error:  # http.client has many exceptions for half an answer
        raise Lost(str(error)) from None


class Pauses:
    """One or two seconds at random, and twice as long after each failure."""

    def __init__(self):
        self.seconds = 0

    def wait(self):
        self.seconds = min(self.seconds * 2 or 1 + random.random(), PAUSE_SECONDS_MAX)
        time.sleep(self.seconds)


class Bot:
    def __init__(self, misdeeds):
        self.misdeeds = misdeeds
        self.base = setting("BASE_URL")
        self.access, self.refresh_token = setting("ACCESS_TOKEN"), setting("REFRESH_TOKEN")
        self.sessions, self.handled, self.lock = 0, set(), threading.Lock()

    def is_new(self, message):
        """Whether this message has not been handled."""
        with self.lock:
            if message in self.handled and not self.does("answer-twice"):
                return False
            self.handled.add(message)
            return True

    def does(self, misdeed):
        return misdeed in self.misdeeds

    def refresh(self, refused):
        """New tokens instead of the refused one, once for all calls that wait for them."""
        if self.does("refresh-each"):
            return self.refresh_once()
        with self.lock:
            if self.access == refused:
                self.refresh_once()

    def refresh_once(self):
        """New tokens. A lost answer is repeated once: a token that was used is only refused then."""
        if not self.refresh_token:
            raise SignInNeeded
        body = {"grantType": "refresh_token", "clientId": setting("CLIENT_ID"), "clientSecret": setting("CLIENT_SECRET")}
        turns = 20 if self.does("reuse-refresh") else 2
        for turn in range(turns):
            try:
                status, _, answer = send(
                    "POST", f"{self.base}/auth/v1/token", {"Content-Type": "application/json"},
                    {**body, "refreshToken": self.refresh_token},
                )  # fmt: skip
            except Lost as lost:
                say(f"the answer with the new tokens was lost: {lost}")
                time.sleep(1)
                continue
            if status == 200:
                content = json.loads(answer)["content"]
                self.refresh_token = content["refreshToken"]
                if not self.does("old-token"):
                    self.access = content["accessToken"]
                return
            if not self.does("reuse-refresh"):
                break
            time.sleep(1)
        self.refresh_token = None
        raise SignInNeeded

    def call(self, method, path, body=None):
        """A call, until there is an answer that a repetition would not change."""
        pauses, refreshed = Pauses(), False
        while True:
            access = self.access
            headers = {"Authorization": f"Bearer {access}", "Content-Type": "application/json"}
            try:
                status, answered, answer = send(method, self.base + path, headers, body)
            except Lost as lost:
                status, answered, answer = 0, {}, str(lost).encode()
            if 200 <= status < 300:
                return json.loads(answer).get("content")
            say(f"{method} {path.split('?')[0]}: {status}")
            if self.does("hammer") and status in (401, 403):
                time.sleep(0.1)
            elif status == 401 and self.does("no-refresh"):
                time.sleep(4)
            elif status == 401 and not refreshed:
                self.refresh(access)
                refreshed = not self.does("old-token")
            elif status == 401:
                raise SignInNeeded
            elif status == 429 and answered.get("Retry-After"):
                time.sleep(0.1 if self.does("ignore-retry-after") else float(answered["Retry-After"]))
            elif status == 0 or status >= 500:
                if self.does("give-up"):
                    self.idle()
                if not self.does("no-backoff"):
                    pauses.wait()
            else:
                return None

    def idle(self):
        while True:
            time.sleep(1)

    def run(self):
        if "STAGEDOOR_WEBHOOK_URL" in os.environ:
            return self.idle() if self.does("not-listening") else receive(self)
        if self.does("silent"):
            self.idle()
        if self.does("bad-path"):
            self.call("GET", "/open/v1/no-such-path")
        pauses, url = Pauses(), None
        while True:
            if not (url and self.does("reuse-url")):
                url = self.call("GET", "/open/v1/sessions/auth")["url"]
            session = Session(self, url)
            try:
                session.run()
            except Lost as lost:
                say(f"the socket closed: {lost}")
            if self.does("crash"):
                sys.exit(3)
            if self.does("no-reconnect") or self.does("hang"):
                self.idle()
            if session.was_connected:
                pauses = Pauses()
            elif self.does("reuse-url"):
                url = None
            if not (session.was_connected and self.does("rush")):
                pauses.wait()

    def opened(self):
        """The session is open, but SYSTEM `connected` has not come yet."""
        if self.does("subscribe-early"):
            sessions = self.call("GET", "/open/v1/sessions")["data"]
            key = next(each["sessionKey"] for each in sessions if not each["disconnectedDate"])
            self.call("POST", f"/open/v1/sessions/events/subscribe/chat?sessionKey={key}")

    def connected(self, session_key):
        """SYSTEM `connected`: now the bot may subscribe."""
        self.sessions += 1
        if self.sessions > 1 and self.does("no-resubscribe"):
            return
        path = "/open/v1/sessions/events/subscribe"
        calls = [f"{path}/{event}?sessionKey={session_key}" for event in EVENTS]
        with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
            list(pool.map(lambda path: self.call("POST", path), calls))

    def heard(self, chat):
        """A chat message. Its channel, its sender and its time are its id."""
        if chat["content"] == "!hello" and self.is_new((chat["channelId"], chat["senderChannelId"], chat["messageTime"])):
            self.call("POST", "/open/v1/chats/send", {"message": "안녕하세요!"})

    def claimed(self, message_id, claim):
        """A claim. The game gives the reward, and says so."""
        if self.is_new(message_id):
            headers = {
                "Client-Id": setting("CLIENT_ID"), "Client-Secret": setting("CLIENT_SECRET"),
                "Content-Type": "application/json",
            }  # fmt: skip
            body = {"claimIds": [claim["claimId"]], "fulfillmentState": "FULFILLED"}
            send("PUT", f"{self.base}/open/v1/drops/reward-claims", headers, body)


class Session:
    """A session over long polling."""

    def __init__(self, bot, url):
        parts = urllib.parse.urlsplit(url)
        query = urllib.parse.urlencode({**dict(urllib.parse.parse_qsl(parts.query)), "EIO": "4", "transport": "polling"})
        self.bot, self.key, self.was_connected, self.silence_seconds = bot, None, False, CALL_SECONDS
        self.address = f"{parts.scheme}://{parts.netloc}/socket.io/?{query}"

    def poll(self):
        seconds = None if self.bot.does("wait-forever") else self.silence_seconds
        status, _, answer = send("GET", self.address, seconds=seconds)
        if status != 200:
            raise Lost(f"{status}")
        return answer.decode().split("\x1e")

    def post(self, packet):
        status, _, _ = send("POST", self.address, {"Content-Type": "text/plain;charset=UTF-8"}, packet.encode())
        if status != 200:
            raise Lost(f"{status}")

    def run(self):
        opened = json.loads(self.poll()[0][1:])
        self.address += f"&sid={opened['sid']}"
        # Without a ping for that long nothing comes any more.
        self.silence_seconds = (opened["pingInterval"] + opened["pingTimeout"]) / 1000
        self.post("40")
        self.bot.opened()
        while True:
            for packet in self.poll():
                self.take(packet)

    def take(self, packet):
        if packet == "2":
            self.post("3")
        elif packet == "1" or packet.startswith("41"):
            raise Lost("the service said goodbye")
        elif packet.startswith("42"):
            name, text = json.loads(packet[2:])
            message = json.loads(text)
            # A repeated SYSTEM message is no second session.
            is_connected = name == "SYSTEM" and message["type"] == "connected"
            if is_connected and (self.bot.does("subscribe-twice") or self.key != message["data"]["sessionKey"]):
                self.key, self.was_connected = message["data"]["sessionKey"], True
                self.bot.connected(self.key)
            elif name == "CHAT":
                self.bot.heard(message)
            else:
                say(f"{name}: {text[:100]}")


def receive(bot):
    """Receives webhook messages at STAGEDOOR_WEBHOOK_URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            header = lambda name: self.headers[f"Service-Event-Message-{name}"]
            id, timestamp, signature = header("Id"), header("Timestamp"), header("Signature")
            mac = hmac.new(setting("WEBHOOK_SECRET").encode(), (id + timestamp).encode() + body, hashlib.sha256)
            is_signed = hmac.compare_digest(f"sha256={mac.hexdigest()}", signature)
            signed_at = datetime.strptime(timestamp, "%Y-%m-%dT%H:%M:%S.%f%z")
            is_new = abs(datetime.now(timezone.utc) - signed_at) < timedelta(minutes=5)
            is_good = (is_signed or bot.does("accept-bad-signature")) and (is_new or bot.does("accept-old"))
            self.send_response(204 if is_good and not bot.does("refuse-good") else 401)
            self.end_headers()
            if is_good:
                bot.claimed(id, json.loads(body)["event"]["data"])

        def log_message(self, form, *arguments):
            say(form % arguments)

    port = urllib.parse.urlsplit(setting("WEBHOOK_URL")).port
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


def main(arguments):
    unknown = set(arguments) - set(MISDEEDS)
    if unknown:
        sys.exit(f"unknown misdeeds: {', '.join(sorted(unknown))}; there are {', '.join(MISDEEDS)}")
    try:
        Bot(set(arguments)).run()
    except SignInNeeded:
        sys.exit("the tokens are gone: the user has to sign in again")


if __name__ == "__main__":
    main(sys.argv[1:])
