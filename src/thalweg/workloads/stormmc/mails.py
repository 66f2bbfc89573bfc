"""Mails of a made-up company, the same every time, and files that hold many of them.

A file has chunks of mails: four bytes with the length of a chunk, and the compressed chunk, which
is a msgpack list of mails, each of them the msgpack of a :class:`Mail`.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path

import msgspec
import numpy as np

from thalweg.workloads.stormmc.vocabulary import draw, words

#: Who is at home in the company, and who is not.
INSIDE, OUTSIDE = "thalweg.example", "elsewhere.example"
#: People whose names are hidden.
HIDDEN = ("Agnes Bell", "Karl Stern", "Rosa Mendez")
#: Mails of a chunk.
CHUNK = 250
_PEOPLE, _TOPICS = 150, 40
_HEAD = 4


class Mail(msgspec.Struct, frozen=True):
    """One mail."""

    id: int
    sender: str
    recipients: list[str]
    subject: str
    body: str


def mails(count: int, seed: int = 1, inside: float = 0.8) -> Iterator[Mail]:
    """Make mails; the share ``inside`` of senders and of recipients belong to the company.

    >>> mail = next(mails(1))
    >>> mail == next(mails(5)), mail.sender.partition("@")[2] in (INSIDE, OUTSIDE)
    (True, True)
    """
    rng = np.random.default_rng(seed)
    vocabulary = words(5000)
    people = [f"{first}.{last}" for first, last in itertools.pairwise(words(_PEOPLE + 1))]

    def address() -> str:
        domain = INSIDE if rng.random() < inside else OUTSIDE
        return f"{people[rng.integers(_PEOPLE)]}@{domain}"

    for number in range(count):
        sender = address()
        recipients = [address() for _ in range(rng.geometric(0.6))]
        subject = " ".join(draw(rng, vocabulary, 4, 0.8))
        yield Mail(number, sender, recipients, subject, _body(rng, vocabulary))


def _body(rng: np.random.Generator, vocabulary: list[str]) -> str:
    paragraphs = []
    topic = vocabulary[1000 + int(_TOPICS * rng.random() ** 2)]  # some are more popular
    for _ in range(rng.integers(2, 7)):
        written = draw(rng, vocabulary, int(rng.integers(20, 80)), 0.7)
        written = [topic if rng.random() < 0.1 else word for word in written]
        if rng.random() < 0.3:
            written.insert(len(written) // 2, HIDDEN[rng.integers(len(HIDDEN))])
        paragraphs.append(" ".join(written) + ".")
    return "\n\n".join(paragraphs)


def write_mails(path: Path, given: Iterator[Mail]) -> None:
    """Write mails to a file, chunk by chunk."""
    encode = msgspec.msgpack.encode
    with path.open("wb") as file:
        while chunk := [encode(mail) for mail in itertools.islice(given, CHUNK)]:
            data = zlib.compress(encode(chunk))
            file.write(len(data).to_bytes(_HEAD) + data)


def read_mails(path: Path, task: int = 0, degree: int = 1) -> Generator[bytes, None, None]:
    """Read the mails of a file, each still encoded; tasks take its chunks in turn.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_mails(Path(folder) / "mails", mails(3))
    ...     [msgspec.msgpack.decode(mail)["id"] for mail in read_mails(Path(folder) / "mails")]
    [0, 1, 2]
    """
    decoder = msgspec.msgpack.Decoder(list[bytes])
    with path.open("rb") as file:
        for number in itertools.count():
            head = file.read(_HEAD)
            if not head:
                return
            if number % degree == task:
                yield from decoder.decode(zlib.decompress(file.read(int.from_bytes(head))))
            else:
                file.seek(int.from_bytes(head), 1)
