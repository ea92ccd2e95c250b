"""Sends requests by http.client, which writes all of one before it reads.

Usage: client.py HOST:PORT REQUESTS
REQUESTS is a list in JSON: {"method", "path", "length", "chunked", "headers"}.
What was seen of each is printed, one line of JSON for each.
"""

import http.client
import json
import sys


def pieces(left):
    while left > 0:
        piece = min(left, 1 << 16)
        yield b"x" * piece
        left -= piece


for r in json.loads(sys.argv[2]):
    n = r["length"]
    body = pieces(n) if r["chunked"] else b"x" * n if n else None
    conn = http.client.HTTPConnection(sys.argv[1], timeout=60)
    conn.request(r["method"], r["path"], body=body, headers=r["headers"] or {}, encode_chunked=r["chunked"])
    res = conn.getresponse()
    text = res.read().decode()
    print(json.dumps({"status": res.status, "retryAfter": res.getheader("Retry-After") or "",
                      "type": res.getheader("Content-Type") or "", "text": text}), flush=True)
    conn.close()
