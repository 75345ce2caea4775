"""What sections must fulfil together: names that are used exist, sites differ, nothing runs in circles.

The checks look at the tree, not at the model, so that they speak even when other values are wrong: all
problems at once. A section that is itself malformed is left out of them; its own problem is reported
elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from zerotail.config.address import brokers_of, connection_options, database_place, looks_secret
from zerotail.config.encryption import everything_is_encrypted
from zerotail.config.problem import Key, Problem, Unfit, shown_word, suggested
from zerotail.config.secret import has_reference, is_reference_only, template_of
from zerotail.config.tree import (
    Node,
    Section,
    entries_of,
    find,
    find_text,
    origin_of_key,
    origin_of_value,
    texts_of,
)

NAMED_SECTIONS = ("sites", "topics", "producers", "stages", "channels", "clusters")


def check(tree: Node) -> Iterator[Problem]:
    """Every problem between sections."""
    for one_check in _CHECKS:
        yield from one_check(tree)


def _at(tree: Node, key: Key, sentence: str, suggestion: str = "") -> Problem:
    return Problem(origin_of_value(tree, key), key, sentence, suggestion)


def _unknown(tree: Node, key: Key, what: str, name: str, known: Mapping[str, object]) -> Iterator[Problem]:
    """A problem if `name` is not among the known ones."""
    if name not in known:
        yield _at(tree, key, f"there is no {what} named {shown_word(name)}", suggested(name, known))


def _is_malformed(tree: Node, section: str) -> bool:
    return not isinstance(find(tree, (section,)), Section | None)


def _names_that_are_used_exist(tree: Node) -> Iterator[Problem]:
    topics, channels = entries_of(tree, ("topics",)), entries_of(tree, ("channels",))
    uses: list[tuple[Key, str, Mapping[str, object]]] = [(("prefer",), "site", entries_of(tree, ("sites",)))]
    uses += [(("producers", name, "topic"), "topic", topics) for name in entries_of(tree, ("producers",))]
    uses += [(("stages", name, "consumes"), "topic", topics) for name in entries_of(tree, ("stages",))]
    for stage in entries_of(tree, ("stages",)):
        uses += [
            (("stages", stage, "emits", n), "channel", channels) for n, _ in texts_of(tree, ("stages", stage, "emits"))
        ]
    uses += [
        (("channels", name, "topic"), "topic", topics)
        for name in channels
        if find_text(tree, ("channels", name, "kind")) == "topic"
    ]
    for key, what, known in uses:
        name = find_text(tree, key)
        if name is not None and not _is_malformed(tree, f"{what}s"):
            yield from _unknown(tree, key, what, name, known)


def _names_differ_by_more_than_looks(tree: Node) -> Iterator[Problem]:
    for section in NAMED_SECTIONS:
        first: dict[str, str] = {}
        for name in entries_of(tree, (section,)):
            folded = folded_name(name)
            if folded in first:
                key = (section, name)
                sentence = f"differs from {shown_word(first[folded])} only in capitals, dots, - and _"
                yield Problem(origin_of_key(tree, key), key, sentence, "choose a name that cannot be mistaken")
            first.setdefault(folded, name)
    for name in entries_of(tree, ("clusters",)):
        if name in entries_of(tree, ("sites",)):
            key = ("clusters", name)
            yield Problem(origin_of_key(tree, key), key, "is already the name of a site")


def folded_name(name: str) -> str:
    """A name without what is easily mistaken; also how a name is spelt in an environment variable."""
    return name.casefold().replace("-", "_").replace(".", "_")


def _sites_are_two_places(tree: Node) -> Iterator[Problem]:
    sites = list(entries_of(tree, ("sites",)))
    if len(sites) != 2:
        if isinstance(find(tree, ("sites",)), Section):
            yield _at(tree, ("sites",), f"must name exactly two sites; there are {len(sites)}")
        return
    one, other = sites
    dsn: Key = ("sites", other, "database", "dsn")
    place = database_place(find_text(tree, ("sites", one, "database", "dsn")) or "")
    if place is not None and place == database_place(find_text(tree, dsn) or ""):
        yield _at(tree, dsn, f"leads to the same database as that of {shown_word(one)}; each site has its own")
    bootstrap: Key = ("sites", other, "kafka", "bootstrap")
    if _brokers(tree, ("sites", one, "kafka", "bootstrap")) & _brokers(tree, bootstrap):
        sentence = f"names a broker that is also one of {shown_word(one)}; each site has its own cluster"
        yield _at(tree, bootstrap, sentence)


def _a_site_has_one_database(tree: Node) -> Iterator[Problem]:
    """Who answers the gate is who is promoted: behind several addresses that could be two servers."""
    for site in entries_of(tree, ("sites",)):
        key: Key = ("sites", site, "database", "dsn")
        try:
            options = connection_options(template_of(find_text(tree, key) or ""))
        except (Unfit, ValueError):
            continue  # somebody else's problem
        listed = next((name for name in ("host", "hostaddr", "port") if "," in options.get(name, "")), None)
        balanced = options.get("load_balance_hosts", "disable") != "disable"
        if listed or balanced:
            yield _at(
                tree,
                key,
                "leads to several servers: one could answer the gate, and another one be promoted",
                "name one address, such as a virtual one that always leads to the same server",
            )


def _brokers(tree: Node, key: Key) -> set[str]:
    try:
        return {broker.casefold() for broker in brokers_of(find_text(tree, key) or "")}
    except Unfit:
        return set()


def _each_channel_has_one_stage(tree: Node) -> Iterator[Problem]:
    emitted_by: dict[str, str] = {}
    for stage in entries_of(tree, ("stages",)):
        for index, channel in texts_of(tree, ("stages", stage, "emits")):
            key: Key = ("stages", stage, "emits", index)
            if emitted_by.get(channel) == stage:
                yield _at(tree, key, f"the channel {shown_word(channel)} stands twice in this list")
            elif channel in emitted_by:
                owner = shown_word(emitted_by[channel])
                sentence = f"the channel {shown_word(channel)} already belongs to stage {owner}"
                yield _at(tree, key, sentence, "give each stage a channel of its own: numbers are dense per channel")
            emitted_by.setdefault(channel, stage)


def _stages_make_no_circle(tree: Node) -> Iterator[Problem]:
    follows: dict[str, list[str]] = {}
    for stage in entries_of(tree, ("stages",)):
        targets = [
            find_text(tree, ("channels", name, "topic"))
            for _, name in texts_of(tree, ("stages", stage, "emits"))
            if find_text(tree, ("channels", name, "kind")) == "topic"
        ]
        follows[stage] = [
            other
            for other in entries_of(tree, ("stages",))
            if find_text(tree, ("stages", other, "consumes")) in targets
            and find_text(tree, ("stages", other, "consumes")) is not None
        ]
    reported: set[frozenset[str]] = set()
    for stage in follows:
        circle = _find_circle(stage, follows)
        if not circle or frozenset(circle) in reported:
            continue
        reported.add(frozenset(circle))
        if not any(find_text(tree, ("stages", name, "feedback")) for name in circle):
            way = " → ".join(shown_word(name) for name in (*circle, stage))
            sentence = f"the stages feed each other in a circle: {way}"
            yield _at(tree, ("stages", stage, "emits"), sentence, "say why under feedback, or break the circle")


def _find_circle(start: str, follows: Mapping[str, list[str]]) -> tuple[str, ...] | None:
    """The shortest way from a stage back to itself."""
    ways: list[tuple[str, ...]] = [(start,)]
    seen: set[str] = set()
    while ways:
        way = ways.pop(0)
        for name in follows.get(way[-1], ()):
            if name == start:
                return way
            if name not in seen:
                seen.add(name)
                ways.append((*way, name))
    return None


def _mirrors_join_two_clusters(tree: Node) -> Iterator[Problem]:
    clusters = {**entries_of(tree, ("sites",)), **entries_of(tree, ("clusters",))}
    mirrors = find(tree, ("mirrors",))
    for index in range(len(getattr(mirrors, "items", ()))):
        ends: dict[str, set[str]] = {}
        for end in ("source", "target"):
            key: Key = ("mirrors", index, end)
            single = find_text(tree, key)
            named = [(key, single)] if single is not None else [((*key, n), name) for n, name in texts_of(tree, key)]
            ends[end] = {name for _, name in named}
            for name_key, name in named:
                if not _is_malformed(tree, "sites"):
                    yield from _unknown(tree, name_key, "site or cluster", name, clusters)
        for name in sorted(ends["source"] & ends["target"]):
            yield _at(tree, ("mirrors", index, "target"), f"{shown_word(name)} is both source and target")
    yield from _mirrors_have_names(tree, len(getattr(mirrors, "items", ())))


def _mirrors_have_names(tree: Node, count: int) -> Iterator[Problem]:
    """Commands, and what Kafka keeps for a mirror, go by its name."""
    taken: dict[str, int] = {}
    for index in range(count):
        key: Key = ("mirrors", index)
        given = find_text(tree, (*key, "name"))
        ends = [name for end in ("source", "target") for name in _names_at(tree, (*key, end))]
        name = given or "-".join(ends)
        if folded_name(name) in taken:
            sentence = f"is called {shown_word(name)}, as mirrors[{taken[folded_name(name)]}] is"
            yield _at(tree, (*key, "name") if given else key, sentence, "give each mirror a name of its own")
        taken.setdefault(folded_name(name), index)


def _names_at(tree: Node, key: Key) -> list[str]:
    single = find_text(tree, key)
    return [single] if single is not None else [name for _, name in texts_of(tree, key)]


def _secrets_stand_by_reference(tree: Node) -> Iterator[Problem]:
    """Settings and headers whose names promise a secret; readers check connection strings and URLs."""
    settings: list[Key] = [("spark", "settings")]
    settings += [("sites", site, "kafka", "settings") for site in entries_of(tree, ("sites",))]
    settings += [("clusters", name, "settings") for name in entries_of(tree, ("clusters",))]
    settings += [("channels", name, "settings") for name in entries_of(tree, ("channels",))]
    headers: list[Key] = [("channels", name, "headers") for name in entries_of(tree, ("channels",))]
    for section in settings + headers:
        fits: Callable[[str], bool] = has_reference if section in headers else is_reference_only
        for name in entries_of(tree, section):
            written = find_text(tree, (*section, name))
            if written is not None and looks_secret(name) and not _is_kept_elsewhere(written, fits):
                how = "write ${env:NAME} or ${file:path} and keep the value there"
                yield _at(tree, (*section, name), "holds a secret in plain text", how)


def _is_kept_elsewhere(written: str, fits: Callable[[str], bool]) -> bool:
    try:
        return fits(template_of(written).masked)
    except Unfit:
        return True  # reported by its reader


_CHECKS = (
    _names_that_are_used_exist,
    _names_differ_by_more_than_looks,
    _sites_are_two_places,
    _a_site_has_one_database,
    _each_channel_has_one_stage,
    _stages_make_no_circle,
    _mirrors_join_two_clusters,
    _secrets_stand_by_reference,
    everything_is_encrypted,
)
