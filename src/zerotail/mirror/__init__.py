"""Mirrors: whole topics copied between clusters, beside the order journal and also for topics that are not ours.

    flows       configuration → flows                 topics     what a topic at the target is made like
    planning    observe → plan, for `mirror plan`     drawing    the plan as a picture
    standing    how far each partition is             translation  positions of consumer groups
    maker       MirrorMaker 2: its configuration, its process, its metrics
    canary, load, advice                              rehearsal and tuning

Spark carries the records in `zerotail.spark.mirror_query`; Kafka's side of it is `zerotail.kafka.copy`.
"""
