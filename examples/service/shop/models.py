"""What goes over HTTP and into jobs: the same models for both."""

from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, Field


class Line(BaseModel):
    """So many of one product, at a price each."""

    product: Annotated[str, Field(min_length=1, max_length=100)]
    count: Annotated[int, Field(gt=0, le=1_000)] = 1
    price: Annotated[Decimal, Field(gt=0, max_digits=12, decimal_places=2)]


class Order(BaseModel):
    """What a customer buys; its number is the shop's own and given once."""

    number: Annotated[int, Field(gt=0)]
    email: Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+$")]
    lines: Annotated[list[Line], Field(min_length=1)]

    @property
    def total(self) -> Decimal:
        """The sum of all lines."""
        return sum((line.count * line.price for line in self.lines), Decimal())


class Receipt(BaseModel):
    """What comes of an order."""

    order: int
    total: Decimal


class Quote(BaseModel):
    """What an order would cost."""

    goods: Decimal
    delivery: Decimal


class Message(BaseModel):
    """A mail."""

    to: str
    subject: str
    text: str


class Pair(BaseModel):
    """Two products that were in the same orders, and in how many."""

    products: tuple[str, str]
    orders: int


class Report(BaseModel):
    """Which products are bought together."""

    orders: int
    pairs: list[Pair]
