"""socketIO-client, the oldest Python client still in use (Engine.IO 3), driven line by line by matrix.py."""

import threading
from urllib.parse import parse_qsl, urlsplit

from peer_lines import orders, tell
from socketIO_client import SocketIO

# It always begins with long polling, regardless of its options.
TRANSPORTS = {"polling": ["xhr-polling"], "upgrade": ["xhr-polling", "websocket"]}
NAMES = {"xhr-polling": "polling", "websocket": "websocket"}


def live(clients, case, url, transport, events):
    parts = urlsplit(url)
    try:
        client = SocketIO(
            parts.hostname, parts.port, transports=TRANSPORTS[transport], params=dict(parse_qsl(parts.query)),
            wait_for_connection=False,
        )  # fmt: skip
    except Exception as error:  # every error is reported to the reader
        return tell(case, state="connect_error", detail=repr(error))
    clients[case] = client
    tell(case, state="connect")  # its event `connect` is only for namespaces
    client.on("disconnect", lambda *_: tell(case, state="disconnect", detail=""))
    for event in events:
        client.on(event, lambda *args, event=event: tell(case, event=event, args=args))
    client.wait()  # reads until `disconnect` is called


def main():
    clients = {}
    for ask, case, order in orders():
        if ask == "open":
            arguments = (clients, case, order["url"], order["transport"], order["events"])
            threading.Thread(target=live, args=arguments, daemon=True).start()
        elif ask == "transport":
            tell(case, transport=NAMES[clients[case].transport_name])
        elif ask == "leave":
            threading.Thread(target=clients[case].disconnect, daemon=True).start()


if __name__ == "__main__":
    main()
