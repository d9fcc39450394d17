"""Pages: what each shows, in the order of its sections.

The folder is not called `pages`: Streamlit would take one of that name beside `app.py` for its own
older kind of pages, and run a file of it instead of the whole dashboard.
"""
