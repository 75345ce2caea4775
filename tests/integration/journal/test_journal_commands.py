"""`zerotail journal`, `zerotail schema` and `zerotail reconcile`, called as a person or a script would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from support.command import call
from support.journal import Books, new_database, superuser
from zerotail.config import load
from zerotail.core.identity import SiteName
from zerotail.core.record import digest_of
from zerotail.errors import Refused
from zerotail.lab.database import dsn as dsn_of
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import one_row
from zerotail.postgres.schema import schema_files
from zerotail.postgres.site import read_numbers
from zerotail.running.prepare import prepare

Day = tuple[str, str, Books]
_CHANGED = "update zerotail.segment set version = '2' where stage = 'settle' and partition = 0 and segment = 3"


@pytest.fixture
def spoiled(copy: Callable[[], str]) -> str:
    """A copy of the day with another version in a segment."""
    dsn = copy()
    with superuser(dsn) as connection:
        connection.execute(_CHANGED)
    return dsn


@pytest.fixture
def configuration(tmp_path: Path, lab: Layout, day: Day) -> str:
    """A configuration file of the two sites, for the day's database."""
    path = tmp_path / "zerotail.yaml"
    east, west = (
        dsn_of(lab.database(site)).replace("dbname=postgres", f"dbname={day[0]}") for site in ("east", "west")
    )
    path.write_text(
        "name: books\nsites:\n"
        f'  east: {{kafka: {{bootstrap: "localhost:1"}}, database: {{dsn: "{east}"}}}}\n'
        f'  west: {{kafka: {{bootstrap: "localhost:2"}}, database: {{dsn: "{west}"}}}}\n'
    )
    return str(path)


@pytest.mark.servers
def test_show_lists_segments_with_their_runs(day: Day) -> None:
    _, dsn, books = day
    arguments = ("--dsn", dsn, "--stage", "settle", "--partition", "0", "--from", "2", "--count", "2", "--records")
    (journal,) = call("journal", "show", *arguments, "--json").answer("journal-show")["journals"]
    assert journal["head"]["segment"] == 6
    assert [segment["segment"] for segment in journal["segments"]] == [2, 3]
    assert journal["segments"][0]["runs"] == [[1, 31, 5]]
    taken = books.taken["settle", 0]  # type: ignore[index]
    for segment in journal["segments"]:
        for record in segment["records"]:
            producer, serial, value = taken[record["position"]]
            assert (record["producer"], record["serial"]) == (producer, serial)
            assert record["digest"] == digest_of(value).hex()
    text = call("journal", "show", *arguments).out
    assert text.startswith("settle partition 0 · epoch 256 · 6 segments · ")
    assert "  segment 2      50–54 " in text


@pytest.mark.servers
def test_tail_shows_the_last_segments_of_every_journal(day: Day) -> None:
    answer = call("journal", "tail", "--dsn", day[1], "--count", "1", "--json").answer("journal-show")
    found = [(one["stage"], one["partition"], one["segments"][0]["segment"]) for one in answer["journals"]]
    assert found == [("post", 0, 2), ("settle", 0, 6), ("settle", 1, 5)]
    assert all(len(one["segments"]) == 1 for one in answer["journals"])


@pytest.mark.servers
def test_verify_says_yes_at_both_sites(configuration: str) -> None:
    for site in ("east", "west"):
        said = call("journal", "verify", "--config", configuration, "--site", site)
        assert said.code == 0, said.err
        assert said.out.count("✓") == 3
    answer = call("journal", "verify", "--config", configuration, "--json").answer("journal-verify")
    assert answer["ok"] is True
    assert answer["database"] == "east"


@pytest.mark.servers
def test_verify_names_the_first_wrong_segment_and_exits_with_1(spoiled: str) -> None:
    said = call("journal", "verify", "--dsn", spoiled)
    assert said.code == 1
    assert "✗ settle partition 0: wrong at segment 3, position 55" in said.out
    assert said.out.count("✓") == 2
    said = call("journal", "verify", "--dsn", spoiled, "--stage", "settle", "--json")
    assert said.code == 1
    answer = said.answer("journal-verify")
    assert answer["ok"] is False
    fault = answer["journals"][0]["fault"]
    assert (fault["rule"], fault["segment"], fault["position"], fault["record"]) == ("chain", 3, 55, None)


@pytest.mark.servers
def test_compare_finds_both_sites_equal(configuration: str) -> None:
    said = call("journal", "compare", "--config", configuration)
    assert said.code == 0, said.out + said.err
    assert said.out.startswith("here east, there west\n")
    assert call("journal", "compare", "--config", configuration, "--json").answer("journal-compare")["ok"] is True


@pytest.mark.servers
def test_compare_names_the_first_difference_and_exits_with_1(day: Day, spoiled: str) -> None:
    said = call("journal", "compare", "--dsn", day[1], "--peer-dsn", spoiled)
    assert said.code == 1
    assert "✗ settle partition 0: segment 3, position 55: they differ in version" in said.out
    said = call("journal", "compare", "--dsn", day[1], "--peer-dsn", spoiled, "--json")
    assert said.code == 1
    journals = said.answer("journal-compare")["journals"]
    assert [one["difference"] and one["difference"]["columns"] for one in journals] == [None, ["version"], None]


@pytest.mark.servers
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("verify", "--dsn", "{dsn}", "--stage", "nobody"), 3, "no journal of such a stage"),
        (("verify", "--dsn", "{dsn}", "--site", "east"), 2, "--dsn names the database itself"),
        (("verify", "--dsn", "host=127.0.0.1 port=1"), 4, "does not answer"),
        (("verify", "--dsn", "{dsn}", "--config", "x.yaml"), 2, "--dsn names the database itself"),
        (("compare", "--dsn", "{dsn}"), 2, "nothing to compare with"),
        (("compare", "--peer-dsn", "{dsn}"), 2, "--peer-dsn goes with --dsn"),
        (("verify", "--config", "{config}", "--site", "north"), 2, "there is no site 'north'"),
        (("show", "--dsn", "{dsn}", "--from", "0"), 2, "0"),
    ],
)
def test_a_wrong_question_is_refused_in_one_sentence(
    day: Day, configuration: str, arguments: tuple[str, ...], code: int, message: str
) -> None:
    said = call("journal", *(word.format(dsn=day[1], config=configuration) for word in arguments))
    assert said.code == code, said.err
    assert message in said.err
    assert said.out == ""


@pytest.mark.servers
def test_schema_print_gives_every_file_in_order() -> None:
    said = call("schema", "print")
    places = [said.out.index(f"-- {name}\n") for name, _ in schema_files()]
    assert places == sorted(places)
    answer = call("schema", "print", "--json").answer("schema-print")
    assert [(one["name"], one["text"]) for one in answer["files"]] == schema_files()


@pytest.mark.servers
def test_schema_apply_makes_the_tables_and_changes_nothing_the_second_time(lab: Layout) -> None:
    _, dsn = new_database(lab)
    assert call("journal", "verify", "--dsn", dsn).code == 3
    first = call("schema", "apply", "--dsn", dsn, "--json").answer("schema-apply")
    assert first["files"] == [name for name, _ in schema_files()]
    with superuser(dsn) as connection:
        before = connection.execute(_DEFINITIONS).fetchall()
    said = call("schema", "apply", "--dsn", dsn)
    assert said.code == 0, said.err
    assert f"{len(first['files'])} files were run" in said.out
    with superuser(dsn) as connection:
        assert connection.execute(_DEFINITIONS).fetchall() == before


@pytest.mark.servers
def test_the_first_epoch_is_opened_once_and_by_a_site_of_the_configuration(lab: Layout, tmp_path: Path) -> None:
    _, dsn = new_database(lab)
    path = tmp_path / "zerotail.yaml"
    databases = {"east": "host=127.0.0.1 port=1", "west": dsn}
    kafka = {"east": {"bootstrap": "127.0.0.1:1"}, "west": {"bootstrap": "127.0.0.1:2"}}
    sites = {name: {"kafka": kafka[name], "database": {"dsn": databases[name]}} for name in databases}
    path.write_text(yaml.safe_dump({"name": "begun", "sites": sites}))
    apply = ("schema", "apply", "--config", str(path), "--site", "west", "--first-epoch")
    for _ in range(2):  # without tables, then without an epoch
        with pytest.raises(Refused) as refused:
            prepare(load(str(path)), SiteName("west"))
        assert refused.value.code == "ZT467"
        said = call("run", "emitter", "--config", str(path), "--site", "west", "--json")
        assert (said.code, said.answer("error")["code"]) == (3, "ZT467")
        assert call("schema", "apply", "--dsn", dsn).code == 0
    assert call(*apply, "--json").answer("schema-apply")["epoch"] == 257
    listed = {name: sites[name] for name in ("west", "east")}
    path.write_text(yaml.safe_dump({"name": "begun", "sites": listed}, sort_keys=False))
    assert "no epoch was opened" in call(*apply).out
    with superuser(dsn) as connection:
        assert one_row(connection, "select epoch, site, phase from zerotail.epoch") == (257, "west", "live")
        assert read_numbers(connection) == {"east": 0, "west": 1}
    installations = call("version", "--config", str(path), "--json").answer("version")["installations"]
    assert installations["west"] in call(*apply).out
    assert installations["east"].startswith("? the database at 127.0.0.1:1 does not answer")
    assert call("schema", "apply", "--dsn", dsn, "--first-epoch").code == 2
    listed["west"] = {**sites["west"], "database": {"dsn": "host=127.0.0.1 port=2"}}
    path.write_text(yaml.safe_dump({"name": "begun", "sites": listed}, sort_keys=False))
    assert "no epoch was opened" in call(*apply, "--dsn", dsn).out, "as somebody else than the configuration says"


@pytest.mark.servers
def test_a_standby_refuses_the_schema(configuration: str) -> None:
    said = call("schema", "apply", "--config", configuration, "--site", "west")
    assert said.code == 3
    assert "read-only" in said.err


@pytest.mark.nightly
def test_reconcile_answers_in_both_forms(configuration: str, day: Day, spoiled: str) -> None:
    said = call("reconcile", "--config", configuration)
    assert said.code == 0, said.err
    assert len(said.err.splitlines()) == 1, "nothing of what Java says"
    assert said.out.startswith("✓ every row was applied exactly once, the journal hangs together, both sites equal\n")
    said = call("reconcile", "--dsn", spoiled, "--json")
    assert said.code == 1
    answer = said.answer("reconcile")
    assert answer["ok"] is False
    assert answer["found"]["counts"] == {"broken": 1}
    assert answer["found"]["differences"][0]["segment"] == 3


_DEFINITIONS = """
select c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, c.relacl::text,
       (select array_agg(tgname order by tgname) from pg_trigger where tgrelid = c.oid)::text
  from pg_class c join pg_attribute a on a.attrelid = c.oid join pg_namespace n on n.oid = c.relnamespace
 where n.nspname = 'zerotail' and a.attnum > 0 order by c.relname, a.attnum
"""
