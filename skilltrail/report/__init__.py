"""Reports: tables, curves and the page, all read from events and never from the loop."""
