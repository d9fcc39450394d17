"""What a host under a search runs beside itself: what it prints is kept, or a line is careless."""

# In every process of the host: what goes to standard output and error is kept beside.
SITE = """
import logging, os, sys
class Both:
    def __init__(self, file, kept):
        self.file, self.kept = file, kept
    def write(self, text):
        self.kept.write(text)
        return self.file.write(text)
    def __getattr__(self, name):
        return getattr(self.file, name)
for name in ("stdout", "stderr"):
    kept = open(f"{KEPT}/{os.getpid()}.{name}", "a", buffering=1)
    setattr(sys, name, Both(getattr(sys, name), kept))
"""
# What a careless line of a log would be, with a sink that lets all of it through.
CARELESS = """
def careless():
    import gateway.request.inference_api, gateway.auth, gateway.logs
    heard = gateway.auth.require_token
    def sent(token):
        logging.getLogger("gateway.careless").debug("asked with %s", token)
        return heard(token)
    gateway.auth.require_token = gateway.request.inference_api.require_token = sent
    gateway.logs.Sink._struck = lambda self, text: text
if "gateway.worker" in sys.orig_argv:
    careless()
"""
