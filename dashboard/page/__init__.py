"""Pages, each with its sections in order.

The folder is not named `pages`: Streamlit would treat a folder of that name next to `app.py` as its
older multipage layout, and run a file of it instead of the dashboard.
"""
