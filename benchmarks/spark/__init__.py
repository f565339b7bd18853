"""What the Spark bridge does a second, what it costs, and how that grows."""
