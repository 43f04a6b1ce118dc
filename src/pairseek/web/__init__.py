"""Studies in the browser and over HTTP. Needs the extra ``web``."""
