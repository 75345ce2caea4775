"""Ways to the outside: the sender's side of each kind of receiver."""
