"""What a dashboard says: records, their stream, the picture, and figures for other programs."""

from __future__ import annotations

import http.client
import re
import threading
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from visiting import Answer, ask, bearer, canned, snapshot, streamed, told, words

import thalweg as tw
from thalweg.control.scaling.policies import NAMES as POLICIES
from thalweg.dashboard.actions import Actions, supported
from thalweg.dashboard.assets import FOLDER, assets
from thalweg.dashboard.hub import Hub
from thalweg.dashboard.picture import picture
from thalweg.dashboard.serving import Dashboard
from thalweg.events import Activated, Noticed, Progress, RunFailed, RunFinished, RunStarted
from thalweg.execution import Rebalance, Reroute, SetPolicy, Steering


@pytest.fixture(scope="module")
def dashboard() -> Iterator[Dashboard]:
    with canned() as made:
        yield made


def figure(text: str, name: str) -> float:
    found = re.search(rf"^thalweg_{name}\{{topology=\"words\"\}} (\S+)$", text, re.MULTILINE)
    assert found is not None, text
    return float(found[1])


def test_records_come_in_order_and_behind_a_number(dashboard: Dashboard) -> None:
    found = ask(dashboard, "/api/records").json
    numbers = [record["n"] for record in found]
    assert numbers == list(range(1, len(found) + 1))
    assert found[0]["kind"] == "topology"
    assert [r["n"] for r in ask(dashboard, "/api/records?after=5").json] == numbers[5:]
    assert ask(dashboard, f"/api/records?after={numbers[-1]}").json == []


def test_the_stream_has_what_was_and_what_comes() -> None:
    hub = Hub()
    telling = told(hub)
    last = hub.after(0)[-1].n
    with Dashboard(hub) as made:
        assert [r["n"] for r in streamed(made, 0, last)] == list(range(1, last + 1))
        speaking = threading.Thread(target=lambda: telling.listen(Noticed("later")))
        speaking.start()
        heard = streamed(made, last, last + 1)
        speaking.join()
    assert [record["text"] for record in heard] == ["later"]


def test_the_stream_ends_with_the_dashboard() -> None:
    with canned() as made:
        connection = http.client.HTTPConnection("127.0.0.1", made.access.port)
        connection.request("GET", "/api/stream?after=1000")
        answer = connection.getresponse()
        assert answer.readline() == b"retry: 2000\n"
    assert answer.read().endswith(b"event: end\ndata: {}\n\n")
    connection.close()


def test_who_asks_for_the_head_of_the_stream_alone_keeps_no_visitor_out() -> None:
    with canned() as made, ExitStack() as stack:
        for _ in range(20):  # more than there is room for
            connection = http.client.HTTPConnection("127.0.0.1", made.access.port)
            stack.callback(connection.close)
            connection.request("HEAD", "/api/stream")
            assert connection.getresponse().status == 200


def test_the_topology_comes_with_its_picture(dashboard: Dashboard) -> None:
    made = ask(dashboard, "/api/topology").json
    assert [each["name"] for each in made["topology"]["components"]] == ["source", "count", "out"]
    assert set(made["picture"]["boxes"]) == {"source", "count", "out"}
    assert [route["stream"] for route in made["picture"]["routes"]] == [0, 1]


def test_before_a_run_there_is_nothing_to_draw_or_to_count() -> None:
    with Dashboard(Hub()) as made:
        assert ask(made, "/").status == 200
        assert ask(made, "/api/topology").status == 404
        assert ask(made, "/metrics").status == 503


def test_figures_are_those_of_the_last_look(dashboard: Dashboard) -> None:
    answer = ask(dashboard, "/metrics")
    last = snapshot(3.5)
    assert answer.headers["content-type"].startswith("text/plain")
    assert figure(answer.body.decode(), "tuples_in_total") == last.tuples_in
    assert figure(answer.body.decode(), "pending_tuples") == last.pending


def test_a_live_run_tells_what_its_process_takes_and_a_recording_does_not() -> None:
    hub = Hub()
    told(hub)
    seen = []
    several = Actions(Steering(), threading.Event(), ("kill",), several=True)
    for actions in (Actions(Steering(), threading.Event(), ()), several, None):
        with Dashboard(hub, None, actions) as made:
            text = ask(made, "/metrics").body.decode()
            names = ("process_resident_memory_bytes", "process_cpu_seconds_total")
            seen.append([f"\n{name} " in text for name in names])
    assert seen == [[True, True], [False, False], [False, False]]


def test_only_who_tells_errors_looks_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    hub, asked = Hub(), []
    told(hub)
    recent = hub.recent

    def noting(kinds: Collection[str], most: int) -> list[dict[str, Any]]:
        asked.extend(kinds)
        return recent(kinds, most)

    monkeypatch.setattr(hub, "recent", noting)
    with Dashboard(hub) as made:
        ask(made, "/metrics")
        (about,) = ask(made, "/api/v1/topology/summary").json["topologies"]
        assert "tuple_refused" not in asked
        page = ask(made, f"/api/v1/topology/{about['encodedId']}").json
    assert "tuple_refused" in asked
    assert page["bolts"][0]["lastError"].startswith("right to left")


def test_scripts_find_storms_paths(dashboard: Dashboard) -> None:
    (about,) = ask(dashboard, "/api/v1/topology/summary").json["topologies"]
    assert (about["name"], about["status"]) == ("words", "ACTIVE")
    page = ask(dashboard, f"/api/v1/topology/{about['encodedId']}").json
    assert [bolt["boltId"] for bolt in page["bolts"]] == ["count", "out"]
    one = ask(dashboard, f"/api/v1/topology/{about['encodedId']}/component/count").json
    assert one["componentErrors"][-1]["error"].startswith("right to left")
    assert ask(dashboard, "/api/v1/cluster/summary").json["topologies"] == 1
    assert ask(dashboard, "/api/v1/topology/other-1-0").status == 404
    one_page = f"/api/v1/topology/{about['encodedId']}"
    assert ask(dashboard, f"{one_page}/component/none").status == 404
    for path in (one_page, f"{one_page}/component/count"):
        assert ask(dashboard, f"{path}?window=7").status == 400


def test_monitoring_is_told_whether_a_run_goes_on_and_whether_it_pauses() -> None:
    hub = Hub()
    telling = told(hub)
    seen = []
    with Dashboard(hub) as made:
        for event in (None, Activated(False), Activated(True), RunFinished(snapshot(9), False)):
            if event is not None:
                telling.listen(event)
            text = ask(made, "/metrics").body.decode()
            seen.append([figure(text, f"topology_{name}") for name in ("up", "paused")])
            assert "topology_deaths" not in text
    assert seen == [[1, 0], [1, 1], [1, 0], [0, 0]]


def test_storm_is_told_how_the_run_is() -> None:
    hub = Hub()
    telling = told(hub)
    seen = []
    with Dashboard(hub) as made:
        for event in (None, Activated(False), Activated(True), RunFinished(snapshot(9), False)):
            if event is not None:
                telling.listen(event)
            (about,) = ask(made, "/api/v1/topology/summary").json["topologies"]
            seen.append((about["status"], about["uptimeSeconds"]))
    assert seen == [("ACTIVE", 3), ("INACTIVE", 3), ("ACTIVE", 3), ("KILLED", 9)]


def test_a_recording_can_be_looked_at_and_not_steered(dashboard: Dashboard) -> None:
    state = ask(dashboard, "/api/state").json
    assert (state["live"], state["actions"]) == (False, [])
    answer = ask(dashboard, "/api/actions/pause", "POST", b"{}", bearer(dashboard))
    assert answer.status == 409


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("", ""),
        ("static", ""),
        ("ds2", "; policy ds2 may change that again, static would keep it"),
    ],
)
def test_who_rebalances_is_told_which_policy_may_undo_it(policy: str, said: str) -> None:
    knows = (lambda: ("count",)), (lambda: policy)
    actions = Actions(Steering(), threading.Event(), ("rebalance",), *knows)
    done = actions.do("rebalance", b'{"component": "count", "degree": 3}')
    assert done == {"text": f"'count' will have 3 tasks{said}"}


def test_actions_reach_the_run() -> None:
    steering, stop = Steering(), threading.Event()
    names = ("pause", "resume", "rebalance", "reroute", "set-policy", "kill")
    with Dashboard(Hub(), None, Actions(steering, stop, names, lambda: ("count",))) as made:

        def act(name: str, body: bytes = b"{}") -> str:
            answer = ask(made, f"/api/actions/{name}", "POST", body, bearer(made))
            assert answer.status == 200, answer.body
            return str(answer.json["text"])

        assert act("pause") == "sources will not be asked until resumed"
        assert not steering.active
        act("resume")
        assert steering.active
        assert "3 tasks" in act("rebalance", b'{"component": "count", "degree": 3}')
        assert steering.take() == Rebalance("count", 3)
        act("reroute", b'{"always": true}')
        assert steering.take() == Reroute(always=True)
        assert ask(made, "/api/state").json["policies"] == list(POLICIES)
        assert "economy" in act("set-policy", b'{"policy": "thalweg:economy"}')
        assert steering.take() == SetPolicy("thalweg:economy", "a visitor of the page")
        for policy in (b'"ds3"', b'"learning:table.json"', b"7"):
            body = b'{"policy": %b}' % policy
            refused = ask(made, "/api/actions/set-policy", "POST", body, bearer(made))
            assert refused.status == 400
            assert ("did you mean 'ds2'?" in refused.json["error"]) == (policy == b'"ds3"')
        assert steering.take() is None
        assert not stop.is_set()
        act("kill")
        assert stop.is_set()


def test_no_action_is_taken_when_the_run_is_over() -> None:
    hub, steering = Hub(), Steering()
    telling = told(hub)
    with Dashboard(hub, None, Actions(steering, threading.Event(), ("pause",))) as made:

        def paused() -> Answer:
            return ask(made, "/api/actions/pause", "POST", b"{}", bearer(made))

        for event in (RunFinished(snapshot(9), False), RunFailed("no number")):
            telling.listen(event)
            assert paused().status == 409
            said = "action: expected a run that goes on, got one that is over"
            assert paused().json == {"error": said}
            assert steering.active
            telling.listen(RunStarted("words", "local"))
        assert paused().status == 200


def test_only_what_a_runtime_supports_is_offered() -> None:
    topology = words()
    basic = {"pause", "resume", "kill"}
    assert set(supported(topology, "inline")[0]) == basic
    assert set(supported(topology, None)[0]) == basic | {"rebalance", "set-policy"}
    learning = tw.Local(locality=tw.Locality())
    more = {"rebalance", "reroute", "set-policy"}
    assert set(supported(topology, learning)[0]) == basic | more
    assert set(supported(topology, tw.Spark())[0]) == basic
    follows = tw.Spark(scaling="ds2", locality=tw.Locality())
    assert set(supported(topology, follows)[0]) == basic | {"reroute", "set-policy"}
    assert supported(topology, None)[1] == ("count", "out")


def test_progress_is_counted_once_and_shown_by_the_next_request() -> None:
    hub = Hub()
    telling = told(hub)
    with Dashboard(hub) as made:
        telling.listen(Progress(snapshot(100)))
        text = ask(made, "/metrics").body.decode()
        assert figure(text, "tuples_in_total") == snapshot(100).tuples_in
        assert ask(made, "/api/records").json[-1]["snapshot"]["tuples_in"] == 100_000


# --- the files of the page ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["index.html", "server.html"])
def test_the_page_loads_nothing_from_elsewhere_and_has_no_inline_script_or_style(
    name: str,
) -> None:
    page = (FOLDER / name).read_text(encoding="utf-8")
    assert not re.search(r"(?:src|href)=\"(?!/static/|#)", page)
    assert not re.search(r"<script(?![^>]* src=)", page)
    assert "<style" not in page
    assert not re.search(r"\s(?:on\w+|style)=", page)
    for name in re.findall(r"\"/static/([^\"]+)\"", page):
        assert name in assets()


@pytest.mark.parametrize("name", [n for n in assets() if n.endswith(".js") and "vendor" not in n])
def test_scripts_never_read_markup(name: str) -> None:
    text = assets()[name].data.decode()
    markup = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser"
    assert not re.search(rf"{markup}|\beval\b|new Function", text)
    assert not re.search(r"https?://(?!www\.w3\.org/)", text)


def test_vendored_files_have_their_licence() -> None:
    folders = [path for path in (FOLDER / "vendor").iterdir() if path.is_dir()]
    assert folders
    for folder in folders:
        assert "MIT" in (folder / "LICENSE").read_text(encoding="utf-8")


# --- pictures of what a file may say --------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "d"])
STREAMS = st.lists(st.fixed_dictionaries({"from": NAMES, "to": NAMES}), max_size=8)


@given(st.lists(NAMES, unique=True), STREAMS)
def test_any_record_of_a_topology_can_be_drawn(names: list[str], streams: list) -> None:
    topology = {"components": [{"name": name} for name in names], "streams": streams}
    made = picture(topology)
    assert set(made["boxes"]) == set(names)
    for route in made["routes"]:
        stream = streams[route["stream"]]
        assert names.index(stream["from"]) < names.index(stream["to"])
