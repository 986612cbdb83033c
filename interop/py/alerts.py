"""The rules and the dashboard of `deploy/`, in a real Prometheus that scrapes the server.

promtool checks the rules, runs the cases of alerts.test.yaml, and checks the text of /metrics. Prometheus then loads the rules,
scrapes the server, and answers every expression of the dashboard.

Both programs are those of Debian's package, in .cache/prometheus (`./test tools`).
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from harness import BASE, PLATFORM, WORLD, ReservedPort, StepFailed, Suite, fetch, ready_token, as_user, call

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / ".cache" / "prometheus" / "usr" / "bin"
RULES = ROOT / "deploy" / "prometheus" / "stagedoor.rules.yaml"
CASES = Path(__file__).with_name("alerts.test.yaml")
DASHBOARD = ROOT / "deploy" / "grafana" / "stagedoor.json"
DEADLINE_SECONDS = 30
# A rate needs two scrapes in its window.
SCRAPE_SECONDS = 1


def promtool(*arguments, stdin=None):
    done = subprocess.run([PROGRAMS / "promtool", *map(str, arguments)], input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    return done.stdout.decode()


def metrics():
    answer = fetch("GET", f"{PLATFORM.removesuffix('/platform/v1')}/metrics", as_user(WORLD["operatorKey"]))
    assert answer.status == 200, answer.status
    return answer.body


class Prometheus:
    """A Prometheus with the rules of `deploy/`, until the end of the block."""

    def __init__(self, folder):
        self.folder, self.port = Path(folder), ReservedPort()

    def __enter__(self):
        config = self.folder / "prometheus.yaml"
        config.write_text(json.dumps({
            "global": {"scrape_interval": f"{SCRAPE_SECONDS}s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [{
                "job_name": "stagedoor",
                "authorization": {"type": "Bearer", "credentials": WORLD["operatorKey"]},
                "static_configs": [{"targets": [urlsplit(PLATFORM).netloc]}],
            }],
        }), encoding="utf-8")
        self.log = open(self.folder / "log", "w", encoding="utf-8")
        self.process = subprocess.Popen(
            [PROGRAMS / "prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.folder / 'data'}",
             f"--web.listen-address=127.0.0.1:{self.port.number}"], stdout=self.log, stderr=self.log)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(DEADLINE_SECONDS)
        self.log.close()

    def get(self, path, **query):
        answer = fetch("GET", f"http://127.0.0.1:{self.port.number}/api/v1/{path}?{urlencode(query)}")
        content = answer.json()
        assert content["status"] == "success", f"{query}: {content}"
        return content["data"]

    def value(self, expression):
        return self.get("query", query=expression)["result"]

    def wait_for(self, expression, holds):
        deadline = time.monotonic() + DEADLINE_SECONDS
        found = None
        while time.monotonic() < deadline:
            try:
                found = self.value(expression)
                if holds(found):
                    return found
            except (OSError, AssertionError, ValueError) as error:
                found = error
            time.sleep(0.2)
        raise AssertionError(f"{expression}: {found}; {(self.folder / 'log').read_text(encoding='utf-8')[-2000:]}")


def main(suite):
    with suite.step("promtool accepts the rules, their cases and the text of /metrics"):
        promtool("check", "rules", RULES)
        promtool("test", "rules", CASES)
        promtool("check", "metrics", stdin=metrics())
    with tempfile.TemporaryDirectory() as folder, Prometheus(folder) as prometheus:
        with suite.step("Prometheus scrapes the server"):
            prometheus.wait_for('up{job="stagedoor"}', lambda found: found and found[0]["value"][1] == "1")
            call("GET", f"{BASE}/open/v1/users/me", as_user(ready_token()))
            counted = 'sum(stagedoor_http_requests_total{route="/open/v1/users/me"})'
            prometheus.wait_for(counted, lambda found: found and float(found[0]["value"][1]) >= 1)
        with suite.step("every rule is loaded and evaluates"):
            def states():
                return [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
            deadline = time.monotonic() + DEADLINE_SECONDS
            while any(rule["health"] == "unknown" for rule in states()) and time.monotonic() < deadline:
                time.sleep(0.2)
            bad = [rule["name"] for rule in states() if rule["health"] != "ok"]
            assert states() and not bad, bad
            firing = [rule["name"] for rule in states() if rule["state"] == "firing"]
            assert not firing, f"a healthy server makes no alert: {firing}"
        with suite.step("every expression of the dashboard is answered, most of them with series"):
            dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
            # Grafana puts the values in before it asks. No node is chosen.
            [every_node] = [one["allValue"] for one in dashboard["templating"]["list"] if one["name"] == "node"]
            expressions = [target["expr"].replace("$node", every_node)
                           for panel in dashboard["panels"] for target in panel.get("targets", [])]
            assert not any("$" in expression for expression in expressions), expressions
            answered = sum(bool(prometheus.value(expression)) for expression in expressions)
            assert len(expressions) > 40 and answered > len(expressions) / 2, f"{answered} of {len(expressions)}"


if __name__ == "__main__":
    os.chdir(ROOT)
    suite = Suite()
    try:
        main(suite)
    except StepFailed:
        pass
    sys.exit(suite.finish())
