"""What an operator does on the bad day: plan, carry out and resume a takeover, a handover, a failback, a rejoin.

    world      what both databases say of themselves
    held       what a copy holds, in numbers, for whoever is refused
    plan       what would be done, as a value that prints and has an id
    pipeline   the configured stages, producers and lanes, as far as a takeover has to know them
    adapters   the effects of the stories in `failover/`, carried out on real servers
    notebook   what was begun and how far it came, in a file, until a database can hold it
    takeover   handover   rejoin      observe, plan, act, report

The decisions are in `core` and `failover`; the command line parses and prints.
"""
