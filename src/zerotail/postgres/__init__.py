"""The only home of psycopg: everything else speaks to PostgreSQL through this package."""
