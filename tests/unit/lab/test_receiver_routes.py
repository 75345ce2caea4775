"""Any body at all on any route is answered or called unacceptable; nothing else ever happens."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerotail.lab.receiver.conduct import Conduct
from zerotail.lab.receiver.desk import Desk
from zerotail.lab.receiver.http import Handler, HttpRequest, Unacceptable
from zerotail.lab.receiver.routes import dispatch, judge_routes, sender_routes
from zerotail.lab.receiver.settings import ReceiverSettings

pytestmark = pytest.mark.fast

_proper = json.dumps(
    {"channel": "c", "partition": 0, "number": 1, "epoch": 1, "incarnation": 0, "site": "s", "body": "YQ=="}
).encode()
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(list(json.loads(_proper))), inner),
    max_leaves=6,
)


def _encode(value: object) -> bytes:
    return json.dumps(value).encode()


@st.composite
def _damaged(draw: st.DrawFn) -> bytes:
    start, end = sorted([draw(st.integers(0, len(_proper))), draw(st.integers(0, len(_proper)))])
    return _proper[:start] + draw(st.binary(max_size=8)) + _proper[end:]


async def _outcome(handle: Handler, request: HttpRequest) -> tuple[HTTPStatus, bytes]:
    try:
        answer = await handle(request)
    except Unacceptable as problem:
        answer = problem.answer
    assert answer is not None
    return answer.status, answer.body


@settings(max_examples=50, deadline=None)
@given(
    bodies=st.lists(
        st.one_of(
            st.binary(max_size=50),
            _json.map(_encode),
            st.fixed_dictionaries(dict.fromkeys(json.loads(_proper), _json)).map(_encode),
            _damaged(),
            st.just(_proper),
        ),
        min_size=1,
        max_size=5,
    ),
    query=st.dictionaries(st.sampled_from(["channel", "partition", "since", "limit"]), st.text(max_size=8)),
)
def test_any_body_and_query_are_answered_or_unacceptable(
    tmp_path_factory: pytest.TempPathFactory, bodies: list[bytes], query: dict[str, str]
) -> None:
    folder = tmp_path_factory.mktemp("receiver")

    async def story() -> None:
        desk, conduct = Desk(ReceiverSettings(port=1, folder=str(folder))), Conduct()
        routes = sender_routes(desk, conduct) | judge_routes(desk, conduct)
        handle = dispatch(routes)
        for body in bodies:
            for path, methods in routes.items():
                for method in methods:
                    status, text = await _outcome(handle, HttpRequest(method, path, query, body))
                    assert status in (HTTPStatus.OK, HTTPStatus.CONFLICT, HTTPStatus.BAD_REQUEST)
                    json.loads(text)
        desk.close()

    asyncio.run(story())
    attempts = (folder / "attempts.jsonl").read_bytes()
    assert attempts.count(b'"accepted"') >= (_proper in bodies)
