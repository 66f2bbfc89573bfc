"""The first screen: all commands in the 24 lines of a terminal."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class OneScreen(TyperGroup):
    """Commands with a line each; options, which few need, share one."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write usage, commands and options without empty lines between them."""
        prefix = f"{self.help} Usage: "
        formatter.write_usage(ctx.command_path, "COMMAND [ARGS]...", prefix=prefix)
        names = [name for name in self.list_commands(ctx) if not self.commands[name].hidden]
        with formatter.indentation():
            rows = [(name, self.commands[name].get_short_help_str(limit=100)) for name in names]
            formatter.write_dl(rows)
        options = [", ".join(option.opts) for option in self.get_params(ctx)]
        formatter.write_text(f"Options: {'; '.join(options)}; COMMAND --help says more.")
