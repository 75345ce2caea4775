"""What an acknowledgement of Kafka is worth: settings against faults on a real cluster."""
