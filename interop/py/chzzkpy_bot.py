"""chzzkpy 2.2.0 as its users run it, on the profile `observed`.

    python chzzkpy_bot.py upgrade|polling

`upgrade` is what chzzkpy does by itself: long polling with the binary framing, then websocket. `polling` refuses it the
websocket, which makes it stay on long polling: its own way for networks that let no websocket through.
"""

import asyncio
import sys

import chzzkpy.gateway
import chzzkpy.http
from chzzkpy import Client, UserPermission
from chzzkpy.error import ChatConnectFailed, UnauthorizedException

from harness import BASE, DEMO, STREAMER, VIEWER, StepFailed, Suite, platform, sign_in

TEXT = "안녕하세요 👋🏽 가족 👨‍👩‍👧‍👦 한글"
STATE = "chzzkpy"
DEADLINE_SECONDS = 20
BUILT_IN = "https://openapi.chzzk.naver.com"  # a server with this host needs no patch


def point_at_stagedoor(transport):
    """chzzkpy has a fixed address and requires TLS. Only these two are changed."""
    plain_init = chzzkpy.http.Session.__init__

    def init(self, base_url, *args, **kwargs):
        plain_init(self, BASE, *args, **kwargs)

    chzzkpy.http.Session.__init__ = init
    gateway = chzzkpy.gateway.ChzzkGateway
    plain_connect = gateway.connect.__func__
    gateway.connect = classmethod(lambda cls, **kwargs: plain_connect(cls, ssl=False, **kwargs))

    if transport == "polling":

        async def refuse(cls, **kwargs):
            raise ChatConnectFailed.websocket_upgrade_failed()

        gateway._connect_websocket = classmethod(refuse)


class Events:
    """The arguments of the client's event handlers, one queue for each event type."""

    def __init__(self, client):
        self.queues = {}
        for name in ("chat", "donation", "subscription", "permission_invoked", "error"):
            self._collect(client, name)

    def _collect(self, client, name):
        queue = self.queues[name] = asyncio.Queue()

        async def handler(*arguments):
            queue.put_nowait(arguments[0])

        handler.__name__ = f"on_{name}"
        client.event(handler)

    async def next(self, name):
        return await asyncio.wait_for(self.queues[name].get(), DEADLINE_SECONDS)


async def tokens_and_reads(suite, client):
    """From the code to a refreshed user client, and its read calls."""
    with suite.step("generate_user_client turns the code into a user"):
        code = sign_in(STATE)["code"]
        user = await client.generate_user_client(code, STATE)
        assert (user.channel_id, user.channel_name) == (STREAMER["channelId"], STREAMER["channelName"])
        assert user.access_token.expires_in == 86400
    with suite.step("refresh replaces the tokens"):
        before = user.access_token
        await user.refresh()
        assert user.access_token.access_token != before.access_token
        assert "채팅 메시지 쓰기" in user.access_token.scope
    with suite.step("fetch_self and get_channel agree"):
        me = await user.fetch_self()
        assert me.id == STREAMER["channelId"]
        found = await client.get_channel([STREAMER["channelId"], VIEWER["channelId"]])
        assert {each.id for each in found} == {STREAMER["channelId"], VIEWER["channelId"]}
    with suite.step("get_followers and get_subscribers list the channel's people, with dates that parse"):
        followers = await user.get_followers(size=2)
        assert len(followers) == 2 and followers.total_count > 2, followers
        more = await followers.next()
        assert not {each.user_id for each in followers.data} & {each.user_id for each in more.data}
        subscribers = await user.get_subscribers(sort="LONGER")
        months = [each.month for each in subscribers.data]
        assert months == sorted(months, reverse=True) and subscribers[0].tier_no in (1, 2), subscribers
    with suite.step("get_category and get_live find what is on air"):
        found = await client.get_category("스타")
        assert [each.name for each in found] == ["스타 보이지"], found
        lives = await client.get_live()
        assert lives[0].channel.id == STREAMER["channelId"], lives
        assert lives[0].category.name == "스타 보이지", lives
    return user


async def settings(suite, user):
    """The settings of a streamer, changed through a bot."""
    with suite.step("set_live_setting changes what get_live_setting shows"):
        category = (await user.get_live_setting()).category
        await user.set_live_setting(title="새 제목 🎬", category=category, tags=["한글", "tag1"])
        setting = await user.get_live_setting()
        assert (setting.title, setting.tags) == ("새 제목 🎬", ["한글", "tag1"]), setting
        assert setting.category.id == category.id, setting
    with suite.step("set_chat_setting changes what get_chat_setting shows"):
        await user.set_chat_setting(
            chat_available_condition="NONE",
            chat_available_group="FOLLOWER",
            min_follower_minute=0,
            allow_subscriber_in_follower_mode=True,
        )
        setting = await user.get_chat_setting()
        assert (setting.chat_available_group, setting.min_follower_minute) == ("FOLLOWER", 0), setting
        await user.set_chat_setting(
            chat_available_condition="NONE",
            chat_available_group="ALL",
            min_follower_minute=0,
            allow_subscriber_in_follower_mode=False,
        )
    with suite.step("get_stream_key gives the same key twice"):
        key = await user.get_stream_key()
        assert key and key == await user.get_stream_key()
    with suite.step("send_announcement is taken"):
        await user.send_announcement("공지 📌")


async def restrict(suite, user, events):
    """A temporarily restricted viewer."""
    chats, viewer = f"channels/{STREAMER['channelId']}/chats", VIEWER["channelId"]
    with suite.step("an activity restriction keeps a viewer out of the chat until it is released"):
        await user.add_restrict_channel(viewer)
        refused = platform(chats, {"senderChannelId": viewer, "message": "막힘"}, expect=403)
        assert "활동제한" in refused["message"], refused
        await user.remove_restrict_channel(viewer)
        platform(chats, {"senderChannelId": viewer, "message": "풀림"})
        chat = await events.next("chat")
        assert chat.content == "풀림", chat
    with suite.step("a temporary restriction does so for a minute"):
        await user.add_temporary_restrict(viewer, chat.chat_channel)
        refused = platform(chats, {"senderChannelId": viewer, "message": "막힘"}, expect=403)
        assert "임시제한" in refused["message"], refused
        await user.remove_temporary_restrict(viewer, chat.chat_channel)


async def connect(suite, user, events, transport):
    """The session, subscribed to everything."""
    with suite.step(f"connect subscribes to everything over {transport}"):
        connecting = user.connect(UserPermission.all(), addition_connect=True)
        assert await asyncio.wait_for(connecting, DEADLINE_SECONDS)
        expected = "websocket" if transport == "upgrade" else "polling"
        assert user._gateway.current_transport == expected, user._gateway.current_transport
        kinds = {(await events.next("permission_invoked")).event_type for _ in range(3)}
        assert kinds == {"CHAT", "DONATION", "SUBSCRIPTION"}, kinds


async def receive(suite, user, events):
    """One event of each kind."""
    channel, viewer = f"channels/{STREAMER['channelId']}", VIEWER["channelId"]
    with suite.step("a message sent with send_message comes back through on_chat unchanged"):
        assert (await user.send_message(TEXT)).id
        chat = await events.next("chat")
        assert (chat.content, chat.user_id, chat.profile.nickname) == (TEXT, user.channel_id, user.channel_name)
    with suite.step("a viewer's message arrives"):
        platform(f"{channel}/chats", {"senderChannelId": viewer, "message": "시청자 🙌"})
        chat = await events.next("chat")
        assert (chat.content, chat.user_id) == ("시청자 🙌", viewer)
    with suite.step("a donation arrives"):
        donation = {"donationType": "CHAT", "payAmount": "5000", "donationText": "후원 💸", "donatorChannelId": viewer}
        platform(f"{channel}/donations", donation)
        got = await events.next("donation")
        assert (got.pay_amount, got.donation_text, got.donator_id) == (5000, "후원 💸", viewer)
    with suite.step("a subscription arrives"):
        subscription = {"subscriberChannelId": viewer, "tierNo": 1, "tierName": "객석 🎫", "month": 2}
        platform(f"{channel}/subscriptions", subscription)
        got = await events.next("subscription")
        assert (got.subscriber_id, got.tier_no, got.tier_name, got.month) == (viewer, 1, "객석 🎫", 2)
    with suite.step("no handler raised"):
        assert events.queues["error"].empty(), events.queues["error"].get_nowait()


async def goodbye(suite, user):
    """Disconnect and revoke."""
    with suite.step("disconnect"):
        session = user._gateway.session  # chzzkpy leaves it open
        await asyncio.wait_for(user.disconnect(), DEADLINE_SECONDS)
        await session.close()
    with suite.step("revoke takes the token away"):
        await user.revoke()
        try:
            await user.fetch_self()
        except UnauthorizedException as refused:
            assert "INVALID_TOKEN" in str(refused), refused
        else:
            raise AssertionError("the revoked token still works")


async def main(suite, transport):
    if BASE != BUILT_IN:
        point_at_stagedoor(transport)
    client = Client(DEMO["clientId"], DEMO["clientSecret"])
    events = Events(client)
    user = await tokens_and_reads(suite, client)
    await connect(suite, user, events, transport)
    await receive(suite, user, events)
    await settings(suite, user)
    await restrict(suite, user, events)
    await goodbye(suite, user)
    await client.http.close()


if __name__ == "__main__":
    suite = Suite()
    try:
        asyncio.run(main(suite, sys.argv[1]))
    except StepFailed:
        pass
    sys.exit(suite.finish())
