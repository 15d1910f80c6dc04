"""The HTTP API: the application, its guards, streams and the page. It is given its routes."""
