"""Which release this is; the build takes it from here."""

VERSION = "0.1.0"
