"""No data lost: are brokers, topics, clients and databases set so, here and at the other site?

facts        what was seen, as values; a fact that was not seen cannot pass
rules/       what must hold, as data: one value per rule
judgement    rules over facts; pure
client_file  property files of other services, and the defaults behind what they do not say
own_clients  what our own clients run with
observation  asks both sites, with deadlines
shown, page, manual   the answer as text, as HTML, and the rules as documentation
"""
