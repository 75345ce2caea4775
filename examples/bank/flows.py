"""A small bank: card payments and wires are settled in order, and whoever sent one is told what became of it.

An instruction is `{"id": "w-17", "account": "a0042", "amount": -1250}`, in cents; money that leaves is negative.
Handlers are plain Python. They ask no clock, no random source and no network: the other site must come to the same end.
"""

import msgspec

from zerotail import Emission, Given, Record, State


class Payment(msgspec.Struct, omit_defaults=True):
    """What settlement needs of an instruction; `at`, in microseconds, is when it was given."""

    id: str
    account: str
    amount: int
    at: int | None = None


def to_record(instruction: bytes) -> bytes:
    """What travels through Kafka: the payment alone; remarks and addresses stay in the database."""
    return msgspec.json.encode(msgspec.json.decode(instruction, type=Payment))


class Settle:
    """Keeps a balance for each account; what would overdraw it is refused."""

    def keys(self, record: Record) -> list[str]:
        return [record.value["account"]]

    def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
        payment = record.value
        balance = state.get(payment["account"], 0) + payment["amount"]
        if settled := balance >= 0:
            state[payment["account"]] = balance
        return [Emission("bank", {"id": payment["id"], "ok": settled, "at": given.now})]


class SettleAndBook(Settle):
    """Settles in the same way, and sends what was settled on to the ledger."""

    def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
        (answer,) = super().apply(record, state, given)
        move = Emission("moves", record.value, key=record.value["account"])
        return [answer, move] if answer.value["ok"] else [answer]


class Ledger:
    """Writes the lines of each account's statement: settled payments and fees, numbered 1, 2, 3, …"""

    def keys(self, record: Record) -> list[str]:
        return [record.value["account"]]

    def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
        account, amount = record.value["account"], record.value["amount"]
        line, total = state.get(account, [0, 0])
        state[account] = [line + 1, total + amount]
        entry = {"account": account, "line": line + 1, "total": total + amount, "at": given.now}
        return [Emission("statements", entry)]
