"""One file per method, and the parts they share."""
