"""What people read: reports for maintainers, tables at the end of a run, a page over a corpus."""
