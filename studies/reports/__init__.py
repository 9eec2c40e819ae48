"""Results as text, tables and HTML pages."""
