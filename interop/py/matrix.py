"""Every published client of a table, with every transport, all at once, through one scenario.

    python3 matrix.py TABLE [--brief]

A row of the table (`clients` beside this folder) names a program that holds the client and nothing else. It reads one
JSON object a line and writes one JSON object a line, so that what is right is decided here, once for all of them:

    {"ready": true, "ordered": true}     once, when orders can come; ordered is false when the client gives each event a
                                         thread of its own, so that nobody can tell in which order they came
    {"ask": "open", "id": …, "client": …, "url": …, "transport": "websocket|polling|upgrade|base64", "events": […]}
    {"ask": "transport", "id": …}       {"ask": "leave", "id": …}

    {"id": …, "state": "connect|disconnect|…", "detail": …}
    {"id": …, "event": "CHAT", "args": […]}
    {"id": …, "transport": "websocket", "revision": "3"}    null, or nothing, when the client does not say

The scenario: a session URL, SYSTEM connected, three subscriptions, text that is hard to carry, in order and once each
(around the upgrade, where there is one), three rounds of pings, another message, goodbye, and the session's end in the
list. Then another session, which the operator ends: the client notices, and no program is busy after that. --brief leaves
the rounds of pings out.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

from harness import BASE, DEMO, VIEWER, as_user, call, platform, report, sign_in

HERE = Path(__file__).resolve().parent.parent
CACHE = HERE.parent / ".cache"

CONNECT_SECONDS = 40  # all of them start at once, on any machine
EVENT_SECONDS = 20
# Three rounds of 25 s, and longer than interval and timeout together (85 s): a client that does not ping is closed in that time.
STAY_SECONDS = 91
GOODBYE_SECONDS = 5  # from leaving, all at once, to the end in the session list; without a goodbye it takes up to 85
EVICTION_SECONDS = 10  # until a client notices that its session was ended
IDLE_SECONDS = 5  # how long the programs' CPU is measured when all sessions have ended
BUSY_SECONDS = 2.5  # more CPU than an idle program uses in that time
BUSY_TIMES = 4  # a program that is busy this many times in a row counts as busy-looping
# Clients that report nothing, or retry their used URL, when the other side ends a connection (docs/clients.md).
SILENT_AT_THE_END = {"socketIO-client", "rust_socketio", "rust_socketio-async"}
LOOK_SECONDS = 0.1  # between two checks of a condition
CALLS = 16  # concurrent HTTP calls
BURST = 10
AT_ONCE = 8  # events; rust_socketio breaks on a poll answer of more than 8 KiB (docs/clients.md)
EVENTS = ["SYSTEM", "CHAT", "DONATION", "SUBSCRIPTION"]

MESSAGES = [
    "안녕하세요 👋🏽 가족 👨‍👩‍👧‍👦 한글",
    "조합형 \u1112\u1161\u11ab\u1100\u1173\u11af, e\u0301, 𠮷, 🇰🇷, 🏴󠁧󠁢󠁳󠁣󠁴󠁿, ✌🏿",
    '"따옴표" \'\' \\ \\u0041 \\" / <b>&amp;</b> {"a":[1]} 42["CHAT"] 끝',
    "줄\u2028문단\u2029다음\u0085줄\r\n탭\t끝",
    "".join(map(chr, range(0x01, 0x20))) + "\x7f" + "".join(map(chr, range(0x80, 0xA0))),
    "가장자리 \ud7ff\ue000\ufeff\ufffd\ufffe\uffff\U00010000\U0010ffff",
    "👩‍🚀" * 33 + "끝",  # 100 code points, 133 UTF-16 units, 366 bytes
    *(f"업그레이드 {number} 🎈" for number in range(BURST)),
]
LAST = "세 바퀴 뒤 🫶🏼"


class Row(NamedTuple):
    client: str
    revision: str
    ways: list
    command: tuple


def read_table(path):
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            client, revision, ways, command = line.split(maxsplit=3)
            yield Row(client, revision, ways.split(","), tuple(command.split()))


class Wrong(Exception):
    """Why a client did not pass, in one line."""


def program(command):
    """The command of a row, with the path of its program. A missing program is a failure."""
    name, *rest = command
    if name == "rust":
        found = CACHE / "rust" / "debug" / "stagedoor-interop-rust"
    elif name.startswith("venv/"):
        found = CACHE / name / "bin" / "python"
    else:
        return command
    if not found.exists():
        raise Wrong(f"{found} is missing: ./test tools")
    return [str(found), *rest]


class Peer:
    """A program that runs clients, and its output about each connection."""

    def __init__(self, command):
        self.command = command
        self.connections = {}
        self.ready = asyncio.Event()
        self.ended = None  # why there is no more output
        self.opening = asyncio.Lock()  # one at a time: a browser that opens twenty pages at once opens all of them late

    async def start(self):
        try:
            self.process = await asyncio.create_subprocess_exec(
                *program(self.command), cwd=HERE, limit=1 << 20,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
        except (OSError, Wrong) as error:
            self.end(str(error))
            return
        self.errors = asyncio.create_task(self.process.stderr.read())
        self.reading = asyncio.create_task(self.read())

    async def read(self):
        async for line in self.process.stdout:
            try:
                said = json.loads(line)
            except ValueError:
                continue  # other output of the client
            if "ready" in said:
                self.ordered = said["ordered"]
                self.ready.set()
            else:
                self.connections[said["id"]].hear(said)
        code = await self.process.wait()
        last = (await self.errors).decode(errors="replace").strip().splitlines()
        why = next((line for line in last if "Error" in line or "panicked" in line), last[-1] if last else "")
        self.end(f"the program ended with {code}: {why}")

    def end(self, why):
        self.ended = why
        self.ready.set()
        for connection in self.connections.values():
            connection.news.set()

    def order(self, ask, case, **rest):
        if self.ended:
            raise Wrong(self.ended)
        self.process.stdin.write(json.dumps({"ask": ask, "id": case, **rest}).encode() + b"\n")

    def cpu_seconds(self):
        """CPU seconds of the program so far, including its children."""
        return sum(map(cpu_seconds_of, family(self.process.pid)))

    async def stop(self):
        if self.ended is None:
            self.process.stdin.close()
            await asyncio.wait([self.reading], timeout=5)
        if self.ended is None:
            self.process.kill()
            await self.reading


def stat(pid):
    """The fields of /proc/PID/stat after the name; none if the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def family(pid):
    """A process and its descendants."""
    parents = {int(each.name): int((stat(each.name) or [0, 0])[1]) for each in Path("/proc").glob("[0-9]*")}
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found


def cpu_seconds_of(pid):
    fields = stat(pid)
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK") if fields else 0


class Connection:
    """One client's connection: its program's output, and waits for more."""

    def __init__(self, peer, case):
        self.peer, self.case = peer, case
        self.events, self.states, self.transport, self.revision = [], [], ..., None
        self.is_leaving = False
        self.news = asyncio.Event()
        peer.connections[case] = self

    def hear(self, said):
        if "event" in said:
            self.events.append((said["event"], said["args"]))
        elif "state" in said:
            self.states.append((said["state"], said.get("detail")))
        else:
            self.transport, self.revision = said["transport"], said.get("revision")
        self.news.set()

    def check(self):
        if self.peer.ended:
            raise Wrong(self.peer.ended)
        if not self.is_leaving:
            bad = [state for state in self.states if state[0] != "connect"]
            if bad:
                raise Wrong(f"the client says {bad[0][0]}: {bad[0][1]}")

    async def until(self, what, holds, seconds=EVENT_SECONDS):
        """Waits until `holds()` returns a value, and returns it."""
        end = time.monotonic() + seconds
        while not (found := holds()):
            self.check()
            self.news.clear()
            try:
                await asyncio.wait_for(self.news.wait(), max(end - time.monotonic(), 0))
            except TimeoutError:
                raise Wrong(f"not within {seconds} s: {what}; events {[name for name, _ in self.events]}") from None
        return found

    def payloads(self, wanted):
        """The events of this name. Each has one JSON string, as current clients expect."""
        found = [args for name, args in self.events if name == wanted]
        for args in found:
            if len(args) != 1 or not isinstance(args[0], str):
                raise Wrong(f"{wanted} is not one JSON string: {args!r}")
        return [json.loads(args[0]) for args in found]

    async def system(self, expected):
        await self.until(expected, lambda: expected in self.payloads("SYSTEM"))

    async def texts(self, wanted, field, expected):
        """Waits for as many events as expected; then each must have arrived once, unchanged, and in order if the client keeps the order."""
        await self.until(f"{len(expected)} {wanted}", lambda: len(self.payloads(wanted)) >= len(expected))
        found = [payload[field] for payload in self.payloads(wanted)]
        if not self.peer.ordered:
            found, expected = sorted(found), sorted(expected)
        for have, want in zip(found, expected, strict=False):
            if list(map(ord, have)) != list(map(ord, want)):
                raise Wrong(f"{wanted} changed on the way: {ascii(want)} came as {ascii(have)}")
        if len(found) != len(expected):
            raise Wrong(f"{len(found)} {wanted}, not {len(expected)}")


calls = asyncio.Semaphore(CALLS)


async def beside(function, *arguments):
    """A blocking call, on a thread."""
    async with calls:
        return await asyncio.to_thread(function, *arguments)


class Case:
    """A client, a transport, and its own user, because a user may have only three sessions."""

    def __init__(self, number, row, way, peer):
        self.row, self.way = row, way
        self.title = f"{row.client} {way}"
        self.channel = f"matrix{number}"
        self.connection, self.evicted = Connection(peer, f"c{number}"), Connection(peer, f"e{number}")

    def prepare(self):
        """The user, and a token."""
        login, password = self.channel, f"{self.channel}-password"
        body = {
            "channelName": self.title[:30], "channelImageUrl": None, "verifiedMark": False, "login": login,
            "password": password,
        }  # fmt: skip
        platform(f"channels/{self.channel}", body, method="PUT")
        code = sign_in("matrix", {"login": login, "password": password})["code"]
        body = {"grantType": "authorization_code", "code": code, "state": "matrix"}
        body |= {"clientId": DEMO["clientId"], "clientSecret": DEMO["clientSecret"]}
        self.token = call("POST", f"{BASE}/auth/v1/token", body=body)["accessToken"]

    def api(self, method, path):
        return call(method, f"{BASE}/open/v1/sessions{path}", as_user(self.token))

    async def connect(self, here):
        """Opens a connection, and returns the session's key. The session URL is new."""
        await here.peer.ready.wait()
        async with here.peer.opening:
            return await self.open(here)

    async def open(self, here):
        url = (await beside(self.api, "GET", "/auth"))["url"]
        here.peer.order("open", here.case, client=self.row.client, url=url, transport=self.way, events=EVENTS)
        await here.until("connect", lambda: here.states, CONNECT_SECONDS)
        connected = await here.until("SYSTEM connected", lambda: here.payloads("SYSTEM"))
        if connected[0]["type"] != "connected":
            raise Wrong(f"SYSTEM began with {connected[0]}")
        return connected[0]["data"]["sessionKey"]

    async def subscribe(self):
        for kind in ("chat", "donation", "subscription"):
            await beside(self.api, "POST", f"/events/subscribe/{kind}?sessionKey={self.session_key}")
            data = {"eventType": kind.upper(), "channelId": self.channel}
            await self.connection.system({"type": "subscribed", "data": data})

    def chat(self, message):
        return {"kind": "chat", "senderChannelId": VIEWER["channelId"], "message": message}

    def donation(self, message):
        text = {"donationType": "CHAT", "payAmount": "1000", "donationText": message}
        return {"kind": "donation", "donatorChannelId": VIEWER["channelId"], **text}

    def subscription(self, tier):
        paid = {"subscriberChannelId": VIEWER["channelId"], "tierNo": 2, "tierName": tier, "month": 3}
        return {"kind": "subscription", **paid}

    async def happen(self, *happenings):
        await beside(report, [{"channelId": self.channel, **each} for each in happenings])

    async def receive(self):
        """Events one by one, then several at once."""
        first = MESSAGES[0]
        await self.happen(self.chat(first))
        await self.happen(self.donation(first))
        await self.happen(self.subscription(first))
        for end in range(1 + AT_ONCE, len(MESSAGES) + AT_ONCE, AT_ONCE):
            for event, field, happening in [("CHAT", "content", self.chat), ("DONATION", "donationText", self.donation)]:
                await self.happen(*map(happening, MESSAGES[end - AT_ONCE : end]))
                await self.connection.texts(event, field, MESSAGES[:end])
        await self.connection.texts("CHAT", "content", MESSAGES)
        await self.connection.texts("DONATION", "donationText", MESSAGES)
        await self.connection.texts("SUBSCRIPTION", "tierName", [first])

    async def transport(self):
        """The final transport of the client, and its revision, if the client reports them."""
        wanted = {"upgrade": "websocket", "base64": "polling"}.get(self.way, self.way)
        here, end = self.connection, time.monotonic() + EVENT_SECONDS
        while time.monotonic() < end:
            here.transport = ...
            here.peer.order("transport", here.case)
            await here.until("a transport", lambda: here.transport is not ...)
            if here.revision not in (self.row.revision, None):
                raise Wrong(f"it speaks revision {here.revision}, not {self.row.revision}")
            if here.transport in (wanted, None):
                return
            await asyncio.sleep(LOOK_SECONDS)
        raise Wrong(f"the client is on {here.transport}, not on {wanted}")

    async def stay(self, seconds):
        here = self.connection
        try:
            await here.until("", lambda: False, seconds)
        except Wrong:
            here.check()
        await self.happen(self.chat(LAST))
        await here.texts("CHAT", "content", [*MESSAGES, LAST])
        if len(here.payloads("SYSTEM")) != 4:
            raise Wrong(f"SYSTEM has more messages than changes: {here.payloads('SYSTEM')}")

    def is_over(self):
        listed = self.api("GET", "")["data"]
        return next(each for each in listed if each["sessionKey"] == self.session_key)["disconnectedDate"] is not None

    async def leave(self):
        here = self.connection
        if await beside(self.is_over):
            raise Wrong("the session list says that the session is over")
        here.is_leaving = True
        here.peer.order("leave", here.case)
        end = time.monotonic() + GOODBYE_SECONDS
        while not await beside(self.is_over):
            if time.monotonic() > end:
                raise Wrong(f"the session is not over {GOODBYE_SECONDS} s after the client left")
            await asyncio.sleep(LOOK_SECONDS)

    async def be_evicted(self):
        """A session that the operator ends: the client reports that, and does not reconnect."""
        here = self.evicted
        key = await self.connect(here)
        here.is_leaving = True
        await beside(platform, f"sessions/{key}", None, 200, "DELETE")
        if self.row.client in SILENT_AT_THE_END:
            return
        await here.until("disconnect", lambda: "disconnect" in dict(here.states), EVICTION_SECONDS)
        if len([state for state, _ in here.states if state == "connect"]) != 1:
            raise Wrong(f"it connected again: {here.states}")

    async def run(self, seconds):
        """Returns None, or why the client did not pass."""
        step = "connect"
        try:
            self.session_key = await self.connect(self.connection)
            step = "subscribe"
            await self.subscribe()
            step = "receive"
            await self.receive()
            step = "transport"
            await self.transport()
            step = "stay"
            await self.stay(seconds)
            step = "leave"
            await self.leave()
            step = "evict"
            await self.be_evicted()
        except (Wrong, AssertionError, OSError, ValueError, KeyError) as error:
            return f"{step}: {type(error).__name__ if not isinstance(error, Wrong) else ''} {error}".replace("\n", " ")


async def busy(peers):
    """The programs that use CPU although all sessions have ended, with the CPU seconds."""
    used = {command: BUSY_SECONDS + 1 for command, peer in peers.items() if peer.ended is None}
    for _ in range(BUSY_TIMES):
        before = {command: peers[command].cpu_seconds() for command, seconds in used.items() if seconds > BUSY_SECONDS}
        if not before:
            break
        await asyncio.sleep(IDLE_SECONDS)
        used = {command: peers[command].cpu_seconds() - start for command, start in before.items()}
    return {command: seconds for command, seconds in used.items() if seconds > BUSY_SECONDS}


async def main(table, seconds):
    rows = list(read_table(table))
    peers = {row.command: Peer(row.command) for row in rows}
    pairs = [(row, way) for row in rows for way in row.ways]
    cases = [Case(number, row, way, peers[row.command]) for number, (row, way) in enumerate(pairs)]
    await asyncio.gather(*(peer.start() for peer in peers.values()))
    try:
        await asyncio.gather(*(beside(case.prepare) for case in cases))
        verdicts = await asyncio.gather(*(case.run(seconds) for case in cases))
        # A client that retries its used URL without a pause uses CPU.
        restless = {row.command for row in rows if row.client in SILENT_AT_THE_END}
        spinning = await busy({command: peer for command, peer in peers.items() if command not in restless})
    finally:
        await asyncio.gather(*(peer.stop() for peer in peers.values()))
    for number, (case, verdict) in enumerate(zip(cases, verdicts, strict=True), 1):
        print(f"not ok {number} - {case.title}: {verdict}" if verdict else f"ok {number} - {case.title}")
    number = len(cases) + 1
    print(f"{'not ' if spinning else ''}ok {number} - no program is busy after its sessions were ended: {spinning or 'none'}")
    print(f"1..{number}", flush=True)
    return 1 if any(verdicts) or spinning or not cases else 0


if __name__ == "__main__":
    brief = "--brief" in sys.argv
    sys.exit(asyncio.run(main(sys.argv[1], 0 if brief else STAY_SECONDS)))
