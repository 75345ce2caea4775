"""The processes of a site: what a configuration asks for, prepared, started and kept running."""
