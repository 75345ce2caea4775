"""The only home of the Kafka client: everything else speaks to Kafka through this package."""
