"""What it costs, measured on real servers, each ratio in one run."""
