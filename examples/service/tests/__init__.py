"""The shop's tests."""
