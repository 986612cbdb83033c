"""The seeded world that `stagedoor dev --json` printed, HTTP calls to it, the sign-in, and TAP output.

Standard library only, so that a suite which needs no client package runs on the system's Python.
"""

import http.client
import http.cookies
import json
import os
import socket
import time
import traceback
import uuid
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

REQUEST_DEADLINE_SECONDS = 15
HOPS = 10  # maximum number of pages and redirects of a sign-in

with open(os.environ["STAGEDOOR_WORLD"], encoding="utf-8") as _file:
    WORLD = json.load(_file)
BASE = WORLD["baseUrl"].rstrip("/")
PLATFORM = WORLD["platformUrl"].rstrip("/").removesuffix("/platform/v1") + "/platform/v1"
DEMO = next(each for each in WORLD["applications"] if each["name"] == "demo")
STREAMER, VIEWER = WORLD["users"][0], WORLD["users"][-1]


class Answer:
    """An HTTP answer, read to its end."""

    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def text(self):
        return self.body.decode()

    def json(self):
        return json.loads(self.body)


def fetch(method, url, headers=None, body=None):
    """One request on a new connection. Redirects are not followed."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.netloc, timeout=REQUEST_DEADLINE_SECONDS)
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, body=body, headers=headers or {})
        return Answer(connection.getresponse())
    finally:
        connection.close()


def call(method, url, headers=None, body=None, expect=200):
    """A JSON call that must succeed; returns the envelope's `content`. With another `expect`, one that must be
    refused with that status; returns the envelope."""
    headers = {"Content-Type": "application/json", **(headers or {})}
    answer = fetch(method, url, headers, None if body is None else json.dumps(body).encode())
    where = f"{method} {urlsplit(url).path} answered {answer.status} {answer.text()}"
    assert answer.status == expect, where
    envelope = answer.json()
    if expect != 200:
        assert set(envelope) == {"code", "message"} and envelope["code"] == expect, where
        return envelope
    assert set(envelope) == {"code", "message", "content"} and envelope["code"] == 200, where
    return envelope["content"]


class ReservedPort:
    """A free port of loopback. While this object lives, at most until the end of its block, the system gives the port only
    to sockets that name it."""

    def __init__(self):
        self.bound = socket.socket()
        # With this option, sockets that do not listen share an address with one that does.
        self.bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.bound.bind(("127.0.0.1", 0))
        self.number = self.bound.getsockname()[1]

    def __enter__(self):
        return self.number

    def __exit__(self, *_):
        self.bound.close()


def as_user(token):
    """The headers of a user's call."""
    return {"Authorization": f"Bearer {token}"}


def ready_token(user=STREAMER, application=DEMO):
    """The access token that the seed made for `user`."""
    return user["tokens"][application["clientId"]]["accessToken"]


def platform(path, body, expect=200, method="POST"):
    """A call of the platform API: a viewer's chat, a donation, a subscription; or a PUT."""
    headers = {"Authorization": f"Bearer {WORLD['operatorKey']}", "Idempotency-Key": str(uuid.uuid4())}
    return call(method, f"{PLATFORM}/{path}", headers, body, expect)


def report(happenings):
    """Several events in one bulk call, in order. Each must be accepted."""
    headers = {"Authorization": f"Bearer {WORLD['operatorKey']}", "Content-Type": "application/x-ndjson"}
    lines = "\n".join(map(json.dumps, happenings)).encode()
    answer = fetch("POST", f"{PLATFORM}/events", headers, lines)
    assert answer.status == 200 and answer.json()["content"]["refusedCount"] == 0, answer.text()


class Forms(HTMLParser):
    """Every form of a page, with its fields and submit buttons."""

    def __init__(self, html):
        super().__init__()
        self.forms = []
        self._open = None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag == "form":
            self._open = {"action": "", "method": "get", **attributes, "fields": [], "buttons": []}
            self.forms.append(self._open)
        elif self._open is not None and tag in ("input", "button"):
            kind = attributes.get("type") or ("submit" if tag == "button" else "text")
            self._open["buttons" if kind == "submit" else "fields"].append({"value": "", **attributes})

    def handle_endtag(self, tag):
        if tag == "form":
            self._open = None


class Browser:
    """Follows forms with cookies, as a browser without JavaScript would."""

    def __init__(self):
        self.cookies = http.cookies.SimpleCookie()

    def open(self, url, fields=None):
        headers = {"Accept": "text/html"}
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{each.key}={each.coded_value}" for each in self.cookies.values())
        body = None
        if fields is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            body = urlencode(fields)
        answer = fetch("GET" if fields is None else "POST", url, headers, body)
        for cookie in answer.headers.get_all("Set-Cookie", []):
            self._keep(cookie)
        return answer

    def _keep(self, cookie):
        self.cookies.load(cookie)
        for name in [name for name, each in self.cookies.items() if each["max-age"] == "0"]:
            del self.cookies[name]


def _submission(page, user, decision):
    """The form of this page to send, and its values."""
    forms = Forms(page.text()).forms
    filled = {"login": user["login"], "password": user["password"]}
    for form in forms:
        fields = [(each["name"], each["value"]) for each in form["fields"] if each.get("name")]
        if any(b.get("name") == "decision" and b["value"] == decision for b in form["buttons"]):
            return form, [*fields, ("decision", decision)]
        if filled.keys() <= {name for name, _ in fields}:
            return form, [(name, filled.get(name, value)) for name, value in fields]
    raise AssertionError(f"a page with neither a consent nor a sign-in form:\n{page.text()}")


def sign_in(state, user=STREAMER, application=DEMO, decision="allow"):
    """Signs `user` in for `application`; returns the query of the redirect to the application."""
    redirect = application["redirectUris"][0]
    browser = Browser()
    query = urlencode({"clientId": application["clientId"], "redirectUri": redirect, "state": state})
    url = f"{WORLD['authUrl'].rstrip('/')}/account-interlock?{query}"
    page = browser.open(url)
    for _ in range(HOPS):
        location = page.headers.get("Location")
        if location and location.startswith(redirect):
            return dict(parse_qsl(urlsplit(location).query, strict_parsing=True))
        if location:
            url = urljoin(url, location)
            page = browser.open(url)
            continue
        assert page.status == 200, f"{urlsplit(url).path} answered {page.status}:\n{page.text()}"
        form, fields = _submission(page, user, decision)
        assert form["method"].lower() == "post", "credentials and consent must not travel in an address"
        url = urljoin(url, form["action"])
        page = browser.open(url, fields)
    raise AssertionError(f"no redirect to {redirect} after {HOPS} pages")


class Suite:
    """TAP output: `with suite.step("title"):` for each step, `suite.finish()` for the plan and the exit code."""

    def __init__(self):
        self.count = 0
        self.failed = False

    def step(self, title):
        self.count += 1
        return _Step(self, self.count, title)

    def finish(self):
        print(f"1..{self.count}", flush=True)
        return 1 if self.failed or self.count == 0 else 0


class StepFailed(Exception):
    """Ends the suite. Later steps would only fail because of this one."""


class _Step:
    def __init__(self, suite, number, title):
        self.suite, self.line = suite, f"ok {number} - {title}"

    def __enter__(self):
        self.begun = time.monotonic()
        return self

    def __exit__(self, kind, error, trace):
        line = f"{self.line} # {time.monotonic() - self.begun:.1f} s"
        if error is None:
            print(line, flush=True)
            return
        self.suite.failed = True
        print(f"not {line}")
        for line in "".join(traceback.format_exception(kind, error, trace)).splitlines():
            print(f"  # {line}", flush=True)
        raise StepFailed(self.line) from error
