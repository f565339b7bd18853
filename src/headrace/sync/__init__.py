"""An app, its tasks and its jobs for code without an event loop; `headrace` exports them."""

from headrace.sync.app import SyncApp
from headrace.sync.bulk import SyncBulkWrite
from headrace.sync.handle import SyncJobHandle
from headrace.sync.queue import SyncQueue
from headrace.sync.schedules import SyncSchedules
from headrace.sync.task import SyncTask, SyncTaskCall, SyncTaskRef

__all__ = [
    "SyncApp",
    "SyncBulkWrite",
    "SyncJobHandle",
    "SyncQueue",
    "SyncSchedules",
    "SyncTask",
    "SyncTaskCall",
    "SyncTaskRef",
]
