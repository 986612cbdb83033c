"""`stagedoor doctor` with bots: good ones, bad ones and published clients.

    python3 doctor.py good|bad|published

A good bot passes every check. A bad bot fails exactly the checks of its misdeed. A published client has the verdicts that
are recorded here; they say what its library leaves to the bot.
"""

import concurrent.futures
import json
import os
import subprocess
import sys
from pathlib import Path

from harness import ReservedPort, StepFailed, Suite

ROOT = Path(__file__).resolve().parent.parent.parent
BINARY = Path(os.environ.get("STAGEDOOR_BIN", ROOT / "target" / "release" / "stagedoor")).absolute()
NODE_MODULES = ROOT / "interop" / "js" / "node_modules"
PYTHON = ROOT / ".cache" / "venv" / "interop" / "bin" / "python"
BOT = [sys.executable, str(ROOT / "interop" / "py" / "doctor_bot.py")]

DOCTOR_SECONDS = 200
TOGETHER = 4  # doctors at the same time
# Most of the time is waiting: for pings, pauses, and bots that do not come back.
FAST = ["--fast-pings", "--jobs", "8"]
AT_ONCE = ["--fast-pings", "--jobs", "16"]

RECONNECTING = {
    "socket-closed", "connection-lost", "silent-socket", "late-connected", "doubled-system", "restart", "subway",
    "parallel-expiry",
}  # fmt: skip
# A bot may stay away there. If it comes back, it has to do it well.
RETURNING = {"evicted", "own-mistake"}

# The checks that each misdeed of doctor_bot.py fails.
EVERY_CHECK = "*"
BAD = {
    "accept-bad-signature": {"webhook"},
    "accept-old": {"webhook"},
    "answer-twice": {"doubled-event", "doubled-claim"},
    "bad-path": {"clean-run"},
    "crash": RECONNECTING | {"scope-lost"},
    "give-up": {"server-errors", "restart"},
    "hammer": {"token-expiry", "parallel-expiry", "consent-withdrawn", "scope-lost"},
    "hang": RECONNECTING | {"scope-lost", "consent-withdrawn"},
    "ignore-retry-after": {"rate-limit"},
    "no-backoff": {"server-errors"},
    "no-reconnect": RECONNECTING | {"scope-lost"},
    "no-refresh": {"token-expiry", "parallel-expiry"},
    "no-resubscribe": RECONNECTING - {"parallel-expiry"} | RETURNING | {"scope-lost"},
    "not-listening": {"webhook", "doubled-claim"},
    "old-token": {"token-expiry", "parallel-expiry"},
    "refresh-each": {"parallel-expiry"},
    "refuse-good": {"webhook", "doubled-claim"},
    "reuse-refresh": {"refresh-lost", "consent-withdrawn"},
    "reuse-url": RECONNECTING - {"restart", "parallel-expiry"} | RETURNING,
    "rush": RETURNING | {"socket-closed"},
    "silent": EVERY_CHECK,
    "subscribe-early": {"late-connected", "doubled-system"},
    "subscribe-twice": {"doubled-system"},
    "wait-forever": {"silent-socket", "subway"},
}

# These checks end the session after the bot's call, so this bot may have ended when they look at it.
MAY_FAIL = {"crash": {"rate-limit", "server-errors"}}

# The verdicts of published clients, on the profile `observed`.
COMMON = {
    "clean-run": "passed", "storm": "passed", "webhook": "notApplicable", "doubled-claim": "notApplicable",
    "doubled-event": "handled-twice",  # events have no id in the library
}  # fmt: skip
BUZZK = COMMON | {
    "token-expiry": "did-not-refresh",  # a session has the access token that it began with
    "parallel-expiry": "did-not-refresh",
    "refresh-lost": "notApplicable",
    "consent-withdrawn": "passed",
    "scope-lost": "passed",
    "rate-limit": "passed",
    "server-errors": "gave-up",  # a session URL that is refused once ends the reconnection
    # It connects again without a pause.
    "socket-closed": "did-not-back-off",
    "evicted": "did-not-back-off",
    "own-mistake": "did-not-back-off",
    "connection-lost": "passed",
    "silent-socket": "passed",
    "subway": "passed",
    "late-connected": "passed",
    "doubled-system": "subscribed-twice",
    "restart": "did-not-reconnect",
}
CHZZKPY = COMMON | {
    "token-expiry": "did-not-refresh",  # it refreshes by its own clock, and not after 401
    "refresh-lost": "notApplicable",
    "consent-withdrawn": "passed",
    "rate-limit": "gave-up",
    "server-errors": "gave-up",
    "evicted": "passed",
    "own-mistake": "passed",
    # A session that ends is not opened again.
    "scope-lost": "ended",
    "socket-closed": "did-not-reconnect",
    "connection-lost": "did-not-reconnect",
    "silent-socket": "did-not-reconnect",
    "subway": "did-not-reconnect",
    "late-connected": "did-not-reconnect",
    "parallel-expiry": "did-not-reconnect",
    "doubled-system": "did-not-reconnect",
    "restart": "did-not-reconnect",
}


class Verdicts(dict):
    """The verdict of each check: passed, notApplicable, or the first misdeed. `failed` has all about those that failed."""

    def __init__(self, report):
        checks = report["checks"]
        super().__init__(
            (check["check"], check["findings"][0]["misdeed"] if check["findings"] else check["verdict"])
            for check in checks
        )
        self.failed = [check for check in checks if check["findings"]]


def doctor_with_receiver(command, *arguments, **options):
    """A doctor that also checks the bot's receiver of webhooks."""
    with ReservedPort() as port:
        return doctor(command, "--webhook", f"http://127.0.0.1:{port}/hook", *arguments, **options)


def doctor(command, *arguments, fast=FAST, **environment):
    done = subprocess.run(
        [BINARY, "doctor", "--json", *fast, *arguments, "--", *map(str, command)],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=DOCTOR_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), f"exit code {done.returncode}: {done.stderr}"
    report = json.loads(done.stdout)
    assert report["passed"] == (done.returncode == 0), report["verdict"]
    return Verdicts(report)


def failing(verdicts):
    return {check for check, verdict in verdicts.items() if verdict not in ("passed", "notApplicable")}


def node(program, client=None):
    environment = {"NODE_PATH": str(NODE_MODULES)}
    return ["node", ROOT / program], environment | ({"SOCKET_IO_CLIENT": client} if client else {})


def all_of(suite, runs):
    """Runs several doctors, and checks the verdicts of each in a step: name, function, check."""
    with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
        begun = [(title, pool.submit(run), check) for title, run, check in runs]
        for title, verdicts, check in begun:
            with suite.step(title):
                check(verdicts.result())


def passes(verdicts):
    assert set(verdicts.values()) == {"passed"}, json.dumps(verdicts.failed or verdicts, ensure_ascii=False)


def good(suite):
    def run(client):
        command, environment = node("examples/bot/bot.js", client)
        return lambda: doctor_with_receiver(command, **environment)

    clients = ["socket.io-client-2.0.3", "socket.io-client-2.5.0"]
    runs = [(f"examples/bot passes every check with {client}", run(client), passes) for client in clients]
    all_of(suite, [*runs, ("doctor_bot.py passes every check", lambda: doctor_with_receiver(BOT), passes)])


def bad(suite):
    def run(misdeed):
        return lambda: doctor_with_receiver([*BOT, misdeed], "--timeout", "12")

    def fails(name):
        expected = BAD[name]

        def check(verdicts):
            found = failing(verdicts) - MAY_FAIL.get(name, set())
            every = set(verdicts) - {"webhook", "doubled-claim"}  # the receiver of a silent bot works
            assert found == (every if expected is EVERY_CHECK else expected), verdicts

        return check

    all_of(suite, [(f"{name} fails the checks of its misdeed", run(name), fails(name)) for name in BAD])


def published(suite):
    def is_as_recorded(expected):
        def check(verdicts):
            assert verdicts == expected, verdicts

        return check

    command, environment = node("interop/js/doctor_buzzk.js")
    buzzk = lambda: doctor(command, "--profile", "observed", "--timeout", "10", fast=AT_ONCE, **environment)
    bot = [PYTHON, ROOT / "interop" / "py" / "doctor_chzzkpy.py"]
    chzzkpy = lambda: doctor(bot, "--profile", "observed", "--timeout", "10", fast=AT_ONCE)
    all_of(
        suite,
        [
            ("buzzk 2.3.2 has the recorded verdicts", buzzk, is_as_recorded(BUZZK)),
            ("chzzkpy 2.2.0 has the recorded verdicts", chzzkpy, is_as_recorded(CHZZKPY)),
        ],
    )


if __name__ == "__main__":
    suite = Suite()
    try:
        {"good": good, "bad": bad, "published": published}[sys.argv[1]](suite)
    except StepFailed:
        pass
    sys.exit(suite.finish())
