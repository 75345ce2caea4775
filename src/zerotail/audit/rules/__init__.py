"""All rules, in the order in which a report shows them. A rule's id is the name of its page and is never reused."""

from __future__ import annotations

from zerotail.audit.rule import AnyRule
from zerotail.audit.rules import clusters, consumers, databases, pairs, producers, spark, topics

RULES: tuple[AnyRule, ...] = (
    *clusters.RULES,
    *topics.RULES,
    *producers.RULES,
    *consumers.RULES,
    *spark.RULES,
    *databases.RULES,
    *pairs.RULES,
)
