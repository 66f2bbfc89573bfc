"""A small declarative form: SQL on streams, compiled to the operators of the fluent API."""
