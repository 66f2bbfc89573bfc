"""Sessions of MQTT whose messages come before the answer that lets them begin."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from thalweg.connectors import mqtt_session
from thalweg.connectors.mqtt_session import Broker, Session
from thalweg.errors import RecordError

#: Messages that may wait, and more than that.
MOST, MORE = 5, 20


class Client:
    """Stands for the client's package: what the broker says is up to the test."""

    def __init__(self, says: Callable[[Client], None]) -> None:
        self.connected = True
        self.given_up = threading.Event()
        self._thread = threading.Thread(target=says, args=(self,))

    def connect(self, *_where: Any, **_how: Any) -> None:
        pass

    def loop_start(self) -> None:
        self._thread.start()

    def loop_stop(self) -> None:
        self._thread.join()

    def is_connected(self) -> bool:
        return self.connected

    def unsubscribe(self, _topic: str) -> None:
        self.on_unsubscribe()

    def disconnect(self) -> None:
        self.given_up.set()
        self.connected = False
        self.on_disconnect(self, None, None, SimpleNamespace(is_failure=False), None)

    def send(self, messages: int) -> None:
        """Let messages arrive that want no answer."""
        for n in range(messages):
            self.on_message(self, None, SimpleNamespace(topic="t", payload=b"%d" % n, mid=0, qos=0))

    def answer(self) -> None:
        """Let the subscription be heard of."""
        self.on_subscribe(self, None, 1, [SimpleNamespace(is_failure=False)], None)


@pytest.fixture
def broker_says(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Client], None]], None]:
    def says(what: Callable[[Client], None]) -> None:
        made = SimpleNamespace(
            Client=lambda *_how, **_more: Client(what),
            CallbackAPIVersion=SimpleNamespace(VERSION2=2),
            MQTTv5=5,
        )
        monkeypatch.setattr(mqtt_session, "client", lambda: made)

    monkeypatch.setattr(mqtt_session, "MOST_WAITING", MOST)
    monkeypatch.setattr(mqtt_session, "_properties", lambda _keep: None)
    return says


def test_more_messages_than_may_wait_can_come_before_the_answer(broker_says: Any) -> None:
    """MQTT allows it; those of a session that was kept come at once."""

    def says(client: Client) -> None:
        client.send(MORE)
        client.answer()

    broker_says(says)
    session = Session(Broker("localhost", 1883, ("#",), "all", timeout=300.0), [].append)
    assert [message.value() for message in session.take(100)] == [b"%d" % n for n in range(MORE)]
    session.close()


def test_an_answer_that_comes_too_late_holds_up_nobody(broker_says: Any) -> None:
    def says(client: Client) -> None:
        client.given_up.wait()
        client.answer()
        client.send(MORE)

    broker_says(says)
    with pytest.raises(RecordError, match="expected an answer, got none"):
        Session(Broker("localhost", 1883, ("#",), "all", timeout=0.0), [].append)
