"""The consumer of the mirrored system, as a process: what it reads from its group it hands to the receiver.

python -m zerotail.bench.mirrored_consumer --bootstrap HOST:PORT --topic T --group G --receiver PORT --site S
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json

from zerotail.kafka.cluster import Cluster
from zerotail.kafka.plain_group import read_as_member

CHANNEL = "mirrored"


def main() -> None:
    """Run until killed."""
    parser = argparse.ArgumentParser(prog="python -m zerotail.bench.mirrored_consumer", description=__doc__)
    for name in ("--bootstrap", "--topic", "--group", "--site"):
        parser.add_argument(name, required=True)
    parser.add_argument("--receiver", type=int, required=True)
    options = parser.parse_args()
    receiver = http.client.HTTPConnection("127.0.0.1", options.receiver, timeout=30)
    envelope = {"channel": CHANNEL, "partition": 0, "epoch": 1, "incarnation": 0, "site": options.site}
    for values in read_as_member(Cluster(options.bootstrap), options.topic, options.group):
        messages = [
            {"number": json.loads(value)["number"], "body": base64.b64encode(value).decode()} for value in values
        ]
        receiver.request("POST", "/batches", json.dumps({**envelope, "messages": messages}))
        answer = receiver.getresponse()
        answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise SystemExit(f"the receiver answers {answer.status}")


if __name__ == "__main__":
    main()
