"""Two sites, each with Kafka and PostgreSQL: when one is lost, the other goes on at the break point."""

__version__ = "0.1.0"
