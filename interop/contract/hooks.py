"""Values that schemathesis cannot generate: ids and secrets of the seeded world. Every second request gets them, so that
answers of both kinds are seen; nothing that the run itself needs can be revoked with them.
"""

import atexit
import json
import os
import re
from collections import defaultdict
from pathlib import Path

import schemathesis
from schemathesis.core.failures import Failure
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

SCRATCH = json.loads(os.environ["STAGEDOOR_SCRATCH"])
STREAMER, VIEWER = SCRATCH["streamer"], SCRATCH["viewer"]

# By the name of the parameter or field. The application that runs the tests is never among them.
KNOWN = {
    "clientId": SCRATCH["id"],
    "clientSecret": SCRATCH["secret"],
    "channelId": STREAMER,
    "managerChannelId": VIEWER,
    "followerChannelId": VIEWER,
    "senderChannelId": STREAMER,  # the streamer is exempt from the settings and restrictions that other operations make
    "donatorChannelId": VIEWER,
    "subscriberChannelId": VIEWER,
    "targetChannelId": VIEWER,
    "chatChannelId": f"chat-{STREAMER}",
    "organizationId": "sandbox-games",
    "categoryId": "star-voyage",
    "redirectUri": SCRATCH["redirectUri"],
}
# These would delete data that the run needs: a verification, an application and its addresses, a consent, a person.
SPARED = {
    ("PUT", "/platform/v1/organizations/{organizationId}"): "organizationId",
    ("PUT", "/platform/v1/applications/{clientId}"): "clientId",
    ("DELETE", "/platform/v1/consents/{clientId}/{channelId}"): "clientId",
    ("DELETE", "/platform/v1/applications/{clientId}"): "clientId",
    ("PUT", "/platform/v1/applications/{clientId}/disabled"): "clientId",
    ("DELETE", "/platform/v1/channels/{channelId}"): "channelId",
    ("PUT", "/platform/v1/channels/{channelId}/bar"): "channelId",
    ("PUT", "/platform/v1/organizations/{organizationId}/disabled"): "organizationId",
}
LINES = [
    {"kind": "chat", "channelId": STREAMER, "senderChannelId": VIEWER, "message": "안녕"},
    {"kind": "donation", "channelId": STREAMER, "donationType": "CHAT", "payAmount": "1000"},
    {"kind": "subscription", "channelId": STREAMER, "subscriberChannelId": VIEWER, "tierNo": 3, "month": 1},
]
LONGEST_WAIT_SECONDS = 25  # of a listener's call
# Reasons for which a request that its schema allows may still be answered with 400: the value of `Stagedoor-Reason`,
# and why no schema can express it. Every other request that a schema allows must be accepted.
EXCUSED = [
    (re.compile(reason), why)
    for reason, why in (
        (r"^invalid; .*rule=known-(category|campaign|reward|channel|organization)$", "it has to exist"),
        (r"^invalid; .*rule=cursor$", "a cursor comes from an earlier page"),
        (r"^invalid; .*rule=bytes$", "a schema counts characters, not bytes"),
        (r"^invalid; .*rule=together$", "null is absent, and `dependentRequired` does not know that"),
        (r"^invalid; .*rule=(taken|claimed)$", "it is had once"),
        (r"^invalid; .*rule=last-admin$", "an organization keeps an admin"),
        (r"^invalid; field=decision; rule=pending$", "a request is decided once"),
        (r"^invalid; field=(organizationId|clientId|scopes); rule=required$", "it depends on the kind of the request"),
        (r"^invalid; .*rule=in-use$", "what others hang on is not deleted"),
        (r"^invalid; .*rule=being-deleted$", "its deletion takes a moment"),
        (r"^invalid; .*rule=other-channel$", "a schema cannot compare the path with the body"),
        (r"^invalid; field=endDate; rule=after$", "a schema cannot compare dates"),
        (r"^invalid; .*rule=not-together$", "parameters cannot exclude each other"),
        (r"^invalid; field=tags; rule=tag$", "letters of all scripts are not spelled alike in all languages"),
        (r"^invalid; field=redirectUris; rule=redirect-address$", "ports and IPv6 addresses are numbers"),
        (r"^invalid; field=(homepageUrl|termsUrl|privacyUrl); rule=https-url$", "ports and IPv6 addresses are numbers"),
        (r"^invalid; field=email; rule=email$", "no pattern spells an e-mail address"),
        (r"^invalid; field=logo; rule=picture$", "a schema does not look into Base64"),
        (r"^invalid; field=url; rule=webhook-address$", "it depends on the address: docs/webhooks.md"),
        (r"^invalid; field=categoryType; rule=one-of$", "it is the type of the category"),
        (r"^invalid; .*rule=(no-other-pending-secret|not-the-signing-secret|without-address|enabled)$", "a state of the webhook"),
        (r"^restriction-rule;", "it depends on roles and on who is restricted"),
        (r"^not-the-streamer$", "it is the caller's own chat"),
        (r"^(code-unknown|code-used|code-expired|state-differs)$", "a code comes from a sign-in"),
        (r"^(client-unknown|redirect-unregistered|form-expired|sign-in page)$", "applications are registered, forms are of the page"),
        (r"^invalid; field=form$", "a field that no schema names may hold a NUL, and the whole form is refused"),
        (r"^invalid; field=rewardId; rule=once$", "a schema compares whole items"),
    )
]
TIMES_EXCUSED = defaultdict(int)
CALLS = defaultdict(int)
ANSWERS = defaultdict(lambda: defaultdict(int))


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    return value if isinstance(value, bytes) else str(value).encode(errors="surrogatepass")


def reason_of(case, response):
    """The reason of a 400. The pages of the sign-in have it as text."""
    if response.status_code != 400:
        return ""
    return " ".join(response.headers.get("stagedoor-reason", ["sign-in page" if case.path == "/account-interlock" else ""]))


@schemathesis.check
def wrong_data_is_refused(context, response, case):
    """The check of schemathesis, except for the bulk call, which refuses single lines."""
    return None if case.operation.label == "POST /platform/v1/events" else negative_data_rejection(context, response, case)


@schemathesis.check
def valid_data_is_accepted(context, response, case):
    """The check of schemathesis, except for the excused reasons."""
    try:
        return positive_data_acceptance(context, response, case)
    except Failure:
        why = next((why for pattern, why in EXCUSED if pattern.search(reason_of(case, response))), None)
        if why is None:
            raise
        TIMES_EXCUSED[why] += 1


@schemathesis.hook
def map_body(context, body):
    """An integer of a schema may be written `20.0`, which few programs do and the service refuses. Up to 2^53."""
    if isinstance(body, dict):
        return {name: map_body(context, value) for name, value in body.items()}
    if isinstance(body, list):
        return [map_body(context, value) for value in body]
    return int(body) if isinstance(body, float) and body.is_integer() and abs(body) <= 2**53 else body


@schemathesis.hook
def before_call(context, case, kwargs):
    if isinstance(case.body, dict) and case.body.get("waitSeconds") in range(2, LONGEST_WAIT_SECONDS + 1):
        case.body["waitSeconds"] = 0  # a longer wait is allowed, but a thousand tries would take too long
    if case.meta is not None and case.meta.generation.mode.is_negative:
        return  # a wrong value must stay wrong
    operation = (case.method.upper(), case.operation.path)
    CALLS[operation] += 1
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
        return  # an undocumented method, tried on purpose
    ANSWERS[case.operation.label][response.status_code] += 1


@atexit.register
def tell():
    """For the suite's summary."""
    Path("excused.json").write_text(json.dumps(TIMES_EXCUSED), encoding="utf-8")
    Path("answers.json").write_text(json.dumps(ANSWERS), encoding="utf-8")
