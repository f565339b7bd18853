"""Tasks whose annotations name classes that are defined further down, in this or another class."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from headrace import App

app = App("memory://")


@app.task
async def ship(order: Order, *, note: str = "") -> list[Parcel]:
    return [Parcel(item, note) for item in order.items]


@app.task(executor="process")
def ship_in_process(order: Order, *, note: str = "") -> list[Parcel]:
    return [Parcel(item, note) for item in order.items]


@app.task
async def bill(invoice: Invoice) -> Invoice:
    return invoice


@dataclass
class Order:
    items: list[Item]


@dataclass
class Parcel:
    item: Item
    note: str


@dataclass
class Item:
    name: str


class Invoice(BaseModel):
    lines: list[Line]


class Line(BaseModel):
    text: str
