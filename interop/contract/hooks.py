"""What schemathesis could not know: ids and secrets of the seeded world. Every second request gets them, so that
answers of both kinds are seen; nothing that the run itself needs can be revoked with them.
"""

import atexit
import json
import os
from collections import defaultdict
from pathlib import Path

import schemathesis

SCRATCH = json.loads(os.environ["STAGEDOOR_SCRATCH"])
STREAMER, VIEWER = SCRATCH["streamer"], SCRATCH["viewer"]

# By the name of the parameter or field. The application that runs the tests is never among them.
KNOWN = {
    "clientId": SCRATCH["id"],
    "clientSecret": SCRATCH["secret"],
    "channelId": STREAMER,
    "managerChannelId": VIEWER,
    "followerChannelId": VIEWER,
    "senderChannelId": STREAMER,  # who is exempt from the settings and restrictions that other operations make
    "donatorChannelId": VIEWER,
    "subscriberChannelId": VIEWER,
    "targetChannelId": VIEWER,
    "chatChannelId": f"chat-{STREAMER}",
    "organizationId": "sandbox-games",
    "categoryId": "star-voyage",
    "redirectUri": SCRATCH["redirectUri"],
    "state": "contract",
}
# These would take away what the run stands on: a verification, an application's addresses, a consent.
SPARED = {
    ("PUT", "/platform/v1/organizations/{organizationId}"): "organizationId",
    ("PUT", "/platform/v1/applications/{clientId}"): "clientId",
    ("DELETE", "/platform/v1/consents/{clientId}/{channelId}"): "clientId",
}
LINES = [
    {"kind": "chat", "channelId": STREAMER, "senderChannelId": VIEWER, "message": "안녕"},
    {"kind": "donation", "channelId": STREAMER, "donationType": "CHAT", "payAmount": "1000"},
    {"kind": "subscription", "channelId": STREAMER, "subscriberChannelId": VIEWER, "tierNo": 3, "month": 1},
]
LONGEST_WAIT_SECONDS = 25  # of a listener's call
CALLS = defaultdict(int)
ANSWERS = defaultdict(lambda: defaultdict(int))


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    return value if isinstance(value, bytes) else str(value).encode(errors="surrogatepass")


@schemathesis.hook
def before_call(context, case, kwargs):
    operation = (case.method.upper(), case.operation.path)
    CALLS[operation] += 1
    if isinstance(case.body, dict) and case.body.get("waitSeconds") in range(2, LONGEST_WAIT_SECONDS + 1):
        case.body["waitSeconds"] = 0  # allowed, but nobody waits that long for each of a thousand tries
    if CALLS[operation] % 2 == 0:
        return
    if operation == ("POST", "/platform/v1/events"):
        case.body = "\n".join(json.dumps(line) for line in LINES)
    if operation == ("POST", "/auth/v1/token") and isinstance(case.body, dict):
        case.body.update({name: value for name, value in SCRATCH["refresh"].items() if name in case.body})
        return
    known = {name: value for name, value in KNOWN.items() if SPARED.get(operation) != name}
    for part in (case.path_parameters, case.query, case.body):
        if isinstance(part, dict):
            part.update({name: known[name] for name in part.keys() & known.keys()})


@schemathesis.hook
def after_call(context, case, response):
    if case.method.upper() != case.operation.method.upper():
        return  # a method that is not documented, tried on purpose
    ANSWERS[case.operation.label][response.status_code] += 1


@atexit.register
def tell():
    """For the suite's summary."""
    Path("answers.json").write_text(json.dumps(ANSWERS), encoding="utf-8")
