"""Path of one request, from its bytes to its settle: parse, plan, admit, dispatch, relay."""
