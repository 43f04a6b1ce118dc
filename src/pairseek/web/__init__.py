"""Web service for studies: server, pages, sessions, data export and HTTP API."""
