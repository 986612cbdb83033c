"""Shared code of the Python programs that run one client: the lines that py/matrix.py exchanges with them."""

import json
import sys


def tell(case, **line):
    """One line to the reader, escaped to ASCII, so that no encoding on the way can change a character."""
    sys.stdout.write(json.dumps({"id": case, **line}) + "\n")
    sys.stdout.flush()


def orders(ordered=True, stream=sys.stdin):
    """The lines from the reader, until it closes the input."""
    sys.stdout.write(json.dumps({"ready": True, "ordered": ordered}) + "\n")
    sys.stdout.flush()
    for line in stream:
        order = json.loads(line)
        yield order.pop("ask"), order.pop("id"), order
