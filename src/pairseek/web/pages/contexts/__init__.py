"""Template contexts: the data from which pages are rendered, by family of pages.

Contexts contain only plain data. Values of keys named ``*_html`` are sanitized HTML; all others are escaped. Times are
ISO 8601. The service adds the forms' CSRF token to every context. Data shown by both a page and the HTTP API are
declared once, in `pairseek.web.pages.contexts.shared`.
"""
