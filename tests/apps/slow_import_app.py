"""An app whose import takes until its process is killed, once that has said that it began."""

from __future__ import annotations

import os
import threading
from pathlib import Path

(Path(os.environ["CREW_NOTES"]) / f"imported-{os.getpid()}").touch()
threading.Event().wait()
