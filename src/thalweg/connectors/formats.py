"""Which format a file has, by its name or as told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from thalweg.connectors.lines import MAX_RECORD
from thalweg.errors import UsageError, explain

FormatName = Literal["csv", "tsv", "jsonl", "parquet", "text"]
FORMATS: tuple[FormatName, ...] = get_args(FormatName)

_SUFFIXES: dict[str, FormatName] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".txt": "text",
    ".log": "text",
}


@dataclass(frozen=True)
class FileFormat:
    """How to read or write files; what is None is told by the name of the file."""

    name: FormatName | None = None
    #: Between the cells of CSV.
    delimiter: str | None = None
    #: Bytes of the longest record.
    max_record: int = MAX_RECORD
    #: Whether lines of JSON may lack fields, which have no value then.
    lacking: bool = False

    def of(self, path: str) -> FormatName:
        """Give the format of a file.

        >>> FileFormat().of("posts.jsonl.gz")
        'jsonl'
        """
        if self.name is not None:
            return self.name
        found = _by_suffix(path)
        if found is None:
            raise UsageError(
                explain(
                    f"format of {path!r}",
                    expected=f"a name that ends in one of {list(_SUFFIXES)}",
                    hint="or say it, for example format='csv'",
                )
            )
        return found

    def knows(self, path: str) -> bool:
        """Tell whether the name of a file says its format, or the caller did."""
        return self.name is not None or _by_suffix(path) is not None

    def delimiter_of(self, path: str) -> str:
        """Give the character between cells."""
        return self.delimiter or ("\t" if self.of(path) == "tsv" else ",")


def _by_suffix(path: str) -> FormatName | None:
    stem = path.removesuffix(".gz")
    return next((name for suffix, name in _SUFFIXES.items() if stem.endswith(suffix)), None)


def file_format(
    name: str | None, delimiter: str | None = None, max_record: int = MAX_RECORD
) -> FileFormat:
    """Check what a caller says about a format; ``json`` is another word for ``jsonl``."""
    wanted = "jsonl" if name in ("json", "ndjson") else name
    if wanted is not None and wanted not in FORMATS:
        text = explain("format", expected=f"one of {list(FORMATS)}", got=repr(name))
        raise UsageError(text)
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        text = explain("delimiter", expected="one character", got=repr(delimiter))
        raise UsageError(text)
    return FileFormat(wanted, delimiter, max_record)
