"""Which worker of the lab has which device, in the database that all workers share."""

from dataclasses import dataclass

from sqlalchemy import Column, String, Table, delete, func, insert, select, update

from server.lab.store import TABLES, Store, StoreError

WORKERS = Table(
    "lab_workers", TABLES,
    Column("address", String(200), primary_key=True),
    Column("key", String(64), nullable=False),
)  # fmt: skip
DEVICES = Table(
    "lab_devices", TABLES,
    Column("name", String(40), primary_key=True),
    Column("address", String(200), nullable=False, index=True),
)  # fmt: skip


@dataclass(frozen=True)
class Worker:
    """A process that serves the lab: where the others reach it, and the key by which it knows them."""

    address: str
    key: str


class Directory:
    """The workers of a lab and the names of their devices. Every method waits for the database.

    A worker need not say that it is alive: who finds that nobody listens at its address calls `forget`.

    Raises: StoreError, from every method
    """

    def __init__(self, store: Store, me: Worker) -> None:
        self.me, self._store = me, store
        store.write(delete(DEVICES).where(DEVICES.c.address == me.address))  # of an earlier process at this address
        store.write(delete(WORKERS).where(WORKERS.c.address == me.address))
        store.write(insert(WORKERS).values(address=me.address, key=me.key))

    def claim(self, name: str) -> str:
        """Notes that a device is here; the address of the worker that has one of this name, "" if none had it."""
        try:
            self._store.write(insert(DEVICES).values(name=name, address=self.me.address))
        except StoreError as error:
            if not error.taken:
                raise
            return self.address_of(name)
        return ""

    def take_over(self, name: str, before: str) -> bool:
        """Notes that a device is here that a worker no longer has; False if another one was quicker."""
        mine = update(DEVICES).where(DEVICES.c.name == name, DEVICES.c.address == before)
        return self._store.write(mine.values(address=self.me.address)) == 1

    def free(self, name: str) -> None:
        """Notes that a device that was here is gone."""
        self._store.write(delete(DEVICES).where(DEVICES.c.name == name, DEVICES.c.address == self.me.address))

    def address_of(self, name: str) -> str:
        """The address of the worker that has a device, "" if none has it."""
        found = self._store.read(select(DEVICES.c.address).where(DEVICES.c.name == name))
        return str(found[0]["address"]) if found else ""

    def worker(self, address: str) -> Worker | None:
        """The worker at an address."""
        found = self._store.read(select(WORKERS).where(WORKERS.c.address == address))
        return Worker(**found[0]) if found else None

    def others(self) -> list[Worker]:
        """All workers but this one."""
        return [Worker(**row) for row in self._store.read(select(WORKERS).where(WORKERS.c.address != self.me.address))]

    def names(self) -> list[str]:
        """The names of all devices."""
        return [row["name"] for row in self._store.read(select(DEVICES.c.name).order_by(DEVICES.c.name))]

    def count(self) -> int:
        """How many devices there are."""
        return int(self._store.read(select(func.count().label("count")).select_from(DEVICES))[0]["count"])

    def forget(self, worker: Worker) -> None:
        """Takes a worker that is gone out of the lab, and its devices with it."""
        row = delete(WORKERS).where(WORKERS.c.address == worker.address, WORKERS.c.key == worker.key)
        if self._store.write(row):
            self._store.write(delete(DEVICES).where(DEVICES.c.address == worker.address))
