"""Orders, and what was heard of their tasks."""

from django.db import models


class Order(models.Model):
    """An order, which a task marks as paid."""

    email = models.CharField(max_length=100)
    is_paid = models.BooleanField(default=False)


class Heard(models.Model):
    """A signal of a task, in the order in which they came."""

    signal = models.CharField(max_length=20)
    result_id = models.CharField(max_length=100)
    status = models.CharField(max_length=20)
    attempts = models.IntegerField()
