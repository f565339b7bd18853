"""headrace as the backend of Django's tasks."""
