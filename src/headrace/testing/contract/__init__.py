"""The tests that any storage must pass: one class a verb, all of them in `StorageContract`.

They use nothing but the port, and what a `Subject` says of the storage under test.
"""

from pkgutil import iter_modules

import pytest

# Before they are imported, so that a failed assertion shows what it compared.
pytest.register_assert_rewrite(*(f"{__name__}.{part.name}" for part in iter_modules(__path__)))

from headrace.testing.contract.aging import AgingContract
from headrace.testing.contract.beat import BeatContract
from headrace.testing.contract.cancel import CancelContract
from headrace.testing.contract.cancel_in_states import CancelInStatesContract
from headrace.testing.contract.claim import ClaimContract
from headrace.testing.contract.commit import CommitContract
from headrace.testing.contract.configure import ConfigureContract
from headrace.testing.contract.delete_queue import DeleteQueueContract
from headrace.testing.contract.discard import DiscardContract
from headrace.testing.contract.enqueue import EnqueueContract
from headrace.testing.contract.event_pages import EventPagesContract
from headrace.testing.contract.event_words import EventWordsContract
from headrace.testing.contract.events import EventsContract
from headrace.testing.contract.export import ExportContract
from headrace.testing.contract.fail_jobs import FailJobsContract
from headrace.testing.contract.fire import FireContract
from headrace.testing.contract.for_tenant import ForTenantContract
from headrace.testing.contract.forget import ForgetContract
from headrace.testing.contract.gated_entries import GatedEntriesContract
from headrace.testing.contract.gated_updates import GatedUpdatesContract
from headrace.testing.contract.gates import GatesContract
from headrace.testing.contract.held import HeldContract
from headrace.testing.contract.idempotency import IdempotencyContract
from headrace.testing.contract.join_release import JoinReleaseContract
from headrace.testing.contract.list_jobs import ListJobsContract
from headrace.testing.contract.list_schedules import ListSchedulesContract
from headrace.testing.contract.openings import OpeningsContract
from headrace.testing.contract.outcomes import OutcomesContract
from headrace.testing.contract.output import OutputContract
from headrace.testing.contract.pause import PauseContract
from headrace.testing.contract.prune import PruneContract
from headrace.testing.contract.publish import PublishContract
from headrace.testing.contract.purge import PurgeContract
from headrace.testing.contract.put_back import PutBackContract
from headrace.testing.contract.queue_bounds import QueueBoundsContract
from headrace.testing.contract.queues import QueuesContract
from headrace.testing.contract.rates import RatesContract
from headrace.testing.contract.read_schedules import ReadSchedulesContract
from headrace.testing.contract.read_write import ReadWriteContract
from headrace.testing.contract.readers import ReadersContract
from headrace.testing.contract.reap import ReapContract
from headrace.testing.contract.redrive import RedriveContract
from headrace.testing.contract.register import RegisterContract
from headrace.testing.contract.repair import RepairContract
from headrace.testing.contract.report import ReportContract
from headrace.testing.contract.retire import RetireContract
from headrace.testing.contract.schedule_history import ScheduleHistoryContract
from headrace.testing.contract.schedule_wakes import ScheduleWakesContract
from headrace.testing.contract.set_limit import SetLimitContract
from headrace.testing.contract.settle import SettleContract
from headrace.testing.contract.slots import SlotsContract
from headrace.testing.contract.snooze import SnoozeContract
from headrace.testing.contract.stage import StageContract
from headrace.testing.contract.stats import StatsContract
from headrace.testing.contract.strikes import StrikesContract, StruckContract
from headrace.testing.contract.subject import Subject
from headrace.testing.contract.successors import SuccessorsContract
from headrace.testing.contract.take_schedules import TakeSchedulesContract
from headrace.testing.contract.taken_up import TakenUpContract
from headrace.testing.contract.turns import TurnsContract
from headrace.testing.contract.updates import UpdatesContract
from headrace.testing.contract.wait import WaitContract
from headrace.testing.contract.watch import WatchContract
from headrace.testing.contract.why import WhyContract
from headrace.testing.contract.why_bounds import WhyBoundsContract
from headrace.testing.contract.why_struck import WhyStruckContract
from headrace.testing.contract.workers import WorkersContract
from headrace.testing.contract.write_schedules import WriteSchedulesContract

__all__ = ["StorageContract", "Subject"]


class StorageContract(
    AgingContract,
    BeatContract,
    CancelContract,
    CancelInStatesContract,
    ClaimContract,
    CommitContract,
    ConfigureContract,
    DeleteQueueContract,
    DiscardContract,
    EnqueueContract,
    EventPagesContract,
    EventWordsContract,
    EventsContract,
    ExportContract,
    FailJobsContract,
    FireContract,
    ForTenantContract,
    ForgetContract,
    GatedEntriesContract,
    GatedUpdatesContract,
    GatesContract,
    HeldContract,
    IdempotencyContract,
    JoinReleaseContract,
    ListJobsContract,
    ListSchedulesContract,
    OpeningsContract,
    OutcomesContract,
    OutputContract,
    PauseContract,
    PruneContract,
    PublishContract,
    PurgeContract,
    PutBackContract,
    QueueBoundsContract,
    QueuesContract,
    RatesContract,
    ReadSchedulesContract,
    ReadWriteContract,
    ReadersContract,
    ReapContract,
    RedriveContract,
    RegisterContract,
    RepairContract,
    ReportContract,
    RetireContract,
    ScheduleHistoryContract,
    ScheduleWakesContract,
    SetLimitContract,
    SettleContract,
    SlotsContract,
    SnoozeContract,
    StageContract,
    StatsContract,
    StrikesContract,
    StruckContract,
    SuccessorsContract,
    TakeSchedulesContract,
    TakenUpContract,
    TurnsContract,
    UpdatesContract,
    WaitContract,
    WatchContract,
    WhyContract,
    WhyBoundsContract,
    WhyStruckContract,
    WorkersContract,
    WriteSchedulesContract,
):
    """All that a storage promises. Derive from it and write one fixture.

    It needs pytest and pytest-asyncio, in either of its modes::

        class TestMyStorage(StorageContract):
            @pytest.fixture
            def subject(self, tmp_path: Path) -> Subject:
                return MySubject(tmp_path)

    Every test gets a subject of its own, with an empty storage of any tenant, and closes it.
    """
