"""A receiver process in the hands of a test, and messages to send to it."""

from __future__ import annotations

import base64
import http.client
import json
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zerotail.deadline import Deadline
from zerotail.lab.receiver import MessageAttempt, ReceiverControl

Json = dict[str, Any]


def message(number: int, body: bytes | None = None, **changes: object) -> Json:
    content = b"message %d" % number if body is None else body
    fields: Json = {
        "channel": "bank",
        "partition": 0,
        "number": number,
        "epoch": 257,
        "incarnation": 1,
        "site": "east",
        "body": base64.b64encode(content).decode(),
    }
    return fields | changes


def batch(numbers: list[int], **changes: object) -> Json:
    envelope = {name: value for name, value in message(1).items() if name not in ("number", "body")}
    items = [{"number": number, "body": message(number)["body"]} for number in numbers]
    return envelope | {"messages": items} | changes


@dataclass
class ReceiverBench:
    """One receiver process that can be killed and started again on the same folder."""

    begin: Callable[[], subprocess.Popen[bytes]]
    port: int
    control: ReceiverControl
    folder: Path
    deadline: Deadline
    process: subprocess.Popen[bytes]

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.deadline.seconds_left)

    def ask(self, method: str, path: str, content: Json | bytes | None = None) -> tuple[int, Json]:
        connection = self.connection()
        try:
            connection.request(method, path, json.dumps(content) if isinstance(content, dict) else content)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def post(self, path: str, content: Json) -> tuple[int, Json]:
        return self.ask("POST", path, content)

    def send(self, number: int, body: bytes | None = None, **changes: object) -> tuple[int, str]:
        """Post one message; the status and the verdict."""
        status, answer = self.post("/messages", message(number, body, **changes))
        return status, answer["verdict"]

    def last(self, channel: str = "bank", partition: int = 0) -> int | None:
        status, answer = self.ask("GET", f"/last?channel={channel}&partition={partition}")
        assert status == 200
        last: int | None = answer["last_accepted"]
        return last

    def attempts(self) -> list[MessageAttempt]:
        entries = self.control.attempts(deadline=self.deadline)
        return [entry for entry in entries if isinstance(entry, MessageAttempt)]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def restart(self) -> None:
        self.kill()
        self.process = self.begin()
