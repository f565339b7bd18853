"""Django's tasks on headrace."""
