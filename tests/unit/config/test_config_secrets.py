"""Secrets: by reference only, looked up when needed, shown nowhere."""

from __future__ import annotations

import copy
import json
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo
from pydantic import ValidationError

from unit.config.configurations import RIGHT, changed, found, loaded, said, write
from zerotail.config import (
    HIDDEN,
    Configuration,
    ConfigurationProblems,
    Flag,
    Secret,
    load,
    load_with_origins,
    origins,
    render,
)
from zerotail.config.address import (
    CONNECTION_OPTIONS,
    connection_options,
    fill_connection,
    fill_header,
    fill_url,
)
from zerotail.config.problem import Unfit
from zerotail.config.secret import Keeper, template_of
from zerotail.errors import Misused

pytestmark = pytest.mark.fast

CANARY = "c4n4ry-Zq7-bird"
EAST = "host=127.1.0.9 dbname=core user=zerotail"


def with_dsn(dsn: str) -> str:
    return changed(EAST, dsn)


def secret_file(folder: Path, content: bytes, mode: int = 0o600, name: str = "pw") -> Path:
    path = folder / name
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_a_reference_is_filled_in_when_it_is_revealed(tmp_path: Path) -> None:
    secret_file(tmp_path, CANARY.encode() + b"\n")
    for reference, environment in [("${env:PW}", {"PW": CANARY}), ("${file:pw}", {})]:
        configuration = loaded(tmp_path, with_dsn(f"{EAST} password={reference}"), environment)
        dsn = configuration.sites["east"].database.dsn  # type: ignore[index]
        assert connection_options(template_of(dsn.reveal().replace("password=", "options=")))["options"] == CANARY
        assert dsn.written == f"{EAST} password={reference}"


def test_a_rotated_secret_counts_at_the_next_use(tmp_path: Path) -> None:
    secret_file(tmp_path, b"before")
    dsn = loaded(tmp_path, with_dsn(f"{EAST} password=${{file:pw}}")).sites["east"].database.dsn  # type: ignore[index]
    assert "before" in dsn.reveal()
    secret_file(tmp_path, b"behind")
    assert "behind" in dsn.reveal()
    (tmp_path / "pw").unlink()
    with pytest.raises(Misused, match="does not exist"):
        dsn.reveal()


def everything_printed(value: object) -> list[str]:
    return [
        str(value),
        repr(value),
        f"{value}",
        f"{value!r:>20}",
        f"{value:s}" if isinstance(value, Secret) else "",
        json.dumps([value], default=str),
        repr(pickle.dumps(value)),
        repr(copy.deepcopy(value)),
    ]


def test_a_secret_prints_as_hidden_in_every_way(tmp_path: Path) -> None:
    secret = Secret("password=${env:PW}", keeper=Keeper({"PW": CANARY}, tmp_path))
    for text in everything_printed(secret):
        assert CANARY not in text
        assert "password=" not in text or "pickle" in text or text.startswith(("b'", 'b"'))
    assert str(secret) == repr(secret) == f"{secret}" == HIDDEN
    assert f"{secret:>10}" == "  [hidden]"


CALLED_WITH: tuple[tuple[object, ...], ...] = (
    (),
    (1,),
    ("",),
    (">10",),
    (object(),),
    ({},),
    (None, None),
    ("written", "changed"),
)
REVEALING = {"reveal"}
MAKING_ANEW = {"__init__", "__class__", "__new__", "__init_subclass__"}
"""These take a secret's parts and answer with nothing of it."""


def answers_of(make: Callable[[], Secret]) -> Iterator[tuple[str, str]]:
    """What each method of a fresh secret says when it is called with this and that, and each attribute as it is."""
    for name in sorted(set(dir(Secret)) - REVEALING - MAKING_ANEW):
        yield name, str(getattr(make(), name))
        for arguments in CALLED_WITH:
            try:
                yield f"{name}{arguments}", str(getattr(make(), name)(*arguments))
            except Exception as error:  # noqa: BLE001 (a complaint is an answer like any other)
                yield f"{name}{arguments}", f"{error!r} {error.__cause__!r}"


@given(st.text(min_size=8, alphabet=st.characters(codec="utf-8", exclude_characters="\0")))
@settings(deadline=None)
def test_no_method_of_a_secret_but_reveal_leaks_the_value(value: str) -> None:
    keeper = Keeper({"PW": "%" + value}, Path("/"))
    assert Secret("${env:PW}", keeper=keeper).reveal() == "%" + value
    answers = dict(answers_of(lambda: Secret("${env:PW}", keeper=keeper)))
    assert answers["__str__()"] == answers["__repr__()"] == "[hidden]"
    for call, answer in answers.items():
        assert "%" + value not in answer, call


def test_a_pickled_secret_is_looked_up_again_where_it_arrives(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    secret = Secret("${env:PW_OF_TEST}", keeper=Keeper({"PW_OF_TEST": CANARY}, tmp_path))
    content = pickle.dumps(secret)
    assert CANARY.encode() not in content
    monkeypatch.setenv("PW_OF_TEST", "there")
    assert pickle.loads(content).reveal() == "there"  # noqa: S301


def test_a_planted_secret_appears_in_no_output(tmp_path: Path) -> None:
    secret_file(tmp_path, CANARY.encode())
    text = with_dsn(f"{EAST} password=${{env:PW}}")
    text = changed("receiver: R1}", 'receiver: R1, headers: {Authorization: "Bearer ${file:pw}", X-Trace: "on"}}', text)
    text = changed(
        '{bootstrap: "127.1.0.1:9092,127.1.0.2:9092"}',
        '{bootstrap: "127.1.0.1:9092", settings: {sasl.password: "${env:PW}"}}',
        text,
    )
    loaded_ = load_with_origins(write(tmp_path, text), {"PW": CANARY})
    configuration = loaded_.configuration
    outputs = [
        *everything_printed(configuration),
        render(loaded_, with_origin=True),
        str(origins(loaded_)),
        repr(loaded_),
        configuration.model_dump_json(),
        str(configuration.model_dump()),
    ]
    assert all(CANARY not in output for output in outputs)
    assert configuration.channels["bank"].headers["Authorization"].reveal() == f"Bearer {CANARY}"  # type: ignore[index,union-attr]


INLINE = [
    (EAST, f"{EAST} password={CANARY}"),
    (EAST, f"{EAST} password = '{CANARY}'"),
    (EAST, f"{EAST} pasword={CANARY}"),
    (EAST, f"{EAST} password=${{env:PW}}{CANARY}"),
    (EAST, f"{EAST} sslpassword={CANARY}"),
    (EAST, f"{EAST} {CANARY}"),
    (EAST, f"postgresql://zerotail:{CANARY}@127.1.0.9/core"),
    (EAST, f"postgresql://zerotail@127.1.0.9/core?password={CANARY}"),
    (EAST, f"postgresql://[{CANARY}/core"),
    (EAST, f"{EAST} password=${{vault:{CANARY}}}"),
    ("https://bank.example/transfers", f"https://zerotail:{CANARY}@bank.example/"),
    ("https://bank.example/transfers", f"https://bank.example/?access_token={CANARY}"),
    ("https://bank.example/transfers", f"ftp://{CANARY}"),
    ("receiver: R1}", f"receiver: R1, headers: {{Authorization: Bearer {CANARY}}}}}"),
    ("receiver: R1}", f"receiver: R1, headers: {{X-Api-Key: {CANARY}}}}}"),
    ("receiver: R1}", f"receiver: R1, password: {CANARY}}}"),
    ("receiver: R1}", f"receiver: {CANARY}}}"),
    (
        'bootstrap: "127.1.0.1:9092,127.1.0.2:9092"',
        f'bootstrap: "127.1.0.1:9092", settings: {{sasl.password: {CANARY}}}',
    ),
    (
        'bootstrap: "127.1.0.1:9092,127.1.0.2:9092"',
        f'bootstrap: "127.1.0.1:9092", settings: {{sasl.jaas.config: {CANARY}}}',
    ),
    ('bootstrap: "127.1.0.1:9092,127.1.0.2:9092"', f"bootstrap: zerotail:{CANARY}@127.1.0.1:9092"),
    ('{dsn: "host=127.1.0.9 dbname=core user=zerotail"}', f"{{host=127.1.0.9 password={CANARY}}}"),
    ('{dsn: "host=127.1.0.9 dbname=core user=zerotail"}', f"{{dsn: {{host: a, password: {CANARY}}}}}"),
    ('{dsn: "host=127.1.0.9 dbname=core user=zerotail"}', f"password={CANARY}"),
    ('{master: "local[2]"}', f"{{settings: {{spark.authenticate.secret: {CANARY}}}}}"),
    ('{master: "local[2]"}', f"{{max_records_per_batch: {CANARY}}}"),
    ("after: 10s", f"after: {CANARY}"),
    ("automatic: off", f"automatic: {CANARY}"),
    ("name: settlement", f"name: {CANARY}/"),
    ("name: settlement", f"name: *{CANARY}"),
    ("name: settlement", f"name: !{CANARY} x"),
    ("name: settlement", f"name: '{CANARY}"),
]


@pytest.mark.parametrize(("old", "new"), INLINE)
def test_a_secret_in_plain_text_is_refused_and_not_repeated(tmp_path: Path, old: str, new: str) -> None:
    path = write(tmp_path, changed(old, new))
    with pytest.raises(ConfigurationProblems) as caught:
        load(path, {"PW": "set"})
    error = caught.value
    printed = [str(error), repr(error), error.message, *map(str, error.problems), repr(error.problems)]
    printed += [json.dumps(problem.to_json()) for problem in error.problems]
    printed += [repr(pickle.dumps(error))]
    assert all(CANARY not in text for text in printed)
    assert error.__cause__ is None


def test_an_error_of_the_model_itself_does_not_repeat_values() -> None:
    with pytest.raises(ValidationError) as caught:
        Configuration.model_validate(
            {"name": f"{CANARY}/", "objectives": {"lag": CANARY, CANARY + "!": 1}, "sites": CANARY}
        )
    assert caught.value.error_count() >= 3
    assert f"{CANARY}/" not in str(caught.value)
    assert f"'{CANARY}'" not in str(caught.value)


def test_a_secret_in_plain_text_is_refused_with_the_way_to_do_it_right(tmp_path: Path) -> None:
    (line,) = said(tmp_path, with_dsn(f"{EAST} password=x"))
    assert line == (
        "zerotail.yaml:5:21: sites.east.database.dsn: holds a password in plain text; "
        "write password=${env:NAME} or password=${file:path} and keep the value there"
    )


def test_a_secret_in_an_overriding_variable_is_refused_too(tmp_path: Path) -> None:
    path = write(tmp_path, RIGHT)
    with pytest.raises(ConfigurationProblems) as caught:
        load(
            path,
            {"ZEROTAIL_SITES__EAST__DATABASE__DSN": f"{EAST} password={CANARY}", f"ZEROTAIL_{CANARY}!": "x"},
        )
    assert CANARY not in str(caught.value)
    assert "environment ZEROTAIL_SITES__EAST__DATABASE__DSN" in str(caught.value)


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("${env:NOT_THERE}", "refers to the environment variable NOT_THERE, which is not set"),
        ("${env:EMPTY}", "refers to the environment variable EMPTY, which is empty"),
        ("${env:A B}", "by a name that none can have"),
        ("${file:missing}", "refers to ${file:missing}, which does not exist"),
        ("${file:open}", "which is open to every user of the machine; run chmod o= on the file"),
        ("${file:empty}", "which is empty"),
        ("${file:newline}", "which is empty"),
        ("${file:nul}", "which holds a NUL"),
        ("${file:latin}", "which is not UTF-8"),
        ("${file:large}", "which is larger than a secret can be"),
        ("${file:folder}", "cannot be read"),
        ("${file:pipe}", "which is not a regular file"),
        ("${file:../outside}", "which is outside of the configuration's folder"),
        ("${file:link}", "which is outside of the configuration's folder"),
        ("${file:/etc/passwd}", "which is outside of the configuration's folder"),
        ("${vault:x}", "neither ${env:NAME} nor ${file:path}"),
        ("${env:", "neither ${env:NAME} nor ${file:path}"),
    ],
)
def test_a_reference_that_leads_nowhere_good_is_a_problem(tmp_path: Path, reference: str, sentence: str) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe", 0o600)
    for name, content in [("empty", b""), ("newline", b"\n"), ("nul", b"a\0"), ("latin", b"\xe9")]:
        secret_file(folder, content, name=name)
    secret_file(folder, b"x" * 70_000, name="large")
    secret_file(folder, b"x", 0o604, name="open")
    secret_file(tmp_path, b"x", name="outside")
    (folder / "link").symlink_to(tmp_path / "outside")
    (problem,) = found(folder, with_dsn(f"{EAST} password='{reference}'"), {"EMPTY": ""})
    assert sentence in str(problem)
    assert problem.key == ("sites", "east", "database", "dsn")


def test_all_missing_references_of_one_text_are_said(tmp_path: Path) -> None:
    (problem,) = found(tmp_path, with_dsn("host=a user=${env:U1} password=${env:P1}"))
    assert "U1, which is not set, and refers to the environment variable P1" in problem.sentence


def test_a_folder_that_the_configuration_allows_may_hold_secrets(tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    inner.mkdir()
    outer.mkdir()
    secret_file(outer, CANARY.encode())
    text = with_dsn(f"{EAST} password=${{file:../outer/pw}}")
    assert len(found(inner, text)) == 1
    assert found(inner, f"{text}secrets: {{folders: [../outer]}}\n") == ()


def test_without_secrets_references_may_lead_nowhere(tmp_path: Path) -> None:
    path = write(tmp_path, with_dsn(f"{EAST} password=${{env:NOT_THERE}}"))
    configuration = load(path, {}, with_secrets=False)
    with pytest.raises(Misused, match="NOT_THERE, which is not set"):
        configuration.sites["east"].database.dsn.reveal()  # type: ignore[index]


def test_a_reference_where_none_belongs_is_refused(tmp_path: Path) -> None:
    (problem,) = found(tmp_path, changed('"local[2]"', '"${env:PW}"'), {"PW": CANARY})
    assert "cannot hold a reference" in problem.sentence


@given(st.text(min_size=1, alphabet=st.characters(codec="utf-8", exclude_characters="\0")))
@settings(deadline=None)
def test_a_password_cannot_become_another_option(value: str) -> None:
    options = {"host": "pg", "password": value, "user": "a b"}
    pairs = fill_connection(template_of("host=pg password=${env:PW} user='a b'"), lambda _: value)
    assert conninfo_to_dict(pairs) == options
    url = fill_connection(template_of("postgresql://a%20b:${env:PW}@pg"), lambda _: value)
    assert conninfo_to_dict(url) == options


pieces = st.sampled_from(["host", "user", "dbname", "=", " = ", "'", "\\", " ", "\n", "a", "b c", ",", "/", "é"])


@given(st.lists(pieces, max_size=14).map("".join))
@settings(deadline=None, max_examples=500)
def test_connection_strings_are_read_as_libpq_reads_them(text: str) -> None:
    try:
        options = connection_options(template_of(text))
    except Unfit:
        return
    assert conninfo_to_dict(text) == options


def test_the_options_of_libpq_are_known_but_for_those_left_out_on_purpose() -> None:
    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    left_out = {name for name in known if name.startswith("oauth_")} | {"replication"}
    assert known - CONNECTION_OPTIONS == left_out
    assert known >= CONNECTION_OPTIONS


def test_a_secret_is_percent_encoded_in_a_url() -> None:
    template = template_of("postgresql://zt:${env:PW}@pg/core")
    assert fill_connection(template, lambda _: "a/b@c:d%") == "postgresql://zt:a%2Fb%40c%3Ad%25@pg/core"
    assert (
        fill_url(template_of("https://b.example/?token=${env:T}"), lambda _: "x&y=z")
        == "https://b.example/?token=x%26y%3Dz"
    )


def test_a_secret_with_a_line_break_does_not_enter_a_header() -> None:
    with pytest.raises(Unfit, match="a header cannot carry"):
        fill_header(template_of("Bearer ${env:T}"), lambda _: "x\r\nX-Admin: yes")


def test_a_flag_with_a_secret_in_plain_text_is_refused(tmp_path: Path) -> None:
    (problem,) = found(tmp_path, RIGHT, {}, [Flag("--set", "sites.west.database.dsn", f"host=a password={CANARY}")])
    assert CANARY not in str(problem)
    assert str(problem).startswith("flag --set: sites.west.database.dsn: holds a password in plain text")
