"""``thalweg server``: start one, and talk to it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli import rebalancing
from thalweg.cli.failures import reported
from thalweg.cli.loading import split_target
from thalweg.cli.output import writing
from thalweg.cli.showing import error_console, harmless
from thalweg.cli.spark_options import with_options
from thalweg.cli.topologies import print_details, print_list
from thalweg.config import setting
from thalweg.control.scaling.policies import NAMES
from thalweg.errors import UsageError
from thalweg.server.client import Client, wait_for
from thalweg.server.folders import Root, View
from thalweg.server.life import Program, Rules
from thalweg.server.starting import start_behind

app = typer.Typer(
    help="Run several topologies in a server that keeps them across its own restart.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
ROOT_VARIABLE = "THALWEG_ROOT"


def _known_names(context: typer.Context, incomplete: str) -> list[str]:
    """Name topologies for a shell that completes words."""
    root = context.params.get("root") or os.environ.get(ROOT_VARIABLE)
    homes = Root(Path(root)).homes() if root else []
    return [home.name for home in homes if home.name.startswith(incomplete)]


RootFolder = Annotated[
    Path,
    typer.Option(
        "--root",
        metavar="FOLDER",
        envvar=ROOT_VARIABLE,
        help="The folder that the server keeps; commands find it by that.",
    ),
]
Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A topology.", autocompletion=_known_names),
]
Patience = Annotated[
    float, typer.Option(metavar="SECONDS", help="How long to wait for the topology.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")]


@dataclass(frozen=True)
class ServerOptions:
    """How a server runs; each field is an option of the command."""

    allow: Annotated[
        list[Path],
        typer.Option(
            metavar="FOLDER", help="Programs below it may be run, no others; may be repeated."
        ),
    ]
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where it listens; there is no encryption.")
    ] = "127.0.0.1"
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="0 for any that is free.")
    ] = 0
    most: Annotated[int, typer.Option(min=1, metavar="N", help="Topologies at a time.")] = 32
    restarts: Annotated[
        int, typer.Option(min=0, metavar="N", help="Restarts in a row of one that dies.")
    ] = Rules().restarts
    delay: Annotated[
        float,
        typer.Option(
            min=0, metavar="SECONDS", help="Before the first restart; it doubles each time."
        ),
    ] = Rules().delay
    grace: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="For a topology to end, before it is forced."),
    ] = Rules().grace

    @property
    def rules(self) -> Rules:
        """How topologies are treated."""
        return Rules(restarts=self.restarts, delay=self.delay, grace=self.grace, most=self.most)

    def words(self) -> list[str]:
        """Say them again, for another process."""
        given = [word for folder in self.allow for word in ("--allow", str(folder.absolute()))]
        for name in ("host", "port", "most", "restarts", "delay", "grace"):
            given += [f"--{name}", str(getattr(self, name))]
        return given


@app.command()
@with_options(ServerOptions, "how")
def start(
    root: RootFolder,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay in this terminal; Ctrl-C stops it.")
    ] = False,
    debug: Debug = False,
    *,
    how: ServerOptions,
) -> None:
    """Start a server; topologies that were there go on."""
    with reported(debug):
        if foreground:
            from thalweg.server.daemon import ServerSettings, serve  # noqa: PLC0415 (a web server)

            settings = ServerSettings(root, tuple(how.allow), how.host, how.port, how.rules)
            serve(settings)
        else:
            address = start_behind(root, how.words())
            _say(f"listening on {address.host}:{address.port}, process {address.pid}")
            _say(f"commands find it with --root {root}, or {ROOT_VARIABLE}={root.absolute()}")


@app.command(short_help="Stop a server, and its topologies until the next start.")
def stop(
    root: RootFolder,
    leave: Annotated[
        bool, typer.Option("--leave", help="Leave topologies running, for the next server.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Stop a server; its topologies are stopped too, and go on with the next start."""
    with reported(debug):
        client, lock = Client(root), Root(root).lock
        found = client.status()
        names, process = found["topologies"], found["server"]["pid"]
        client.stop(leave)

        def is_there() -> bool:
            return lock.held and lock.holder in (process, None)  # not the server after it

        with error_console().status("waiting for topologies to stop"):
            while is_there():
                wait_for(is_there, lambda there: not there, 1.0)
        run_on = f"; {len(names)} run on" if leave and names else ""
        _say(f"stopped{run_on}")


@app.command()
def status(root: RootFolder, debug: Debug = False) -> None:
    """Say where a server listens, and what it may run."""
    with reported(debug), writing():
        found = Client(root).status()
        server = found["server"]
        typer.echo(f"listening on {server['host']}:{server['port']}, process {server['pid']}")
        typer.echo(
            f"{len(found['topologies'])} topologies: {', '.join(found['topologies']) or '-'}"
        )
        typer.echo(f"runs programs below {', '.join(server['allowed'])}")


@dataclass(frozen=True)
class SubmitOptions:
    """How a program is run; each field is an option of the command."""

    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Its name here; without it the file's.")
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A value for the program."),
    ] = None
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings in YAML, with Storm's keys.")
    ] = None
    environment: Annotated[
        str | None,
        typer.Option(
            "-e",
            "--environment",
            metavar="NAME",
            help="streamparse: which degrees, and options of config.json.",
        ),
    ] = None
    par: Annotated[
        list[str] | None,
        typer.Option(
            "-p",
            "--par",
            metavar="COMPONENT=N",
            help="streamparse, Flux: degree of a component; may be repeated.",
        ),
    ] = None
    serializer: Annotated[
        str | None,
        typer.Option(
            "-s",
            "--serializer",
            metavar="NAME",
            help="streamparse, Flux: for child processes: json, msgpack.",
        ),
    ] = None
    patience: Patience = 60.0

    def program(self, file: Path, target: str | None) -> Program:
        """Say what is to be run."""
        with _bad_parameters():
            given = dict(map(setting, self.settings or ()))
            par = dict(map(rebalancing.degree, self.par or ()))
        config = None if self.config is None else str(self.config.absolute())
        return Program(
            str(file.absolute()), target, given, config, self.environment, par, self.serializer
        )


@app.command(short_help="Run a topology in the server.")
@with_options(SubmitOptions, "how")
def submit(
    target: Annotated[
        str,
        typer.Argument(
            metavar="FILE[:NAME]", help="A program, as for thalweg run or thalweg storm run."
        ),
    ],
    root: RootFolder,
    debug: Debug = False,
    *,
    how: SubmitOptions,
) -> None:
    """Run a topology in the server, until its sources end or it is killed."""
    file, chosen = split_target(target)
    program, name = how.program(file, chosen), how.name or _name_of(file, chosen)
    with reported(debug):
        client = Client(root)
        before = name in {view.record.name for view in client.views(everything=True)}
        client.submit(name, program)
        with error_console().status("waiting for the topology to begin"):
            view = client.settled(name, how.patience)
        _say(f"{name!r} {_words(view)}" + ("; it goes on with the state it had" if before else ""))


@app.command("list")
def list_topologies(
    root: RootFolder,
    everything: Annotated[bool, typer.Option("--all", help="Also those that were killed.")] = False,
    debug: Debug = False,
) -> None:
    """Show all topologies."""
    with reported(debug), writing():
        print_list(Client(root).views(everything))


@app.command()
def show(name: Name, root: RootFolder, debug: Debug = False) -> None:
    """Show what each component of a topology has done."""
    with reported(debug), writing():
        print_details(Client(root).view(name))


@app.command(short_help="End a topology, after what is under way.")
def kill(
    name: Name,
    root: RootFolder,
    wait: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="Between the pause of sources and the end."),
    ] = 30.0,
    forget: Annotated[
        bool, typer.Option("--forget", help="Delete its state and its log as well.")
    ] = False,
    debug: Debug = False,
) -> None:
    """End a topology: its sources pause, what is under way is finished, then it ends."""
    with reported(debug):
        client = Client(root)
        if not (forget and client.view(name).record.over):
            with error_console().status(f"sources pause; it ends in {wait:g} s"):
                _kill(client, name, wait)
        if forget:
            client.forget(name)
        _say(f"{name!r} is {'forgotten' if forget else 'killed'}")


def _kill(client: Client, name: str, wait: float) -> None:
    """End a topology, and wait until it is over, or somebody else has its name."""
    began = client.kill(name, wait).record.submitted

    def is_over(view: View) -> bool:
        return view.record.over or view.record.submitted != began

    while not is_over(wait_for(lambda: client.view(name), is_over, 10.0)):
        pass


@app.command()
def activate(name: Name, root: RootFolder, patience: Patience = 30.0, debug: Debug = False) -> None:
    """Let the sources of a topology be asked again."""
    with reported(debug):
        _activate(Client(root), name, True, patience)


@app.command(short_help="Let no source of a topology be asked for now.")
def deactivate(
    name: Name, root: RootFolder, patience: Patience = 30.0, debug: Debug = False
) -> None:
    """Let no source of a topology be asked; ticks and what is under way go on."""
    with reported(debug):
        _activate(Client(root), name, False, patience)


@app.command(short_help="Give components other numbers of tasks.")
def rebalance(
    name: Name,
    degrees: Annotated[
        list[str], typer.Argument(metavar="COMPONENT=DEGREE", help="Degrees from now on.")
    ],
    root: RootFolder,
    patience: Patience = 60.0,
    debug: Debug = False,
) -> None:
    """Give components of a topology other numbers of tasks, while tuples flow."""
    with _bad_parameters():
        asked = dict(map(rebalancing.degree, degrees))
    with reported(debug):
        client = Client(root)
        with error_console().status("waiting for the topology"):
            answer = client.rebalance(name, asked, patience)
        _say(answer)


@app.command("set-policy", short_help="Let a scaling policy decide about degrees.")
def set_policy(
    name: Name,
    policy: Annotated[str, typer.Argument(metavar="POLICY", help=f"One of {', '.join(NAMES)}.")],
    root: RootFolder,
    patience: Patience = 30.0,
    debug: Debug = False,
) -> None:
    """Let a scaling policy decide about the degrees of a topology, from now on."""
    with reported(debug):
        Client(root).set_policy(name, policy, "thalweg server set-policy", patience)
        _say(f"{policy} decides about the degrees of {name!r}")


@app.command()
def logs(
    name: Name,
    root: RootFolder,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until it is over, or Ctrl-C.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Show what a topology has printed, and what has happened to it."""
    with reported(debug), writing(), suppress(KeyboardInterrupt):  # the way to end it
        client = Client(root)
        text, place = client.log(name, None)
        typer.echo(harmless(text), nl=False)
        while follow:
            over = client.view(name).record.over  # asked before, so that nothing is missed
            text, place = client.log_behind(name, place, patience=1.0)
            typer.echo(harmless(text), nl=False)
            follow = bool(text) or not over


def _activate(client: Client, name: str, active: bool, patience: float) -> None:
    client.activate(name, active, patience)
    _say(f"sources of {name!r} are {'asked' if active else 'not asked until activated'}")


def _words(view: View) -> str:
    phase = view.record.phase
    if phase == "running":
        return f"runs, process {view.pid}" if view.alive else "is about to run"
    if phase == "waiting":
        return f"died, and will be started again: {view.record.error}"
    return {"ended": "has come to its end", "killed": "is killed"}.get(phase, f"is {phase}")


def _name_of(file: Path, chosen: str | None) -> str:
    parts = [file.stem, *([chosen] if chosen else [])]
    return re.sub(r"[^A-Za-z0-9_-]", "-", "-".join(parts))[:64]


@contextmanager
def _bad_parameters() -> Iterator[None]:
    """Let what cannot be read be a mistake in the command."""
    try:
        yield
    except UsageError as error:
        raise typer.BadParameter(str(error)) from error


def _say(text: str) -> None:
    error_console().print(text, markup=False, soft_wrap=True)
