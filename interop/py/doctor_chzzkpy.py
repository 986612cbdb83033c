"""A bot of a few lines with chzzkpy 2.2.0, for the doctor: connect, answer a greeting.

Its settings are the variables that `stagedoor doctor` sets. Only the fixed address and the demand for TLS are changed.
"""

import asyncio
import os

import chzzkpy.gateway
import chzzkpy.http
from chzzkpy import Client, UserPermission
from chzzkpy.authorization import AccessToken
from chzzkpy.client import UserClient

LIFETIME_SECONDS = 86_400  # of the access token


def setting(name):
    return os.environ[f"STAGEDOOR_{name}"]


def point_at_stagedoor():
    plain_init = chzzkpy.http.Session.__init__

    def init(self, base_url, *args, **kwargs):
        plain_init(self, setting("BASE_URL"), *args, **kwargs)

    chzzkpy.http.Session.__init__ = init
    gateway = chzzkpy.gateway.ChzzkGateway
    plain_connect = gateway.connect.__func__
    gateway.connect = classmethod(lambda cls, **kwargs: plain_connect(cls, ssl=False, **kwargs))


async def main():
    point_at_stagedoor()
    client = Client(setting("CLIENT_ID"), setting("CLIENT_SECRET"), loop=asyncio.get_running_loop())
    # What `client.login` does before it waits for a browser.
    if hasattr(client, "_async_setup_hook"):
        await client._async_setup_hook()
    token = AccessToken(
        access_token=setting("ACCESS_TOKEN"), refresh_token=setting("REFRESH_TOKEN"), expires_in=LIFETIME_SECONDS
    )
    user = UserClient(client, token)

    @client.event
    async def on_chat(message):
        if message.content == "!hello":
            await user.send_message("안녕하세요!")

    await user.fetch_self()
    await user.connect(UserPermission.all())


if __name__ == "__main__":
    asyncio.run(main())
