"""What a receiver answers that keeps to no protocol: to the senders of one partition, before anything is judged.

silent     nothing, ever            redirect   303, to elsewhere         garbage   200, with JSON that says nothing
endless    200, and no last byte    forbidden  403                       ahead     it has what was never sent
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal

import msgspec

from zerotail.lab.receiver.http import HttpAnswer
from zerotail.lab.receiver.protocol import Batch, BatchRefused, Claim, ClaimTaken, Message, Verdict

Rudeness = Literal["", "silent", "redirect", "garbage", "endless", "forbidden", "ahead"]
_AHEAD = 1_000_000_000_000
_ANSWERS = {
    "silent": HttpAnswer(HTTPStatus.OK, b"", silent=True),
    "endless": HttpAnswer(HTTPStatus.OK, b"x" * 65_536, endless=True),
    "redirect": HttpAnswer(HTTPStatus.SEE_OTHER, b"", location="/elsewhere"),
    "garbage": HttpAnswer(HTTPStatus.OK, b'{"verdicts":' + b"[" * 10_000),
    "forbidden": HttpAnswer(HTTPStatus.FORBIDDEN, b'{"error":"not you"}'),
}


def rude_answer(how: Rudeness, sent: Message | Batch | Claim) -> HttpAnswer:
    """What is answered in place of a verdict."""
    if how in _ANSWERS:
        return _ANSWERS[how]
    if isinstance(sent, Claim):
        return HttpAnswer(HTTPStatus.OK, msgspec.json.encode(ClaimTaken(_AHEAD, None, None)))
    count = len(sent.messages) if isinstance(sent, Batch) else 1
    refused = BatchRefused("there is a gap", [Verdict.GAP_REFUSED] * count, _AHEAD, None)
    return HttpAnswer(HTTPStatus.CONFLICT, msgspec.json.encode(refused))
