# SPDX-License-Identifier: Apache-2.0

import base64, hmac, json, os, queue, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MAX_BODY = 64 << 20  # bytes
MAX_AGE = 5 * 60  # seconds
KEEP = 7 * 24 * 60 * 60  # seconds

SECRET = base64.b64decode(os.environ["WEBHOOK_KEY"].removeprefix("whsec_"))
TOKEN = os.environ["WEBHOOK_TOKEN"]
received = queue.Queue(maxsize=1000)  # ids and tasks


def equal(a, b):
    return hmac.compare_digest(a.encode(), b.encode())  # in constant time


def is_good(headers, body):
    at = headers.get("webhook-timestamp", "")
    message = f"{headers.get('webhook-id', '')}.{at}.".encode() + body
    signature = "v1," + base64.b64encode(hmac.digest(SECRET, message, "sha256")).decode()
    return (
        equal(headers.get("X-ACPS-AIP-Notification-Token", ""), TOKEN)
        and at.isdecimal() and abs(time.time() - int(at)) < MAX_AGE
        and any(equal(one, signature) for one in headers.get("webhook-signature", "").split(" "))
    )


class Receiver(BaseHTTPRequestHandler):
    timeout = 30  # seconds

    def do_POST(self):
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size) if size <= MAX_BODY else b""
        status = 204
        if size > MAX_BODY:
            status = 413
        elif not is_good(self.headers, body):
            status = 401
        else:
            try:
                received.put_nowait((self.headers["webhook-id"], json.loads(body)))
            except queue.Full:
                status = 503  # it is sent again
        self.send_response(status)
        self.end_headers()


def act(task):
    print(task["id"], task["status"]["state"], flush=True)  # your work


def work():
    seen = {}  # ids, and when they came
    while True:
        id, task = received.get()
        now = time.time()
        seen = {old: at for old, at in seen.items() if now - at < KEEP}
        if id not in seen:
            seen[id] = now
            act(task)


threading.Thread(target=work, daemon=True).start()
server = ThreadingHTTPServer(("", 8080), Receiver)
server.serve_forever()
