"""A year of flights goes through jobs and back into Spark, by ``make flights``."""
