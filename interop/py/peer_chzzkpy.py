"""chzzkpy's gateway, driven line by line by matrix.py and endings.py. It has two more commands than the others:

    {"ask": "say", "id": …, "packet": "9"}      sends this text over the websocket
    {"ask": "alive", "id": …}                   answered at once while the client leaves its loop time
"""

import asyncio
import contextlib

import aiohttp
from chzzkpy.enums import SocketPacketType
from chzzkpy.error import ChatConnectFailed
from chzzkpy.gateway import ChzzkGateway
from peer_lines import orders, tell

# chzzkpy requires TLS; 2.2 has an option to change that, 2.1 has none.
engineio_url = ChzzkGateway._get_engineio_url
ChzzkGateway._get_engineio_url = staticmethod(lambda *args, **named: engineio_url(*args, **{**named, "ssl": False}))


class PollingGateway(ChzzkGateway):
    """On a network that blocks websockets, it stays on long polling."""

    @classmethod
    async def _connect_websocket(cls, **_):
        raise ChatConnectFailed.websocket_upgrade_failed()


class State:
    """The receiver of the gateway's packets: prints events."""

    def __init__(self, case):
        self.case = case
        self.gateway_parsers = {SocketPacketType.EVENT: self.event}

    async def event(self, data):
        name, *args = data
        tell(self.case, event=name, args=args)


async def watch(case, gateway):
    """Prints how reading and pinging end: both by themselves after a close, pinging with an error without a pong."""
    reading, pinging = gateway.read_in_background(), gateway._ping_loop_task
    done, _ = await asyncio.wait([reading, pinging], return_when=asyncio.FIRST_COMPLETED)
    if reading not in done and gateway.is_connected:
        error = None if pinging.cancelled() else pinging.exception()
        if error is not None:
            tell(case, state="error", detail=f"it pings no more: {error!r}")
    await asyncio.wait([reading])
    error = None if reading.cancelled() else reading.exception()
    tell(case, state="disconnect", detail=repr(error))


async def main():
    gateways, running = {}, set()

    async def connect(case, url, transport):
        kind = PollingGateway if transport == "polling" else ChzzkGateway
        session = aiohttp.ClientSession()
        try:
            loop = asyncio.get_running_loop()
            gateway = await kind.connect(url=url, state=State(case), loop=loop, session=session)
        except Exception as error:  # every error is reported to the reader
            tell(case, state="connect_error", detail=repr(error))
            return
        gateways[case] = gateway
        tell(case, state="connect")
        await watch(case, gateway)
        await session.close()  # chzzkpy leaves it open

    async def leave(case):
        await gateways[case].disconnect()

    def start(coroutine):
        running.add(task := asyncio.ensure_future(coroutine))
        task.add_done_callback(running.discard)

    reading = orders()
    while order := await asyncio.to_thread(next, reading, None):
        ask, case, rest = order
        if ask == "open":
            start(connect(case, rest["url"], rest["transport"]))
        elif ask == "transport":
            tell(case, transport=gateways[case].current_transport, revision="3")
        elif ask == "say":
            # The server may have closed before the last of many packets.
            with contextlib.suppress(ConnectionResetError):
                await gateways[case].websocket.send_str(rest["packet"])
        elif ask == "alive":
            tell(case, state="alive")
        elif ask == "leave":
            start(leave(case))


if __name__ == "__main__":
    asyncio.run(main())
