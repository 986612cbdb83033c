"""The documents against the official checkers of their formats and the rules that linters recommend, then the server
against its own OpenAPI document: schemathesis makes requests from it, right and wrong ones, and looks for a 500, a status
or a content type that is not documented, an answer that its schema forbids, a request that is taken although its schema
forbids it, and one that is refused although its schema allows it.

    python contract.py            STAGEDOOR_WORLD names the file with the first line of `stagedoor dev --json`
"""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "py"))

from harness import BASE, STREAMER, VIEWER, WORLD, StepFailed, Suite, call, fetch, ready_token  # noqa: E402
from jsonschema import Draft7Validator  # noqa: E402
from openapi_spec_validator import OpenAPIV31SpecValidator, validate  # noqa: E402

EXAMPLES = 25  # for each operation
SEED = "20260718"  # makes failures reproducible
MOST_OUTPUT_LINES = 200
CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
    "wrong_data_is_refused", "valid_data_is_accepted",
)  # fmt: skip
SCHEMA_OF_ASYNCAPI = HERE / "node_modules" / "@asyncapi" / "specs" / "schemas" / "3.1.0.json"
SCRATCH = "contract-scratch"  # an application that may be changed and revoked at will

# The generated requests check the server. Checks of the quality of the test suite itself are off.
CONFIG = """
[auth.openapi.AccessToken]
bearer = "${STAGEDOOR_ACCESS_TOKEN}"
[auth.openapi.OperatorKey]
bearer = "${STAGEDOOR_OPERATOR_KEY}"
[auth.openapi.ClientId]
api_key = "${STAGEDOOR_CLIENT_ID}"
[auth.openapi.ClientSecret]
api_key = "${STAGEDOOR_CLIENT_SECRET}"
"""


def document(name):
    answer = fetch("GET", f"{BASE}/{name}")
    assert answer.status == 200, f"/{name} answered {answer.status}"
    return answer.json()


def openapi_is_well_formed():
    validate(document("openapi.json"), cls=OpenAPIV31SpecValidator)


def asyncapi_is_well_formed():
    schema = json.loads(SCHEMA_OF_ASYNCAPI.read_text(encoding="utf-8"))
    schema["$schema"] = "http://json-schema.org/draft-07/schema#"
    asyncapi = document("asyncapi.json")
    errors = [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:300]}" for e in Draft7Validator(schema).iter_errors(asyncapi)]
    assert not errors, "\n".join(errors)
    _follow_references(asyncapi, asyncapi)


def _follow_references(whole, part):
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            found = whole
            for key in part["$ref"].removeprefix("#/").split("/"):
                found = found[key]
        for value in part.values():
            _follow_references(whole, value)
    elif isinstance(part, list):
        for value in part:
            _follow_references(whole, value)


def no_linter_finds_anything():
    folder = Path(os.environ["STAGEDOOR_WORLD"]).parent
    names = ("openapi.json", "asyncapi.json")
    for name in names:
        (folder / name).write_text(json.dumps(document(name)), encoding="utf-8")
    command = ["node", str(HERE / "lint.js"), *(str(folder / name) for name in names)]
    run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    print("\n".join(f"  # {line}" for line in (run.stdout + run.stderr).splitlines()), flush=True)
    assert run.returncode == 0, "a linter finds something"


def environment():
    """The credentials of every security scheme, and the values that the hooks insert, so that some requests succeed."""
    application = next(each for each in WORLD["applications"] if each["name"] == "drops")
    operator = {"Authorization": f"Bearer {WORLD['operatorKey']}"}
    scratch = {"name": SCRATCH, "redirectUris": application["redirectUris"], "scopes": application["scopes"][:1]}
    secret = call("PUT", f"{BASE}/platform/v1/applications/{SCRATCH}", operator, scratch)["clientSecret"]
    return {
        **os.environ,
        "STAGEDOOR_ACCESS_TOKEN": ready_token(STREAMER, application),
        "STAGEDOOR_OPERATOR_KEY": WORLD["operatorKey"],
        "STAGEDOOR_CLIENT_ID": application["clientId"],
        "STAGEDOOR_CLIENT_SECRET": application["clientSecret"],
        "STAGEDOOR_SCRATCH": json.dumps(
            {
                "id": SCRATCH,
                "secret": secret,
                "redirectUri": scratch["redirectUris"][0],
                "streamer": STREAMER["channelId"],
                "viewer": VIEWER["channelId"],
                # Works once. A second use revokes the viewer's tokens, which no test needs.
                "refresh": {
                    "clientId": application["clientId"],
                    "clientSecret": application["clientSecret"],
                    "refreshToken": VIEWER["tokens"][application["clientId"]]["refreshToken"],
                },
            }
        ),
        "SCHEMATHESIS_HOOKS": "hooks",
        "PYTHONPATH": str(HERE),
        "NO_COLOR": "1",
    }


def the_server_keeps_its_contract():
    config = Path(os.environ["STAGEDOOR_WORLD"]).with_name("schemathesis.toml")
    config.write_text(CONFIG, encoding="utf-8")
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(config), "run", f"{BASE}/openapi.json",
        "--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing", "--mode", "all",
        # Random calls of the sandbox API would move the clock and inject faults into the other calls.
        "--exclude-path-regex", "^/sandbox/",
        "--max-examples", str(EXAMPLES), "--seed", SEED, "--continue-on-failure", "--warnings", "off",
        "--suppress-health-check", "all", "--generation-database", "none", "--request-timeout", "10",
    ]  # fmt: skip
    run = subprocess.run(
        command, cwd=config.parent, env=environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    lines = run.stdout.decode(errors="replace").splitlines()
    print("\n".join(f"  # {line}" for line in lines[-MOST_OUTPUT_LINES:]), flush=True)
    answers = json.loads(config.with_name("answers.json").read_text(encoding="utf-8"))
    never = sorted(name for name, statuses in answers.items() if "200" not in statuses)
    excused = json.loads(config.with_name("excused.json").read_text(encoding="utf-8"))
    for reason, count in sorted(excused.items()):
        print(f"  # {count} times refused in accordance with the schema: {reason}")
    print(f"  # {len(answers)} operations were tried; never with success: {', '.join(never) or 'none'}")
    assert run.returncode == 0, f"schemathesis: exit code {run.returncode}"


def main():
    suite = Suite()
    steps = [openapi_is_well_formed, asyncapi_is_well_formed, no_linter_finds_anything, the_server_keeps_its_contract]
    try:
        for step in steps:
            with suite.step(step.__name__.replace("_", " ")):
                step()
    except StepFailed:
        pass
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
