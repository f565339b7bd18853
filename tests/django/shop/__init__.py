"""A Django project with tasks; tests run it in processes of its own."""
