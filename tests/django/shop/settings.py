"""What a project says of its tasks; where things are comes from the environment."""

import json
import os

SECRET_KEY = "not secret"  # noqa: S105
USE_TZ = os.environ.get("SHOP_USE_TZ", "1") == "1"
TIME_ZONE = "Europe/Berlin"
HAS_OWN_TASKS = __import__("importlib.util").util.find_spec("django.tasks") is not None
INSTALLED_APPS = ["tests.django.shop.orders", *([] if HAS_OWN_TASKS else ["django_tasks"])]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["SHOP_DATABASE"]}
}
OPTIONS = {"url": os.environ["SHOP_URL"], "tenant": os.environ["SHOP_TENANT"]}
TASKS = {
    "default": {
        "BACKEND": "headrace.django.TaskBackend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": {
            **OPTIONS,
            "max_attempts": 1,
            **json.loads(os.environ.get("SHOP_OPTIONS", "{}")),
        },
    },
    "reports": {
        "BACKEND": "headrace.django.TaskBackend",
        "QUEUES": ["reports"],
        "OPTIONS": OPTIONS,
    },
}
