"""`zerotail schema apply` that is killed before its so-many-th statement.

    python upgrade_process.py NUMBER process|backend ARGUMENTS OF ZEROTAIL…

A file of the schema is sent as one text; here its statements go one by one, in the same transaction, so that each of
them, and each BEGIN and COMMIT, is a point at which the process or its session in the server can die. Prints how many
statements there were when it was not killed (number 0).
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from pathlib import Path
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.upgrade_statements import statements_of
from zerotail.cli import main

_execute = psycopg.Connection.execute
_command = psycopg.Connection._exec_command
_fatal, _how = int(sys.argv[1]), sys.argv[2]
_counted = itertools.count(1)


def _meet(connection: Any) -> None:
    if next(_counted) != _fatal:
        return
    if _how == "process":
        os.kill(os.getpid(), signal.SIGKILL)
    with psycopg.connect(connection.info.dsn, password=connection.info.password, autocommit=True) as other:
        _execute(other, "select pg_terminate_backend(%s, 10000)", (connection.info.backend_pid,))


def _execute_singly(self: Any, query: Any, params: Any = None, **options: Any) -> Any:
    if self.info.dbname and params is None and isinstance(query, bytes):
        cursor = None
        for statement in statements_of(query.decode()):
            _meet(self)
            cursor = _execute(self, statement.encode(), **options)
        return cursor
    _meet(self)
    return _execute(self, query, params, **options)


def _command_singly(self: Any, command: Any, *arguments: Any) -> Any:
    _meet(self)
    return _command(self, command, *arguments)


psycopg.Connection.execute = _execute_singly  # type: ignore[method-assign]
psycopg.Connection._exec_command = _command_singly  # type: ignore[method-assign,assignment]
sys.argv[1:] = sys.argv[3:]
try:
    main()
finally:
    if not _fatal:
        sys.stderr.write(f"{next(_counted) - 1} statements\n")
