"""Stands for the library requests, with what the programs of the documentation use of it."""

import json as codec
import urllib.request


def _function(method):
    def send(url, headers=None, json=None, data=None, timeout=None):
        headers = dict(headers or {})
        if json is not None:
            data = codec.dumps(json).encode()
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return _Answer(answer.status, answer.read().decode())

    return send


class _Answer:
    def __init__(self, status, text):
        self.status_code, self.text = status, text


get, post, put, patch, delete = map(_function, ("GET", "POST", "PUT", "PATCH", "DELETE"))
