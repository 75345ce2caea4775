"""Spark carries what the rules of `core` decide; this is the only home of pyspark."""
