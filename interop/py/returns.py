"""python-socketio 4 and 5, threads and asyncio: after the server has closed a session, `wait()` returns at once.

    python3 returns.py
"""

import json
import subprocess
import sys
import time

from harness import BASE, DEMO, WORLD, call
from matrix import HERE, Wrong, program

RETURN_SECONDS = 2
CLIENTS = {
    "python-socketio-4": "venv/python-socketio-4",
    "python-socketio-5": "venv/python-socketio-5",
}
PEER = """
import asyncio, json, sys, time
import socketio

url, way, transport = sys.argv[1:]
import inspect
patient = {"wait_timeout": 20} if "wait_timeout" in inspect.signature(socketio.Client.connect).parameters else {}


def tell(**said):
    print(json.dumps(said | {"at": time.time()}), flush=True)


def threads():
    client = socketio.Client(reconnection=False)
    client.on("SYSTEM", lambda payload: tell(system=json.loads(payload)))
    client.on("disconnect", lambda *why: tell(state="disconnect"))
    client.connect(url, transports=[transport], **patient)
    client.wait()


async def with_asyncio():
    client = socketio.AsyncClient(reconnection=False)
    client.on("SYSTEM", lambda payload: tell(system=json.loads(payload)))
    client.on("disconnect", lambda *why: tell(state="disconnect"))
    await client.connect(url, transports=[transport], **patient)
    await client.wait()


threads() if way == "threads" else asyncio.run(with_asyncio())
tell(state="returned")
"""


def heard(process, wanted):
    for line in process.stdout:
        said = json.loads(line)
        if wanted(said):
            return said
    raise Wrong("the program ended before that")


def returns(name, way, transport, reason):
    """How long after the close `wait()` returned."""
    headers = {"Client-Id": DEMO["clientId"], "Client-Secret": DEMO["clientSecret"]}
    url = call("GET", f"{BASE}/open/v1/sessions/auth/client", headers)["url"]
    command = program((CLIENTS[name],)) + ["-c", PEER, url, way, transport]
    process = subprocess.Popen(command, cwd=HERE, stdout=subprocess.PIPE, text=True)
    try:
        key = heard(process, lambda said: said.get("system", {}).get("type") == "connected")["system"]["data"]["sessionKey"]
        began = time.time()
        operator = {"Authorization": f"Bearer {WORLD['operatorKey']}"}
        call("POST", f"{BASE}/sandbox/v1/trigger/close-session", operator, {"session": key, "reason": reason})
        took = heard(process, lambda said: said.get("state") == "returned")["at"] - began
        if took > RETURN_SECONDS:
            raise Wrong(f"wait() returned {took:.1f} s after the close")
    finally:
        process.kill()
        process.wait()


def main():
    cases = [(name, way, transport, reason) for name in CLIENTS for way in ("threads", "asyncio")
             for transport in ("websocket", "polling") for reason in ("server_shutdown", "evicted")]  # fmt: skip
    failed = 0
    for number, (name, way, transport, reason) in enumerate(cases, 1):
        title = f"wait() of {name}, {way}, {transport}, returns when closed as {reason}"
        try:
            returns(name, way, transport, reason)
            print(f"ok {number} - {title}", flush=True)
        except (Wrong, AssertionError, OSError, ValueError, KeyError) as error:
            failed += 1
            print(f"not ok {number} - {title}: {type(error).__name__} {error}", flush=True)
    print(f"1..{len(cases)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
