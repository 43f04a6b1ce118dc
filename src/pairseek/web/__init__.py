"""Studies in the browser: the service, its pages, and the sessions of the people who answer."""
