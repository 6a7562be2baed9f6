"""The operator of a server, who reads its events and answers its questions over its API."""

import contextlib
import http.client
import json
import os
import socket
import threading
import time
from pathlib import Path

# An upper bound for the time until something is there, also on a slow machine, in seconds.
PATIENCE = 60
# Where servers keep the tokens of their run.
TOKENS = Path(os.environ["HOME"], ".local/state/palisade/tokens")
OPERATORS = ".operator.token"


def address_of(url):
    """Returns the host and the port in a URL."""
    return url.split("/")[2]


def token(address, kind=".token"):
    """Returns a token that the server at an address has made: the client's, or the operator's."""
    return Path(TOKENS, address.replace(":", "-") + kind).read_text().strip()


def kept():
    """Returns the operators' tokens that servers keep or have kept, with their times."""
    return {(file, file.stat().st_mtime_ns) for file in TOKENS.glob("*" + OPERATORS)}


class Attendant:
    """An operator who gives the same decision to each question, some time after it was put."""

    def __init__(self, url, decision, after):
        """Attaches to the server of a URL, or without one to the next server that starts. `after`
        is in seconds."""
        self.address = url and address_of(url)
        self.decision, self.after, self.earlier = decision, after, kept()
        # The questions, by their ids, and the answers.
        self.questions, self.answers = {}, []
        # The connection with the events.
        self.socket, self.attached = None, threading.Event()
        self.thread = threading.Thread(target=self.attend, daemon=True)
        self.thread.start()
        if url is not None:
            self.attached.wait(PATIENCE)

    def leave(self):
        """Ends the attendance: the next question is another operator's."""
        if self.attached.is_set():
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)
            self.thread.join(PATIENCE)

    def attend(self):
        try:
            self.address = self.address or self.find()
            self.socket, events = self.request("/events")
            self.attached.set()
            # A call may have asked before.
            _, questions = self.request("/confirmations")
            for question in json.load(questions)["items"]:
                self.take(question)
            for event in confirmations(events):
                if event["event"] == "tool.confirmation_requested":
                    self.take(event)
                elif event["decision"] == "deferred":
                    # The client is asked with its next call, which may ask the operator again.
                    self.questions.pop(event["request_id"], None)
        except (OSError, http.client.HTTPException):
            # The server has ended with its client, or this attendance.
            pass

    def find(self):
        end = time.monotonic() + PATIENCE
        while not (new := kept() - self.earlier):
            if time.monotonic() > end:
                raise OSError("no server keeps an operator's token")
            time.sleep(0.02)
        [(file, _)] = new
        return ":".join(file.name.removesuffix(OPERATORS).rsplit("-", 1))

    def take(self, question):
        """Notes a question, and answers it after a while."""
        if question["request_id"] not in self.questions:
            self.questions[question["request_id"]] = question
            timer = threading.Timer(self.after, self.answer, [question])
            timer.daemon = True
            timer.start()

    def answer(self, question):
        id = question["request_id"]
        if id not in self.questions:
            return
        session, turn = question.get("session_id") or "-", question.get("turn_id") or "-"
        path = f"/sessions/{session}/turns/{turn}/confirmations/{id}"
        with contextlib.suppress(OSError, http.client.HTTPException):
            _, answer = self.request(path, {"decision": self.decision})
            self.answers.append(json.load(answer)["decision"])

    def request(self, path, body=None):
        """Returns the socket and the body of a response."""
        connection = http.client.HTTPConnection(self.address)
        headers = {"authorization": f"Bearer {token(self.address, OPERATORS)}"}
        if body is not None:
            headers["content-type"] = "application/json"
        method, body = ("GET", None) if body is None else ("POST", json.dumps(body))
        connection.request(method, path, body, headers)
        opened, response = connection.sock, connection.getresponse()
        if response.status != 200:
            raise OSError(f"{method} {path}: {response.status}, {response.read()!r:.500}")
        return opened, response


def confirmations(events):
    """Yields the beginnings and ends of questions in a stream of events."""
    name = None
    for line in events:
        key, _, value = line.decode().rstrip("\n").partition(": ")
        if key == "event":
            name = value
        elif key == "data" and name and name.startswith("tool.confirmation_"):
            yield json.loads(value)
