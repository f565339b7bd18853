"""What the worker does: a module for each part of the shop."""
