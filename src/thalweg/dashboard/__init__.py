"""A web page that shows a run while it runs, or what was recorded of one."""
