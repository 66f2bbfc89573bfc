"""What the demo prints, in terminals of any width."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from thalweg.cli.demo_showing import Hall

ADDRESS = f"http://127.0.0.1:43215/?token={'A' * 43}"


@pytest.mark.parametrize("width", [40, 70, 120])
def test_the_address_of_the_page_is_in_one_piece_however_narrow_the_terminal(width: int) -> None:
    out = io.StringIO()
    Hall(Console(file=out, force_terminal=True, width=width, color_system=None)).shows(ADDRESS)
    assert ADDRESS in out.getvalue()
