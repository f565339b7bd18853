"""The roles of the storage on Redis, a class each: what `RedisStorage` puts together."""
