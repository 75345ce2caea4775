"""Ways to the outside: the sender's side of each kind of receiver.

    receiver     what every kind can do: be claimed, be sent to
    http         by the protocol of `docs/receiver-protocol.md`: R0, R1, R2, R3
    kafka        a topic outside: R0 by transactions, else R1
    postgres     rows of a database outside: R0 with the number in the transaction of the effect, else R1
    configured   the receiver that a configuration describes

A channel of kind `topic` has no module here: the next stage is its receiver, `flow.produce` its sender, and the next
stage's head the acknowledgement.
"""
