"""A shop's web service and its worker."""
