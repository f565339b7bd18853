"""What the web service answers: a module for each part of the shop, put together in `main`."""
