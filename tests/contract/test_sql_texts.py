"""Every SQL text is constant, or composed of identifiers and literals by psycopg (E28).

Read from the source: what is executed is a constant, a name in capitals (a constant of a module, made of constants
only), an f-string or a sum of such, or a composition of `psycopg.sql`. What a name in small letters holds is looked up
in the function around it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import zerotail
from zerotail.config import ConfigurationProblems, load_values

pytestmark = pytest.mark.fast

SOURCE = Path(zerotail.__file__).parent
EXECUTE = {"execute": 0, "executemany": 0, "copy": 0, "one_row": 1, "send_query": 0}
GIVEN = {
    "postgres/bulk.py": ("b'copy ' + into + b' from stdin (format binary)'", "table and columns, named by the callers"),
    "postgres/connection.py": ("query.encode()", "the text that `one_row` was given: its callers are read, too"),
    "postgres/gate.py": ("query.encode()", "one of two constants"),
    "postgres/outbox.py": (
        "f'update zerotail.lane set {change} {_WHERE} and epoch = %s and incarnation = %s'.encode()",
        "what changes, named by the callers",
    ),
    "postgres/owed.py": ("_OWED.format(condition=condition).encode()", "one of two constants"),
    "postgres/places.py": ("move", "a statement composed by `psycopg.sql` in another function"),
    "postgres/poison.py": ("_RECORD.format(unheard=_UNHEARD).encode()", "two constants"),
    "postgres/receipt.py": ("carry_out", "the statement that the user configures for a channel: it is theirs"),
    "postgres/rights.py": ("f'select {asked}'", "constants, about one of two roles"),
    "postgres/schema/__init__.py": ("text.encode()", "the schema's files"),
    "postgres/standstill.py": ("locks", "constants of the callers"),
    "postgres/tail.py": ("query.encode()", "constants of the same module"),
    "postgres/transaction.py": ("begin", "constants of the same module"),
    "postgres/way_in.py": ("text.encode()", "constants of the same module"),
}
"""What a function is given by callers, which hold it as a constant; the text, and where it comes from."""
MORE = {"postgres/standstill.py": "sessions", "postgres/transaction.py": "commit"}


def statements(tree: ast.Module) -> Iterator[tuple[ast.Call, ast.expr, ast.AST]]:
    """Every call that executes something, what it executes, and the function around it."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for call in ast.walk(function):
            if isinstance(call, ast.Call):
                name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
                place = EXECUTE.get(name)
                if place is not None and len(call.args) > place:
                    yield call, call.args[place], function


def is_static(text: ast.expr, function: ast.AST, seen: frozenset[str] = frozenset()) -> bool:
    """Whether an expression can hold nothing but what stands in the source."""
    match text:
        case ast.Constant():
            return True
        case ast.JoinedStr(values=parts):
            return all(is_static(part, function, seen) for part in parts)
        case ast.FormattedValue(value=value):
            return is_static(value, function, seen)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return is_static(left, function, seen) and is_static(right, function, seen)
        case ast.IfExp(body=body, orelse=other):
            return is_static(body, function, seen) and is_static(other, function, seen)
        case ast.Call(func=ast.Attribute(value=value, attr="encode")):
            return is_static(value, function, seen)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="sql"), attr="SQL" | "Identifier" | "Literal")):
            return text.func.attr != "SQL" or all(is_static(one, function, seen) for one in text.args)  # type: ignore[attr-defined]
        case ast.Call(func=ast.Attribute(value=value, attr="format" | "join")):
            return is_static(value, function, seen) and "sql.SQL" in ast.unparse(value)
        case ast.Name(id=name) if name.lstrip("_").isupper():
            return True
        case ast.Attribute(attr=name) if name.lstrip("_").isupper():
            return True
        case ast.Name(id=name) if name not in seen:
            return _local_is_static(name, function, seen | {name})
    return False


def _local_is_static(name: str, function: ast.AST, seen: frozenset[str]) -> bool:
    given = [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in node.targets)
    ]
    return bool(given) and all(is_static(value, function, seen) for value in given)


def dynamic_texts(path: Path) -> list[str]:
    """What is executed in a file and may hold more than the source says."""
    tree = ast.parse(path.read_text())
    return sorted(
        {
            f"line {call.lineno}: {ast.unparse(text)}"
            for call, text, function in statements(tree)
            if not is_static(text, function)
        }
    )


def test_all_are() -> None:
    found = {
        str(path.relative_to(SOURCE)): {text.partition(": ")[2] for text in dynamic_texts(path)}
        for path in sorted(SOURCE.rglob("*.py"))
        if "simulation" not in path.parts
    }
    given = {name: {text, MORE.get(name, text)} for name, (text, _) in GIVEN.items()}
    assert {name: texts for name, texts in found.items() if texts} == given


@pytest.mark.parametrize(
    "planted",
    [
        "connection.execute(f'select * from {table}')",
        "connection.execute('select ' + what)",
        "connection.execute(f'drop role {name}'.encode())",
        "one_row(connection, f\"select '{name}'\")",
        "text = f'listen {name}'\n    connection.execute(text)",
        "connection.execute(sql.SQL(f'drop role {name}'))",
    ],
)
def test_a_text_with_a_value_in_it_is_noticed(planted: str, tmp_path: Path) -> None:
    file = tmp_path / "planted.py"
    file.write_text(f"def planted(connection, table, what, name):\n    {planted}\n")
    assert len(dynamic_texts(file)) == 1


HOSTILE = ("x'; drop table zerotail.epoch; --", 'x"; drop role a; --', "x\\", "x y", "x%s", "x\0y", "${env:X}", "")
PLACES = ("sites", "topics", "producers", "stages", "channels")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_that_could_be_more_than_a_name_is_configured(place: str, name: str) -> None:
    folder = Path(__file__).parents[2] / "examples" / "bank"
    values = yaml.safe_load((folder / "zerotail.yaml").read_text())
    values[place] = {name if number == 0 else known: one for number, (known, one) in enumerate(values[place].items())}
    with pytest.raises(ConfigurationProblems) as refused:
        load_values(values, folder)
    assert any(place in str(problem) for problem in refused.value.problems)
