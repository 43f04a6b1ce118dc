"""Template contexts: the data from which pages are rendered, by family of pages.

Contexts contain only plain data. Values of keys named ``*_html`` are sanitized HTML; all others are escaped. Times are
ISO 8601. The service adds the forms' CSRF token to every context. Data that both pages and the HTTP API show are
declared in `pairseek.web.pages.contexts.shared`.
"""
