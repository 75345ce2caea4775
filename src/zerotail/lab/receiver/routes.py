"""Which request leads where."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TypeVar

import msgspec

from zerotail.lab.receiver.conduct import Conduct
from zerotail.lab.receiver.desk import Desk
from zerotail.lab.receiver.http import Handler, HttpAnswer, HttpRequest, Unacceptable
from zerotail.lab.receiver.protocol import (
    DEFAULT_PAGE_ATTEMPTS,
    MAX_PAGE_ATTEMPTS,
    Batch,
    BatchRefused,
    BehaviourChange,
    Claim,
    Message,
    MessageRefused,
    Problem,
    ReceiverStatus,
    Text,
)

T = TypeVar("T")
D = TypeVar("D", Message, Batch)
S = TypeVar("S", Message, Batch, Claim)
Routes = dict[str, dict[str, Handler]]
"""Path, method, handler."""


def dispatch(routes: Routes) -> Handler:
    """The handler that hands a request to the one that its path and method lead to."""

    async def handle(request: HttpRequest) -> HttpAnswer | None:
        methods = routes.get(request.path)
        if methods is None:
            known = ", ".join(sorted(routes))
            raise Unacceptable(HTTPStatus.NOT_FOUND, f"there is no {request.path!r}; there is {known}")
        if request.method not in methods:
            allow = ", ".join(sorted(methods))
            raise Unacceptable(HTTPStatus.METHOD_NOT_ALLOWED, f"{request.path} knows {allow}", allow=allow)
        return await methods[request.method](request)

    return handle


def sender_routes(desk: Desk, conduct: Conduct) -> Routes:
    """What the world sees."""

    async def deliver(take: Callable[[D], Awaitable[msgspec.Struct]], delivery: D) -> HttpAnswer | None:
        conduct.require_available()
        if (rude := conduct.find_rude_answer(delivery)) is not None:
            return rude
        await conduct.keep_back()
        is_lost = conduct.loses_answer()
        answer = await take(delivery)
        await conduct.be_slow()
        return None if is_lost else _answer(answer)

    async def post_message(request: HttpRequest) -> HttpAnswer | None:
        return await deliver(desk.take_message, _sent(request, Message))

    async def post_batch(request: HttpRequest) -> HttpAnswer | None:
        return await deliver(desk.take_batch, _sent(request, Batch))

    async def post_claim(request: HttpRequest) -> HttpAnswer:
        claim = _sent(request, Claim)
        conduct.require_available()
        if (rude := conduct.find_rude_answer(claim)) is not None:
            return rude
        answer = await desk.take_claim(claim)
        await conduct.be_slow()
        return _answer(answer)

    async def get_last(request: HttpRequest) -> HttpAnswer:
        conduct.require_available()
        channel = _query(request, "channel", Text)
        partition = _query_number(request, "partition", least=0, most=(1 << 31) - 1)
        return _answer(await desk.tell_last(channel, partition, request.installation))

    return {
        "/messages": {"POST": post_message},
        "/batches": {"POST": post_batch},
        "/claims": {"POST": post_claim, "GET": get_last},
        "/last": {"GET": get_last},
    }


def judge_routes(desk: Desk, conduct: Conduct) -> Routes:
    """What drills see."""

    async def get_status(_: HttpRequest) -> HttpAnswer:
        await desk.settle()
        return _answer(ReceiverStatus(os.getpid(), desk.tell_classes(), desk.settled_sequence, conduct.behaviour()))

    async def get_attempts(request: HttpRequest) -> HttpAnswer:
        since = _query_number(request, "since", default=0, least=0, most=(1 << 63) - 1)
        limit = _query_number(request, "limit", default=DEFAULT_PAGE_ATTEMPTS, least=1, most=MAX_PAGE_ATTEMPTS)
        lines, end_sequence = await desk.tell_attempts(since, limit)
        return HttpAnswer(HTTPStatus.OK, b'{"attempts":[%s],"end_sequence":%d}' % (b",".join(lines), end_sequence))

    async def get_totals(_: HttpRequest) -> HttpAnswer:
        return _answer(await desk.tell_totals())

    async def get_behaviour(_: HttpRequest) -> HttpAnswer:
        return _answer(conduct.behaviour())

    async def patch_behaviour(request: HttpRequest) -> HttpAnswer:
        await conduct.change(_decode(request, BehaviourChange))
        return _answer(conduct.behaviour())

    async def delete_behaviour(_: HttpRequest) -> HttpAnswer:
        await conduct.normalise()
        return _answer(conduct.behaviour())

    return {
        "/status": {"GET": get_status},
        "/attempts": {"GET": get_attempts},
        "/totals": {"GET": get_totals},
        "/behaviour": {"GET": get_behaviour, "PATCH": patch_behaviour, "DELETE": delete_behaviour},
    }


def _answer(answer: msgspec.Struct) -> HttpAnswer:
    is_refused = isinstance(answer, MessageRefused | BatchRefused | Problem)
    return HttpAnswer(HTTPStatus.CONFLICT if is_refused else HTTPStatus.OK, msgspec.json.encode(answer))


def _decode(request: HttpRequest, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(request.body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unacceptable(HTTPStatus.BAD_REQUEST, f"the body cannot be taken: {error}") from None


def _sent(request: HttpRequest, kind: type[S]) -> S:
    """What a sender sent, with the installation that stands in a header."""
    return msgspec.structs.replace(_decode(request, kind), installation=request.installation)


def _query(request: HttpRequest, name: str, kind: type[T]) -> T:
    try:
        return msgspec.convert(request.query.get(name, ""), kind, strict=False)
    except msgspec.ValidationError as error:
        raise Unacceptable(HTTPStatus.BAD_REQUEST, f"the query needs a proper {name}: {error}") from None


def _query_number(request: HttpRequest, name: str, *, least: int, most: int, default: int | None = None) -> int:
    if default is not None and name not in request.query:
        return default
    number = _query(request, name, int)
    if not least <= number <= most:
        raise Unacceptable(HTTPStatus.BAD_REQUEST, f"{name} is between {least} and {most}, not {number}")
    return number
