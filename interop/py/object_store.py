"""Backups in an S3-like object store: `rclone serve s3`, which verifies signatures, over its own folder.

A store of more than one part is backed up, listed, proved, restored and compared. Then the store is damaged, a backup is
interrupted, and keys, bucket and server are wrong. Then a service archives its log there, is killed and restored. What killed
uploads leave is ended. rclone is in .cache/venv/engines (`./test tools`).
"""

import contextlib
import hashlib
import hmac
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from harness import ReservedPort, StepFailed, Suite

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("STAGEDOOR_BIN", ROOT / "target" / "release" / "stagedoor")).absolute()
RCLONE = ROOT / ".cache" / "venv" / "engines" / "bin" / "rclone"
KEY, SECRET = "a-key", "the-secret-of-the-key"
PLACE = "s3://backups/night"
ARCHIVE = "s3://backups/log"
OPERATOR_KEY = "an-operator-key-of-more-than-32-characters"
# A machine may be ten times as slow.
DEADLINE_SECONDS = 180
# A part of an upload has 8 MiB.
CHANNELS = 140_000
LOAD_SECONDS = 20
LOAD_CALLERS = 8


class ObjectStore:
    """A server until the end of the block."""

    def __init__(self, folder):
        self.folder, self.reserved = Path(folder), ReservedPort()
        self.port = self.reserved.number
        (self.folder / "backups").mkdir(parents=True)

    def __enter__(self):
        self.process = subprocess.Popen(
            [RCLONE, "serve", "s3", self.folder, "--addr", f"127.0.0.1:{self.port}", "--auth-key", f"{KEY},{SECRET}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.05)
        raise AssertionError("rclone does not listen")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(DEADLINE_SECONDS)

    def files(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())

    def call(self, method, path, body=None, **query):
        """A request that is signed in its query string, and its answer. The server does not see changes of its folder by
        other means."""
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        scope = f"{now[:8]}/us-east-1/s3/aws4_request"
        query |= {"X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-Credential": f"{KEY}/{scope}", "X-Amz-Date": now,
                  "X-Amz-Expires": "60", "X-Amz-SignedHeaders": "host"}
        host = f"127.0.0.1:{self.port}"
        text = urllib.parse.urlencode(sorted(query.items()), quote_via=urllib.parse.quote, safe="")
        request = "\n".join([method, path, text, f"host:{host}\n", "host", "UNSIGNED-PAYLOAD"])
        key = f"AWS4{SECRET}".encode()
        for word in scope.split("/"):
            key = hmac.digest(key, word.encode(), "sha256")
        signed = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(request.encode()).hexdigest()])
        signature = hmac.digest(key, signed.encode(), "sha256").hex()
        url = f"http://{host}{path}?{text}&X-Amz-Signature={signature}"
        request = urllib.request.Request(url, method=method, data=body)
        with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
            return answer.read().decode()

    def uploads(self):
        """The number of uploads that were begun and not completed."""
        try:
            return self.call("GET", "/backups/", uploads="").count("<UploadId>")
        except urllib.error.HTTPError as error:
            # So rclone says that there is none.
            assert error.code == 404 and "NoSuchUpload" in error.read().decode()
            return 0


def access(store):
    """The variables by which a command reaches the object store."""
    return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{store.port}"}


def run(store, *arguments, status=0, **environment):
    """Runs a command with the object store's keys, and returns its JSON, or its error."""
    done = subprocess.run([BINARY, *map(str, arguments), "--json"], env=os.environ | access(store) | environment,
                          capture_output=True, text=True, check=False)
    assert done.returncode == status, f"{done.returncode}: {done.stdout} {done.stderr}"
    assert SECRET not in done.stdout + done.stderr, "a secret is shown"
    return json.loads(done.stdout) if status == 0 else done.stderr


class Archived:
    """`serve` with an archive in the object store, until the end of the block."""

    def __init__(self, store, data, log, every=1, place=ARCHIVE):
        self.store, self.data, self.log, self.every, self.place = store, data, log, every, place

    def __enter__(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("STAGEDOOR_")}
        environment |= access(self.store) | {"STAGEDOOR_OPERATOR_KEY": OPERATOR_KEY}
        command = [BINARY, "serve", "--listen", "127.0.0.1:0", "--data", self.data, "--archive", self.place]
        command += ["--archive-every", str(self.every)]
        self.begun = time.time()
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=log)
        self.url = until(self.served, "the service serves")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(DEADLINE_SECONDS)

    def served(self):
        words = self.log.read_text().partition("stagedoor serves address=")[2].split()
        return f"http://{words[0]}" if words else None

    def call(self, method, path, body=None):
        request = urllib.request.Request(f"{self.url}{path}", method=method, data=body and json.dumps(body).encode())
        request.add_header("Authorization", f"Bearer {OPERATOR_KEY}")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
            return answer.read().decode()

    def has_new_base(self):
        """An earlier base is there from the start, too."""
        return self.metric("stagedoor_archive_last_base_timestamp_seconds") > self.begun

    def metric(self, name):
        [line] = [line for line in self.call("GET", "/metrics").splitlines() if line.startswith(f"{name} ")]
        return float(line.split()[1])

    def put_channels(self, beginning, count):
        for number in range(count):
            self.call("PUT", f"/platform/v1/channels/{beginning}-{number}", {"channelName": f"{beginning} {number}"})


class WithoutParts:
    """A proxy of the object store that forwards all but the parts of uploads, until the end of the block. After the half of
    a part, rclone would not list its uploads again."""

    def __init__(self, store):
        self.store, self.has_part = store, threading.Event()
        self.listener, self.sockets = socket.create_server(("127.0.0.1", 0)), []
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        for one in [self.listener, *self.sockets]:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, server = self.listener.accept()[0], socket.create_connection(("127.0.0.1", self.store.port))
                self.sockets += [client, server]
                threading.Thread(target=self.forward, args=(client, server), daemon=True).start()
                threading.Thread(target=self.forward, args=(server, client), daemon=True).start()

    def forward(self, source, target):
        with contextlib.suppress(OSError):
            while block := source.recv(65_536):
                if b"partNumber=" in block:
                    self.has_part.set()
                    return
                target.sendall(block)
            target.shutdown(socket.SHUT_WR)


def kill_while_it_uploads(store, data, place, work):
    """Starts a backup, and kills it at the first part of its upload."""
    with WithoutParts(store) as proxy:
        process = subprocess.Popen([BINARY, "backup", "--data", data, "--to", place, "--work", work],
                                   env=os.environ | access(proxy), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        has_part = proxy.has_part.wait(DEADLINE_SECONDS)
        process.kill()
        process.wait(DEADLINE_SECONDS)
    assert has_part, "the backup uploaded no part"


def segments(store):
    """The segments in the object store: their first and last numbers."""
    names = [Path(name).name.split("-") for name in store.files() if name.endswith(".segment")]
    return sorted((int(first), int(last)) for first, last, _ in names)


def merged_segments(store):
    """The number of segments that were merged into those in the object store."""
    return sum(last - first + 1 for first, last in segments(store))


def until(look, what):
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.1)
    raise AssertionError(f"not in time: {what}")


def until_archived(service):
    """Waits until the archive has all that was written."""
    written = time.monotonic()
    until(lambda: service.metric("stagedoor_archive_lag_seconds") < time.monotonic() - written, "the archive has it all")


def load(service, number, ends):
    while time.monotonic() < ends:
        service.put_channels(f"load-{number}", 20)


def channels(folder, beginning):
    with sqlite3.connect(folder / "stagedoor.db") as database:
        [[count]] = database.execute("SELECT COUNT(*) FROM channels WHERE channel_id LIKE ?", [f"{beginning}-%"])
    database.close()
    return count


def make_store(folder):
    """A store of a stopped server."""
    # The options of the suite's own server are in the environment.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STAGEDOOR_")}
    server = subprocess.Popen([BINARY, "dev", "--json", "--data", folder, "--listen", "127.0.0.1:0"],
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    server.stdout.readline()
    server.send_signal(signal.SIGTERM)
    server.wait(DEADLINE_SECONDS)


def make_world(folder):
    """A store of a stopped server with many channels."""
    make_store(folder)
    with sqlite3.connect(folder / "stagedoor.db") as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(channels)")]
        values = ["'c-' || n.i" if column == "channel_id" else f"t.{column}" for column in columns]
        database.execute(
            f"INSERT INTO channels ({', '.join(columns)}) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
            f" WHERE i < {CHANNELS}) SELECT {', '.join(values)} FROM n CROSS JOIN"
            " (SELECT * FROM channels WHERE channel_id = 'viewer-byeol') t")
    database.close()


def main(suite, folder):
    data = folder / "data"
    make_world(data)
    with ObjectStore(folder / "objects") as store:
        with suite.step("a store is backed up in parts, and read again"):
            taken = run(store, "backup", "--data", data, "--to", PLACE, "--work", folder)
            assert taken["bytes"] > 2 * 8 * 1024 * 1024 and taken["rows"] > CHANNELS, taken
            assert taken["backup"].startswith(f"{PLACE}/stagedoor-"), taken
        with suite.step("the oldest backup goes, with what an interrupted one left"):
            store.call("PUT", "/backups/night/stagedoor-20200101T000000.000Z/stagedoor.db", body=b"half of it")
            second = run(store, "backup", "--data", data, "--to", PLACE, "--keep", 1)
            assert second["deleted"] == 1, second
            listed = run(store, "backup", "--list", "--to", PLACE)["backups"]
            assert [backup["backup"] for backup in listed] == [second["backup"]], listed
            assert len(store.files()) == 2, store.files()
        with suite.step("the latest backup is proved, restored and equal"):
            assert run(store, "restore", PLACE, "--drill", "--work", folder)["ok"]
            restored = run(store, "restore", second["backup"], "--data", folder / "restored")
            assert restored["rows"] == second["rows"], restored
            again = run(store, "backup", "--data", folder / "restored", "--to", folder / "copies")
            assert again["rows"] == second["rows"], again
        with suite.step("backups of another store are refused there, and a broken one is skipped"):
            other, place = folder / "other-store", "/backups/night"
            make_store(other)
            error = run(store, "backup", "--data", other, "--to", PLACE, "--keep", 1, status=1)
            assert "has backups of another store" in error, error
            meant = run(store, "backup", "--data", other, "--to", PLACE, "--keep", 1, "--other-store")
            assert meant["deleted"] == 0, meant
            error = run(store, "restore", PLACE, "--data", folder / "mixed", status=1)
            assert "backups of 2 stores" in error and not (folder / "mixed").exists(), error
            name = meant["backup"].rpartition("/")[2]
            broken = f"{place}/stagedoor-20210101T000000.000Z/manifest.json"
            store.call("PUT", broken, body=b'{"format":')
            for path in (f"{place}/{name}/manifest.json", f"{place}/{name}/stagedoor.db"):
                store.call("DELETE", path)
            listed = run(store, "backup", "--list", "--to", PLACE)
            assert [each["backup"] for each in listed["backups"]] == [second["backup"]], listed
            assert "manifest.json is not a manifest" in listed["broken"][0]["problem"], listed
            assert run(store, "restore", PLACE, "--drill", "--work", folder)["ok"]
            third = run(store, "backup", "--data", data, "--to", PLACE, "--keep", 1)
            assert third["deleted"] == 1 and store.folder.joinpath(broken[1:]).exists(), third
            store.call("DELETE", broken)
            shutil.rmtree(other)
        with suite.step("what killed backups left of an upload is ended"):
            place, work = "s3://backups/killed", folder / "work"
            work.mkdir()
            for killed in (1, 2):
                kill_while_it_uploads(store, data, place, work)
                assert store.uploads() == killed, (store.uploads(), killed)
            # The newest one may be of a backup that runs.
            run(store, "backup", "--data", data, "--to", place, "--keep", 1)
            assert store.uploads() == 0, store.uploads()
            shutil.rmtree(work)
        with suite.step("nothing is left in the temporary folder"):
            left = sorted(path.name for path in folder.iterdir())
            assert left == ["copies", "data", "objects", "restored"], left
        with suite.step("a damaged backup is refused, and nothing is restored"):
            [path] = (store.folder / "backups" / "night").glob("*/stagedoor.db")
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 1
            store.call("PUT", f"/{path.relative_to(store.folder)}", body=content)
            error = run(store, "restore", PLACE, "--data", folder / "other", status=1)
            assert "is damaged" in error and not (folder / "other" / "stagedoor.db").exists(), error
        with suite.step("wrong keys, buckets, places and servers are named"):
            for arguments, environment, status, word in [
                ([PLACE], {"AWS_SECRET_ACCESS_KEY": "wrong"}, 1, "SignatureDoesNotMatch"),
                (["s3://elsewhere/night"], {}, 1, "NoSuchBucket"),
                (["s3://backups/day"], {}, 1, "has no complete backup"),
                (["s3://back ups"], {}, 2, "an address is s3://BUCKET/PREFIX"),
                ([PLACE], {"AWS_ENDPOINT_URL_S3": "http://192.0.2.1"}, 2, "use https"),
                ([PLACE], {"AWS_ACCESS_KEY_ID": ""}, 2, "AWS_ACCESS_KEY_ID is missing"),
            ]:
                error = run(store, "restore", *arguments, "--drill", status=status, **environment)
                assert word in error, error
    with ObjectStore(folder / "archive-objects") as store:
        archive(suite, store, folder)


def archive(suite, store, folder):
    data = folder / "archived"
    with suite.step("a service archives its log, and is restored after it was killed and its folder deleted"):
        with Archived(store, data, folder / "log") as service:
            until(service.has_new_base, "a base")
            service.put_channels("early", 50)
            until_archived(service)
        shutil.rmtree(data)
        restored = run(store, "restore", ARCHIVE, "--at", "latest", "--data", folder / "latest")
        assert restored["segments"] > 0 and channels(folder / "latest", "early") == 50, restored
        assert run(store, "restore", ARCHIVE, "--at", "latest", "--drill", "--work", folder)["ok"]
    with suite.step("under load the objects are few, and an upload that a killed service left is ended"):
        shutil.move(folder / "latest", data)
        store.call("POST", "/backups/log/archive/killed/bases/one/stagedoor.db", uploads="")
        assert store.uploads() == 1
        with Archived(store, data, folder / "log", every=5) as service:
            until(service.has_new_base, "a base")
            assert store.uploads() == 0
            merged, brought = -merged_segments(store), -service.metric("stagedoor_archive_segments_total")
            begun, ends = time.monotonic(), time.monotonic() + LOAD_SECONDS
            callers = [threading.Thread(target=load, args=(service, number, ends)) for number in range(LOAD_CALLERS)]
            for caller in callers:
                caller.start()
            for caller in callers:
                caller.join()
            until(lambda: service.metric("stagedoor_archive_lag_seconds") < 10, "the archive has it")
            took = time.monotonic() - begun
            merged += merged_segments(store)
            brought += service.metric("stagedoor_archive_segments_total")
            assert brought <= 4 + 2 * took / 5 and merged > brought, (brought, merged, took)
        shutil.move(data, folder / "latest")
    with suite.step("while the object store is away the service goes on, and its segments wait"):
        shutil.move(folder / "latest", data)
        with Archived(store, data, folder / "log") as service:
            # The generation of the killed service goes on with its base.
            until(lambda: service.metric("stagedoor_archive_last_base_timestamp_seconds") > 0, "a base")
            store.__exit__()
            service.put_channels("away", 50)
            until(lambda: service.metric("stagedoor_archive_spool_bytes") > 0, "segments wait")
            with store:
                until(lambda: service.metric("stagedoor_archive_spool_bytes") == 0, "the spool is empty")
                listed = run(store, "backup", "--list", "--to", ARCHIVE)["generations"]
                assert len(listed) == 2 and all(each["bases"] for each in listed), listed
                run(store, "restore", ARCHIVE, "--at", "latest", "--data", folder / "again")
                assert channels(folder / "again", "away") == 50
    with suite.step("an archive that moves from a folder to the object store has a whole base there"):
        place = "s3://backups/moved"
        # The step before has ended the object store.
        with store:
            for name, to in [("before", folder / "archive-folder"), ("after", place)]:
                with Archived(store, folder / "mover", folder / "log", place=to) as service:
                    until(service.has_new_base, "a base")
                    service.put_channels(name, 50)
                    until_archived(service)
            run(store, "restore", place, "--at", "latest", "--data", folder / "moved")
            assert channels(folder / "moved", "before") == channels(folder / "moved", "after") == 50
    with suite.step("an archive whose objects were deleted has a whole base again, without a write"):
        with store:
            for name in store.files():
                if name.startswith("backups/moved/"):
                    store.call("DELETE", f"/{name}")
            with Archived(store, folder / "mover", folder / "log", place=place) as service:
                until(service.has_new_base, "a base")
            run(store, "restore", place, "--at", "latest", "--data", folder / "emptied")
            assert channels(folder / "emptied", "before") == channels(folder / "emptied", "after") == 50


if __name__ == "__main__":
    os.chdir(ROOT)
    suite = Suite()
    with tempfile.TemporaryDirectory() as temporary:
        try:
            main(suite, Path(temporary).resolve())
        except StepFailed:
            pass
    sys.exit(suite.finish())
