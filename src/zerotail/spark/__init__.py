"""The only home of pyspark: sessions, sources, and the queries that carry the flow."""
