"""The jars of Spark's own connector for Kafka, from Maven Central, fetched once.

Its part for delegation tokens is not there for every version; it is the newest one then. Nothing
that reads messages is in it.
"""

from __future__ import annotations

import time
from pathlib import Path

from kafkaserver import NoKafka, cache, fetch

_POM = Path(__file__).with_name("connector.xml")
#: The rest of what Maven finds is part of Spark.
_JARS = ("spark-sql-kafka-0-10_2.13", "spark-token-provider-kafka-0-10_2.13")
_CLIENT = ("kafka-clients", "commons-pool2")
#: The newest version of the part for tokens that is there where one is missing.
_TOKENS = "4.0.0"
#: Seconds after which it is looked again for what was not there.
_LOOK_AGAIN = 86_400.0


def connector_jars(spark: str) -> list[Path]:
    """Give the jars for a version of Spark; raises where there are none."""
    folder = cache() / f"spark-kafka-{spark}"
    if not folder.is_dir():
        _fetch(folder, spark)
    return sorted(folder.glob("*.jar"))


def _fetch(folder: Path, spark: str) -> None:
    missing = folder.with_name(f"{folder.name}.missing")
    if missing.exists() and time.time() - missing.stat().st_mtime < _LOOK_AGAIN:
        raise NoKafka(missing.read_text())
    problem: NoKafka | None = None
    for tokens in (spark, _TOKENS):
        options = [f"-Dversion.spark={spark}", f"-Dversion.tokens={tokens}"]
        options += [f"-DincludeArtifactIds={','.join((*_JARS, *_CLIENT))}"]
        try:
            fetch(folder, f"the connector of Spark {spark}", _POM, *options)
        except NoKafka as error:
            problem = problem or error
        else:
            return
    missing.parent.mkdir(parents=True, exist_ok=True)
    missing.write_text(str(problem))
    raise NoKafka(str(problem))
