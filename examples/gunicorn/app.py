"""A small WSGI application with a cheap page and a slow report.

    gunicorn --workers 4 --bind 127.0.0.1:8000 app:app

Each of the four workers handles one request at a time. Four reports at once, and
nobody gets the cheap page.
"""

import time


def page():
    return "200 OK", "hello\n"


def report():
    """Waits for something slow, as a report does for its database, then counts."""
    time.sleep(1)
    total = sum(n * n for n in range(200_000))
    return "200 OK", f"total {total}\n"


def health():
    return "200 OK", "ok\n"


ROUTES = {"/": page, "/report": report, "/health": health}


def app(environ, start_response):
    handler = ROUTES.get(environ["PATH_INFO"])
    status, text = handler() if handler else ("404 Not Found", "there is no such page\n")
    body = text.encode()
    start_response(status, [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))])
    return [body]
