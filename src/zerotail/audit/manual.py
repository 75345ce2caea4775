"""The rules as documentation: a page for each, and a list. `python -m zerotail.audit.manual docs/audit` writes them."""

from __future__ import annotations

import sys
from pathlib import Path

from zerotail.audit.rule import AnyRule, repair_line
from zerotail.audit.rules import RULES

_WEIGHTS = {
    "loss": "loses data: as it is set, one ordinary fault loses, repeats or reorders acknowledged data",
    "risk": "weakens: it takes a second fault, an older client or a mistake",
}
_NOTE = (
    "<!-- Written by `python -m zerotail.audit.manual docs/audit`; the rule itself is in src/zerotail/audit/rules. -->"
)


def pages() -> dict[str, str]:
    """File names and contents."""
    return {"README.md": _list(), **{f"{rule.id}.md": _page(rule) for rule in RULES}}


def write_pages(folder: Path) -> None:
    """Write every page, and remove those of rules that are no more."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for old in folder.glob("*.md"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text, encoding="utf-8")


def _page(rule: AnyRule) -> str:
    return f"""{_NOTE}

# {rule.id}

**{rule.title}.**

| | |
|---|---|
| looked at | {rule.looks_at} |
| a finding | {_WEIGHTS[rule.weight]} |

**Why.** {rule.why}

**The default that bites.** {rule.default}

**Repair.**

```sh
{repair_line(rule, {})}
```

[All rules](README.md) · [the audit](../audit.md)
"""


def _list() -> str:
    rows = "\n".join(f"| [{rule.id}]({rule.id}.md) | {rule.title} | {rule.weight} |" for rule in RULES)
    return f"""{_NOTE}

# The rules of the audit

`loss`: one ordinary fault is enough. `risk`: it takes a second one, an older client or a mistake. How to run it:
[the audit](../audit.md).

| rule | what holds | weight |
|---|---|---|
{rows}
"""


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
