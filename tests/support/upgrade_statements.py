"""The statements of a file of the schema, one by one."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"--[^\n]*|'(?:[^']|'')*'|(\$\w*\$).*?\1|;|[^-'$;]+|.", re.DOTALL)


def statements_of(text: str) -> list[str]:
    """The statements of a text: a semicolon in a literal, a comment or the body of a function ends none."""
    found, statement = [], ""
    for token in _TOKEN.finditer(text):
        if token[0] == ";":
            found.append(statement)
            statement = ""
        elif not token[0].startswith("--"):
            statement += token[0]
    return [one.strip() for one in (*found, statement) if one.strip()]
