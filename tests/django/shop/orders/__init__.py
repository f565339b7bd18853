"""The application that takes orders."""
