"""One MQTT broker for all tests of a module; where there is none they are skipped, and say so."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from freeport import free_port

_NUMBERS = itertools.count()
_SETTINGS = """\
listener {port} 127.0.0.1
allow_anonymous true
persistence false
max_inflight_messages 0
max_queued_messages 0
"""


class Broker:
    """A server, and what tests do with it."""

    def __init__(self, folder: Path) -> None:
        self._settings, self._log = folder / "mosquitto.conf", folder / "log"
        self.port = 0
        while not self.port:
            free = free_port()
            self._settings.write_text(_SETTINGS.format(port=free))
            # Somebody else may have taken it meanwhile.
            self.port = free if self._begins() else 0

    def start(self) -> None:
        """Start it again, at the same port."""
        # Clients see the end of one that was killed before it has let go of its port.
        self._process.wait()
        assert self._begins(), self._log.read_text()

    def _begins(self) -> bool:
        """Start it, and wait until it says that it listens; False where its port is taken."""
        program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 (Debian's broker)
                [program, "-c", str(self._settings)], stdout=log, stderr=log
            )
        while " running" not in self._log.read_text():
            if self._process.poll() is not None:
                said = self._log.read_text()
                assert "already in use" in said, said
                return False
            time.sleep(0.01)
        return True

    def kill(self) -> None:
        killed = self._process  # by then another one may have been started
        killed.kill()
        killed.wait()

    def topic(self) -> str:
        """Name a topic that nobody else uses; it does for a session as well."""
        return f"topic-{next(_NUMBERS)}"

    def send(self, topic: str, values: Iterable[Any], qos: int = 1, retain: bool = False) -> None:
        """Send values, and wait until the broker has them; what is not bytes becomes JSON."""
        client = _client("")
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        for value in values:
            raw = value if isinstance(value, bytes) else json.dumps(value)
            sent = client.publish(topic, raw, qos=qos, retain=retain)
        sent.wait_for_publish()
        client.disconnect()
        client.loop_stop()


def _client(name: str) -> Any:
    mqtt = pytest.importorskip("paho.mqtt.client")
    return mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=name)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Give a server that this module has alone."""
    yield from _started(tmp_path_factory.mktemp("mqtt"))


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    """Give a server that this test has alone."""
    yield from _started(tmp_path)


def _started(folder: Path) -> Iterator[Broker]:
    pytest.importorskip("paho.mqtt.client", reason="the extra 'mqtt' is not installed")
    if not (shutil.which("mosquitto") or Path("/usr/sbin/mosquitto").exists()):
        pytest.skip("no broker of MQTT here (Debian: apt-get install mosquitto)")
    made = Broker(folder)
    yield made
    made.kill()
