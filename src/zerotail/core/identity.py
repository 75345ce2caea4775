"""The numbers and names of the protocol, each with a type of its own, so that none is taken for another.

An **epoch** is one number made of a generation, which grows at every takeover, handover, failback and change of the
database's timeline, and of the number of the site that opened it. Two sites that open a generation at the same time
therefore never get the same epoch (I21), and epochs still compare as plain numbers, at the receiver too.
"""

from __future__ import annotations

from typing import NewType

SiteName = NewType("SiteName", str)
StageName = NewType("StageName", str)
ProducerName = NewType("ProducerName", str)
ChannelName = NewType("ChannelName", str)
TopicName = NewType("TopicName", str)

Epoch = NewType("Epoch", int)
Incarnation = NewType("Incarnation", int)
"""Which start of a sender inside one epoch: claims are compared as the pair (epoch, incarnation)."""
ProducerNumber = NewType("ProducerNumber", int)
"""A producer's number in record headers and segments; the journal maps it to the name."""
PartitionNumber = NewType("PartitionNumber", int)
Serial = NewType("Serial", int)
"""Dense per producer and partition: 1, 2, 3, …; 0 means none yet."""
Position = NewType("Position", int)
"""Place in a stage's order of one partition: 0, 1, 2, …; the same at every site."""
Offset = NewType("Offset", int)
"""Kafka's number; it means something at one site only and never crosses."""
SegmentNumber = NewType("SegmentNumber", int)
"""Dense per stage and partition: 1, 2, 3, …; 0 means none yet."""
EmissionNumber = NewType("EmissionNumber", int)
"""Dense per channel and source partition: 1, 2, 3, …; 0 means none yet."""
Lsn = NewType("Lsn", int)
"""A place in the database's write-ahead log, in bytes."""
Timeline = NewType("Timeline", int)

_SITES_PER_GENERATION = 256


def epoch_of(generation: int, site_number: int) -> Epoch:
    """The epoch that site `site_number` opens as generation `generation`."""
    if generation < 1 or not 0 <= site_number < _SITES_PER_GENERATION:
        raise ValueError(f"no epoch has generation {generation} and site number {site_number}")
    return Epoch(generation * _SITES_PER_GENERATION + site_number)


def generation_of(epoch: Epoch) -> int:
    """The generation of an epoch."""
    return epoch // _SITES_PER_GENERATION


def site_number_of(epoch: Epoch) -> int:
    """The number of the site that opened an epoch."""
    return epoch % _SITES_PER_GENERATION
