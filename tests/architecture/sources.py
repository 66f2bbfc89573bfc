"""Measures the source: functions, parameters, comments."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef

#: A waiver of ruff or mypy: with codes, and a reason in brackets or behind another hash.
_WAIVER = re.compile(r"#\s*(noqa\b|type:\s*ignore)")
_GOOD_WAIVER = re.compile(
    r"#\s*(?:noqa:\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*|type:\s*ignore\[[\w-]+(?:,\s*[\w-]+)*\])"
    r"\s*(?:\(\s*\w.*\)|#\s*\S)"
)


@dataclass(frozen=True)
class Function:
    """A function as far as budgets are concerned."""

    where: str
    #: Lines of its body, without the docstring.
    lines: int
    #: Parameters that callers give by name or position.
    parameters: int
    annotated: bool


def functions_of(path: Path, shown: str) -> Iterator[Function]:
    """Go through all functions of a file, also those inside others."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    methods = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for child in node.body
        if isinstance(child, AnyFunction) and not _is_static(child)
    }
    for node in ast.walk(tree):
        if isinstance(node, AnyFunction):
            yield _measured(node, shown, id(node) in methods)


def _is_static(node: AnyFunction) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)


def _measured(node: AnyFunction, shown: str, is_method: bool) -> Function:
    given = node.args
    named = [*given.posonlyargs, *given.args][is_method:] + given.kwonlyargs
    every = [*named, *(a for a in (given.vararg, given.kwarg) if a is not None)]
    return Function(
        where=f"{shown}:{node.lineno} {node.name}",
        lines=_body_lines(node),
        parameters=len(named),
        annotated=node.returns is not None and all(a.annotation is not None for a in every),
    )


def _body_lines(node: AnyFunction) -> int:
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    return 0 if not body else (body[-1].end_lineno or 0) - body[0].lineno + 1


def comments_of(text: str) -> Iterator[tuple[int, str]]:
    """Go through the comments of a file, with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def bare_waivers(text: str) -> list[str]:
    """Find waivers (noqa, type: ignore) without a code or without a reason."""
    return [
        f"line {line}: {comment}"
        for line, comment in comments_of(text)
        if _WAIVER.search(comment) and not _GOOD_WAIVER.search(comment)
    ]


def dangerous(text: str) -> list[str]:
    """Find what turns bytes or text into running code: pickle and its kin, eval, exec."""
    found = []
    for node in ast.walk(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [(node.module or "").split(".")[0]]
        elif isinstance(node, ast.Name | ast.Attribute):
            names = [f"{node.id if isinstance(node, ast.Name) else node.attr}()"]
        elif isinstance(node, ast.keyword):
            names = [f"{node.arg}="]
        found += [f"line {node.lineno}: {name}" for name in names if name in _DANGEROUS]
    return found


_DANGEROUS = frozenset(
    {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
    | {"eval()", "exec()", "allow_pickle="}
)
