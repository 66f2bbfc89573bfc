"""Pictures of a topology: a tree for terminals, Mermaid for documents, SVG for everything else.

Each is a pure function from a topology to text.
"""

from thalweg.drawing.mermaid import mermaid
from thalweg.drawing.svg import svg
from thalweg.drawing.tree import tree

__all__ = ["mermaid", "svg", "tree"]
