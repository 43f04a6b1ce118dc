"""Template contexts: the data from which each page is rendered, by family of pages.

Contexts hold plain data only. Values of keys named ``*_html`` are sanitized HTML; all others are escaped. Times are
ISO 8601. The service adds the CSRF token of the forms to every context. What a page and a reply of the HTTP API both
show is declared once, in `pairseek.web.pages.contexts.shared`.
"""
