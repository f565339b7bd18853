"""Fires schedules when they are due, and keeps those that an app declares as it declares them."""
