"""chzzkpy, closed by the server for each reason that a client can cause: it stops, and does not busy-loop.

    python3 endings.py
"""

import asyncio
import os
import signal
import sys
import time

from harness import BASE, DEMO, PLATFORM, VIEWER, WORLD, as_user, call, fetch, platform, report, sign_in
from matrix import EVENT_SECONDS, Connection, Peer, Wrong, beside

PROGRAMS = {
    "chzzkpy-2.1.0": ("venv/chzzkpy-2.1", "py/peer_chzzkpy.py"),
    "chzzkpy-2.2.0": ("venv/interop", "py/peer_chzzkpy.py"),
}
SILENT_SECONDS = 100  # more than interval and timeout of the pings
FULL_SECONDS = 60  # to fill the kernel's buffers of a frozen program, on a busy machine
WRITE_SECONDS = 30  # longer than the write deadline of 10 s
IDLE_SECONDS = 1  # how long a program's CPU is measured after each end
BUSY_SECONDS = 0.5  # more CPU than an idle program uses in that time
LOOK_SECONDS = 0.1
OPERATOR = {"Authorization": f"Bearer {WORLD['operatorKey']}"}
EMOJIS = {f"emoji{number}": "https://emoji.example/" + "x" * 1_800 for number in range(10)}


class Bot:
    """A program that runs chzzkpy, with its own user, and opens one session after another."""

    def __init__(self, name, command):
        self.peer, self.channel, self.count = Peer(command), name.replace(".", "-"), 0

    async def start(self):
        await self.peer.start()
        await self.peer.ready.wait()
        await beside(self.prepare)

    def prepare(self):
        login, password = self.channel, f"{self.channel}-password"
        body = {"channelName": self.channel, "login": login, "password": password}
        platform(f"channels/{self.channel}", body, method="PUT")
        code = sign_in("endings", {"login": login, "password": password})["code"]
        body = {"grantType": "authorization_code", "code": code, "state": "endings"}
        body |= {"clientId": DEMO["clientId"], "clientSecret": DEMO["clientSecret"]}
        self.token = call("POST", f"{BASE}/auth/v1/token", body=body)["accessToken"]

    def sessions(self, method, path):
        return call(method, f"{BASE}/open/v1/sessions{path}", as_user(self.token))

    async def connect(self):
        """A session that receives the chat of the bot's channel."""
        self.count += 1
        here = self.connection = Connection(self.peer, f"{self.channel}-{self.count}")
        here.is_leaving = True  # it may end at any time now
        url = (await beside(self.sessions, "GET", "/auth"))["url"]
        here.peer.order("open", here.case, client="", url=url, transport="upgrade", events=[])
        connected = await here.until("SYSTEM connected", lambda: here.payloads("SYSTEM"))
        self.key = connected[0]["data"]["sessionKey"]
        await beside(self.sessions, "POST", f"/events/subscribe/chat?sessionKey={self.key}")
        await here.until("SYSTEM subscribed", lambda: len(here.payloads("SYSTEM")) == 2)

    def close_reason(self):
        return call("GET", f"{PLATFORM}/sessions/{self.key}", OPERATOR)["closeReason"]

    async def until_closed(self, seconds, doing=None):
        """Waits until the session has ended, and repeats an action until then."""
        end = time.monotonic() + seconds
        while (reason := await beside(self.close_reason)) is None:
            if time.monotonic() > end:
                raise Wrong(f"the session is not over after {seconds} s")
            await (doing() if doing else asyncio.sleep(LOOK_SECONDS))
        return reason

    def freeze(self):
        self.peer.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.peer.process.send_signal(signal.SIGCONT)

    async def shout(self, count):
        """Sends this many events of 18 KB each."""
        line = {"kind": "chat", "channelId": self.channel, "senderChannelId": VIEWER["channelId"]}
        await beside(report, [line | {"message": "loud", "emojis": EMOJIS}] * count)

    def say(self, packet, times=1):
        for _ in range(times):
            self.peer.order("say", self.connection.case, packet=packet)

    async def ends_well(self, cause, reason):
        """Opens a session, has it closed, and checks the client's reaction."""
        await self.connect()
        await cause(self)
        here = self.connection
        await here.until("disconnect", lambda: "disconnect" in dict(here.states))
        if reason != "server_shutdown":
            found = await self.until_closed(EVENT_SECONDS)
            if found != reason:
                raise Wrong(f"the session was closed as {found}")
        before = self.peer.cpu_seconds()
        await asyncio.sleep(IDLE_SECONDS)
        used = self.peer.cpu_seconds() - before
        if used > BUSY_SECONDS:
            raise Wrong(f"the program used {used:.1f} s of CPU in {IDLE_SECONDS} s after the end")
        self.peer.order("alive", here.case)
        await here.until("a sign of life", lambda: "alive" in dict(here.states))


async def evict(bot):
    await beside(platform, f"sessions/{bot.key}", None, 200, "DELETE")


async def break_protocol(bot):
    bot.say("9")


async def flood(bot):
    bot.say("2", 101)


async def ask_for_namespaces(bot):
    bot.say("40/elsewhere,", 9)


async def send_too_much(bot):
    bot.say("4" * 20_000)


async def read_nothing(bot):
    """Fills the queue while the program is frozen. The program continues within the 5 s of a goodbye."""
    bot.freeze()
    try:
        await bot.until_closed(FULL_SECONDS, lambda: bot.shout(40))
    finally:
        bot.thaw()


async def take_no_byte(bot):
    """Queues bytes while the program is frozen, for longer than the write deadline."""
    bot.freeze()
    try:
        end = time.monotonic() + FULL_SECONDS
        while await beside(queued_bytes) == 0:
            if time.monotonic() > end:
                raise Wrong("nothing waits")
            await bot.shout(7)
        await bot.until_closed(WRITE_SECONDS)
    finally:
        bot.thaw()


async def be_silent(bot):
    bot.freeze()
    try:
        await bot.until_closed(SILENT_SECONDS)
    finally:
        bot.thaw()


def queued_bytes():
    lines = fetch("GET", PLATFORM.removesuffix("/platform/v1") + "/metrics", OPERATOR).text().splitlines()
    return float(next(line for line in lines if line.startswith("stagedoor_queued_bytes ")).split()[1])


# One after another, because they share the metric of queued bytes and the CPU time of a program.
CAUSES = {
    "evicted": evict,
    "protocol_error": break_protocol,
    "packet_flood": flood,
    "namespace_flood": ask_for_namespaces,
    "message_too_big": send_too_much,
    "slow_consumer": read_nothing,
    "write_timeout": take_no_byte,
}


async def stop_server(bots):
    """Both have a session when the server stops."""
    stopped = asyncio.Event()

    async def wait(_):
        arrived.append(None)
        if len(arrived) == len(bots):
            os.kill(int(os.environ["STAGEDOOR_SERVER_PID"]), signal.SIGTERM)
            stopped.set()
        try:
            await asyncio.wait_for(stopped.wait(), EVENT_SECONDS)
        except TimeoutError as error:
            raise Wrong("the other program has no session") from error

    arrived = []
    return await asyncio.gather(*(verdict(bot.ends_well(wait, "server_shutdown")) for bot in bots))


async def verdict(running):
    """None, or why it failed."""
    try:
        return await running
    except (Wrong, AssertionError, OSError, ValueError, KeyError) as error:
        return f"{type(error).__name__} {error}".replace("\n", " ")


def show(results, title, why):
    results.append(why)
    number = len(results)
    print(f"not ok {number} - {title}: {why}" if why else f"ok {number} - {title}", flush=True)


async def main():
    bots = [Bot(name, command) for name, command in PROGRAMS.items()]
    silent = [Bot(f"{name}-silent", command) for name, command in PROGRAMS.items()]
    results = []
    try:
        await asyncio.gather(*(bot.start() for bot in bots + silent))
        silence = asyncio.gather(*(verdict(bot.ends_well(be_silent, "ping_timeout")) for bot in silent))
        for reason, cause in CAUSES.items():
            for name, bot in zip(PROGRAMS, bots, strict=True):
                show(results, f"{name} ends well when closed as {reason}", await verdict(bot.ends_well(cause, reason)))
        for name, why in zip(PROGRAMS, await silence, strict=True):
            show(results, f"{name} ends well when closed as ping_timeout", why)
        for name, why in zip(PROGRAMS, await stop_server(bots), strict=True):
            show(results, f"{name} ends well when closed as server_shutdown", why)
    finally:
        await asyncio.gather(*(bot.peer.stop() for bot in bots + silent))
    print(f"1..{len(results)}", flush=True)
    return 1 if any(results) else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
