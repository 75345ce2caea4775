"""Two real sites on one machine: started, broken and healed by command, for rehearsals and for our own tests."""
