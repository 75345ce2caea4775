"""The configuration: one YAML file, read strictly, with the place of every value and of every problem.

    configuration = load(path, os.environ, flags)       all problems at once, as `ConfigurationProblems`
    configuration.sites["east"].database.dsn.reveal()   a secret is looked up at the moment it is used

The path of a value:

    document   bytes → tree, with lines and columns         origin    where a value was written
    override   environment and flags over the tree          tree      sections, lists and texts
    model      tree → frozen sections                       channel, field, scalar, address, client, secret
    check      what sections must fulfil together           sentence  pydantic's errors in our words
    loading    all of it in order                           showing   effective values for the screen
"""

from zerotail.config.channel import Channel, HttpChannel, KafkaChannel, PostgresChannel, TopicChannel
from zerotail.config.loading import (
    FILE_NAME,
    FILE_VARIABLE,
    Loaded,
    find_configuration_file,
    load,
    load_values,
    load_with_origins,
    problems,
    shown_path,
)
from zerotail.config.model import (
    Configuration,
    Database,
    Kafka,
    Mirror,
    Objectives,
    Producer,
    Restore,
    Site,
    Spark,
    Stage,
    Takeover,
    Topic,
)
from zerotail.config.origin import ByDefault, InEnvironment, InFile, InProgram, OnCommandLine, Origin
from zerotail.config.override import RESERVED_VARIABLES, Flag
from zerotail.config.problem import ConfigurationProblems, Problem
from zerotail.config.secret import HIDDEN, Secret
from zerotail.config.shape import json_schema
from zerotail.config.showing import origins, render, shown_values

__all__ = [
    "FILE_NAME",
    "FILE_VARIABLE",
    "HIDDEN",
    "RESERVED_VARIABLES",
    "ByDefault",
    "Channel",
    "Configuration",
    "ConfigurationProblems",
    "Database",
    "Flag",
    "HttpChannel",
    "InEnvironment",
    "InFile",
    "InProgram",
    "Kafka",
    "KafkaChannel",
    "Loaded",
    "Mirror",
    "Objectives",
    "OnCommandLine",
    "Origin",
    "PostgresChannel",
    "Problem",
    "Producer",
    "Restore",
    "Secret",
    "Site",
    "Spark",
    "Stage",
    "Takeover",
    "Topic",
    "TopicChannel",
    "find_configuration_file",
    "json_schema",
    "load",
    "load_values",
    "load_with_origins",
    "origins",
    "problems",
    "render",
    "shown_path",
    "shown_values",
]
