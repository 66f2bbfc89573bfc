"""Sources and sinks that every runtime has."""

from thalweg.connectors.files import files
from thalweg.connectors.frames import spark_source
from thalweg.connectors.http_source import http_source
from thalweg.connectors.kafka import kafka
from thalweg.connectors.memory import call, collect, items
from thalweg.connectors.mqtt import mqtt
from thalweg.connectors.printing import stdout
from thalweg.connectors.profiles import constant, ramp, steps
from thalweg.connectors.rate import rate
from thalweg.connectors.sockets import socket_lines
from thalweg.connectors.table_files import table_file
from thalweg.connectors.to_files import to_files
from thalweg.connectors.to_kafka import to_kafka
from thalweg.connectors.to_postgres import to_postgres
from thalweg.connectors.to_table import read_table, to_table
from thalweg.connectors.traces import trace

__all__ = [
    "call",
    "collect",
    "constant",
    "files",
    "http_source",
    "items",
    "kafka",
    "mqtt",
    "ramp",
    "rate",
    "read_table",
    "socket_lines",
    "spark_source",
    "stdout",
    "steps",
    "table_file",
    "to_files",
    "to_kafka",
    "to_postgres",
    "to_table",
    "trace",
]
