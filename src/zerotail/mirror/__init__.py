"""Mirrors: whole topics copied between clusters, beside the order journal and also for topics that are not ours.

    flows        configuration → flows                   topics      what a topic at the target is made like
    planning     observe → plan, for `mirror plan`       drawing     the plan as a picture
    standing     how far each partition is               note        what a running mirror says of itself
    translation, offsets   positions of groups           verification, comparison   are the copies right?
    maker…       MirrorMaker 2: its configuration, its process, its metrics
    canary, load, advice, tuning, network                rehearsal and tuning

The rules are in `core`: `topology` (flows, principles), `provenance` (the header), `copying` (where to go on). Spark
carries the records in `spark.mirror_query`; Kafka's side of it is `kafka.copy`.
"""
