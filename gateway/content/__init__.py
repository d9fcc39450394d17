"""What a request's text holds that may not leave: detectors, and how they read every part."""
