"""Reports: work that keeps a processor busy, in processes of its own."""

from collections import Counter
from itertools import combinations

from headrace import Context

from shop.app import app
from shop.ledger import Ledger
from shop.models import Pair, Report
from shop.settings import data_folder

STEPS = 20


@app.task(queue="reports", executor="process", timeout=600, max_attempts=2)
def bought_together(context: Context, best: int) -> Report:
    """Count which products are in the same orders, and return the most frequent pairs.

    A process shares nothing with the worker, so it opens the ledger itself.
    """
    orders = list(Ledger(data_folder()).orders())
    pairs = Counter[tuple[str, str]]()
    step = max(1, len(orders) // STEPS)
    for done, order in enumerate(orders, start=1):
        pairs.update(combinations(sorted({line.product for line in order.lines}), 2))
        if done % step == 0:
            if context.cancelled():  # asked to stop: what it returns now is no result
                break
            context.progress(done / len(orders), f"{done} of {len(orders)} orders")
            context.emit({"done": done, "total": len(orders)})
    frequent = [Pair(products=pair, orders=count) for pair, count in pairs.most_common(best)]
    return Report(orders=len(orders), pairs=frequent)
