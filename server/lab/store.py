"""What was measured on devices, in a database: SQLite in a file, or any that SQLAlchemy has an address for."""

import json
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    Column,
    DateTime,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    create_engine,
    delete,
    insert,
    select,
)
from sqlalchemy.exc import IntegrityError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from server.lab.clean import clean, clean_text, loads

MAX_VALUE_CHARS = 256_000  # of an answer's JSON that is kept whole
MAX_LINES = 20_000  # of one tuning log
PLACE = ("adapter", "browser", "engine")  # what a line of a tuning log says of where it holds

MEMORY = "sqlite://"  # forgotten with the process; all threads share its one connection
IN_MEMORY: dict[str, Any] = {"poolclass": StaticPool, "connect_args": {"check_same_thread": False}}

TABLES = MetaData()
RESULTS = Table(
    "lab_results", TABLES,
    Column("id", Integer, primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("device", String(40), nullable=False),
    Column("about", JSON, nullable=False),
    Column("action", String(40), nullable=False, index=True),
    Column("model", String(200), nullable=False),
    Column("backend", String(40), nullable=False),
    Column("value", JSON, nullable=False),
)  # fmt: skip
TUNINGS = Table(
    "lab_tunings", TABLES,
    Column("id", Integer, primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("device", String(40), nullable=False),
    *(Column(name, String(200), nullable=False) for name in PLACE),
    Column("key", String(500), nullable=False),
    Column("line", JSON, nullable=False),
    UniqueConstraint(*PLACE, "key"),
)  # fmt: skip


class StoreError(Exception):
    """The database cannot be opened, read or written; the message says why.

    `away`: it may be there again soon, as when it is started anew. `taken`: there is such a row already.
    """

    def __init__(self, text: str, away: bool = False, taken: bool = False) -> None:
        self.away, self.taken = away, taken
        super().__init__(text)


class Store:
    """The lab's database. Every method waits for it: call them from a thread."""

    def __init__(self, address: str) -> None:
        self._lock = threading.Lock()
        try:
            self.engine = create_engine(address, **(IN_MEMORY if address == MEMORY else {"pool_pre_ping": True}))
            try:
                TABLES.create_all(self.engine)
            except SQLAlchemyError:  # another process may have made them at this moment
                TABLES.create_all(self.engine)
        except (SQLAlchemyError, ImportError, ValueError) as error:
            raise StoreError(f"the lab's database cannot be opened: {_first_line(error)}") from error

    def add_result(self, device: str, about: Mapping[str, Any], facts: Mapping[str, str], value: Any) -> None:
        """Keeps what a device answered; `facts` are its action, model and backend.

        Raises: StoreError
        """
        value, about = clean(value), clean(about)
        if len(json.dumps(value)) > MAX_VALUE_CHARS:
            value = {"too_long": True}
        row = {"at": datetime.now(UTC), "device": device, "about": dict(about), **facts, "value": value}
        self.write(insert(RESULTS).values(row))

    def add_tunings(self, device: str, text: str) -> int:
        """Keeps the lines of a tuning log, each in place of an earlier one of the same key; how many.

        Raises: StoreError, also for lines that are none
        """
        lines = {}
        for line in text.splitlines()[:MAX_LINES]:
            row = _line(line)
            place = [clean_text(str(row[name]), 200) for name in PLACE]
            lines[(*place, clean_text(str(row.get("plan", row.get("key"))), 500))] = row
        at, work = datetime.now(UTC), list[Any]()
        for (*place, key), row in lines.items():
            where = dict(zip(PLACE, place, strict=True)) | {"key": key}
            work.append(delete(TUNINGS).where(*(TUNINGS.c[name] == value for name, value in where.items())))
            work.append(insert(TUNINGS).values({"at": at, "device": device, **where, "line": row}))
        try:
            self.write(*work)
        except StoreError as error:
            if not error.taken:
                raise
            self.write(*work)  # another worker kept the same line at this moment, which is replaced now
        return len(lines)

    def results(self, limit: int = 500) -> list[dict[str, Any]]:
        """The latest answers, the newest first.

        Raises: StoreError
        """
        rows = self.read(select(RESULTS).order_by(RESULTS.c.id.desc()).limit(limit))
        return [{**clean(row), "at": row["at"].isoformat(timespec="seconds")} for row in rows]  # older rows too

    def tunings(self) -> str:
        """All that was tuned, as the lines of a tuning log.

        Raises: StoreError
        """
        return "".join(
            json.dumps(clean(row["line"])) + "\n" for row in self.read(select(TUNINGS).order_by(TUNINGS.c.id))
        )

    def close(self) -> None:
        """Lets the database go."""
        self.engine.dispose()

    def write(self, *work: Any) -> int:
        """Executes statements, all or none; how many rows the last one changed.

        Raises: StoreError
        """
        rows = 0
        try:
            with self._lock, self.engine.begin() as connection:
                for statement in work:
                    rows = connection.execute(statement).rowcount
        except SQLAlchemyError as error:
            raise self._refused("took nothing", error) from error
        return rows

    def read(self, query: Any) -> list[dict[str, Any]]:
        """The rows that a query finds.

        Raises: StoreError
        """
        try:
            with self._lock, self.engine.connect() as connection:
                return [dict(row._mapping) for row in connection.execute(query)]
        except SQLAlchemyError as error:
            raise self._refused("cannot be read", error) from error

    def _refused(self, what: str, error: SQLAlchemyError) -> StoreError:
        line = _first_line(error)
        reached = self.engine.dialect.name == "sqlite" and "locked" not in line  # a file: it is there, or it is not
        away = isinstance(error, OperationalError | InterfaceError) and not reached
        return StoreError(f"the lab's database {what}: {line}", away, isinstance(error, IntegrityError))


def _line(text: str) -> dict[str, Any]:
    try:
        row = clean(loads(text))
    except (ValueError, RecursionError) as error:
        raise StoreError("a line of a tuning log is not JSON") from error
    if not isinstance(row, dict) or not {*PLACE} <= {*row} or not ({"key", "plan"} & {*row}):
        raise StoreError("a line of a tuning log does not say what it is of, or where it holds")
    return row


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
