"""Orders as customers send them."""

from typing import Any


def order(number: int, *products: str) -> dict[str, Any]:
    """Return the body of an order of one of each product, at 10.00."""
    lines = [{"product": product, "price": "10.00"} for product in products or ("tea",)]
    return {"number": number, "email": "ada@example.org", "lines": lines}
