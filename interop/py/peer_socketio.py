"""python-socketio, revision 4 or 5, with threads or with asyncio, driven line by line by matrix.py.

    python3 peer_socketio.py threads|asyncio
"""

import asyncio
import inspect
import sys
import threading

import socketio
from peer_lines import orders, tell

# Version 5 disconnects when the root namespace is not connected within a second. A busy machine needs longer.
PATIENT = {"wait_timeout": 40} if "wait_timeout" in inspect.signature(socketio.Client.connect).parameters else {}
TRANSPORTS = {"websocket": ["websocket"], "polling": ["polling"], "upgrade": None}


def listen(client, case, events):
    """Handlers that print each event. Only some versions of python-socketio give `disconnect` a reason. The connection
    is reported when `connect` returns: before that the client drops a `disconnect` without an event."""
    client.on("connect_error", lambda *why: tell(case, state="connect_error", detail=repr(why)))
    client.on("disconnect", lambda *why: tell(case, state="disconnect", detail=repr(why)))
    for event in events:
        client.on(event, lambda *args, event=event: tell(case, event=event, args=args))


def transport_of(client):
    return client.transport() if callable(client.transport) else client.transport


def with_threads():
    """Each connection and each event has its own thread, so concurrent events are handled in any order.
    Connecting blocks, so it runs in another thread than the reading of commands."""
    clients = {}

    def connect(case, url, transport):
        try:
            clients[case].connect(url, transports=TRANSPORTS[transport], **PATIENT)
            tell(case, state="connect")
        except Exception as error:  # every error is reported to the reader
            tell(case, state="connect_error", detail=repr(error))

    for ask, case, order in orders(ordered=False):
        if ask == "open":
            clients[case] = socketio.Client(reconnection=False)
            listen(clients[case], case, order["events"])
            threading.Thread(target=connect, args=(case, order["url"], order["transport"]), daemon=True).start()
        elif ask == "transport":
            tell(case, transport=transport_of(clients[case]))
        elif ask == "leave":
            threading.Thread(target=clients[case].disconnect, daemon=True).start()


async def with_asyncio():
    clients, running = {}, set()

    async def connect(case, url, transport):
        try:
            await clients[case].connect(url, transports=TRANSPORTS[transport], **PATIENT)
            tell(case, state="connect")
        except Exception as error:  # every error is reported to the reader
            tell(case, state="connect_error", detail=repr(error))

    def start(coroutine):
        running.add(task := asyncio.ensure_future(coroutine))
        task.add_done_callback(running.discard)

    reading = orders()
    while order := await asyncio.to_thread(next, reading, None):
        ask, case, rest = order
        if ask == "open":
            clients[case] = socketio.AsyncClient(reconnection=False)
            listen(clients[case], case, rest["events"])
            start(connect(case, rest["url"], rest["transport"]))
        elif ask == "transport":
            tell(case, transport=transport_of(clients[case]))
        elif ask == "leave":
            start(clients[case].disconnect())


if __name__ == "__main__":
    if sys.argv[1] == "threads":
        with_threads()
    else:
        asyncio.run(with_asyncio())
