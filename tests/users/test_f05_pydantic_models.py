"""F5: pydantic's models and validated types are arguments and results, there and back."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

import msgspec
import pytest
from annotated_types import Gt
from pydantic import (
    AfterValidator,
    AnyUrl,
    BaseModel,
    ConfigDict,
    EmailStr,
    Field,
    PlainSerializer,
    PositiveInt,
    RootModel,
    Secret,
    SecretStr,
    computed_field,
    field_serializer,
)
from pydantic import dataclasses as pydantic_dataclasses
from typing_extensions import TypedDict

from headrace import App, InvalidArguments, Job, JobFailed, NotSerializable, UsageError, Worker
from headrace.codec import encode_arguments, encode_result
from headrace.json_codec import JSON
from headrace.signature import Signature
from headrace.testing import Kit, running
from tests.apps import typed_app
from tests.apps.typed_app import PRICE, Order, Receipt
from tests.support.until import patience


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    at: datetime
    tags: set[str] = set()

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorated property
    @property
    def day(self) -> str:
        return self.at.date().isoformat()


class Aliased(BaseModel):
    user_id: int = Field(validation_alias="userId", serialization_alias="id")


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


class Numbers(RootModel[list[int]]):
    pass


class Page(BaseModel):
    text: str = Field(max_length=3)


class Book(TypedDict):
    pages: list[Page]


@dataclasses.dataclass
class Shelf:
    page: Page


@pydantic_dataclasses.dataclass
class Checked:
    count: PositiveInt


class Pair(NamedTuple):
    page: Page
    url: AnyUrl


class Packet(msgspec.Struct):
    page: Page


class Size(BaseModel):
    size: float


class Measured(msgspec.Struct):
    page: Size


Name = Annotated[str, AfterValidator(str.strip)]
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def signature_for(annotation: Any) -> Signature[Any]:
    def handler(value: object) -> object:
        raise AssertionError(value)

    handler.__annotations__.update({"value": annotation, "return": annotation})
    return Signature(handler, JSON)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Strict, Strict(at=NOW, tags={"a"})),
        (Aliased, Aliased.model_validate({"userId": 3})),
        (Tree, Tree(name="a", children=[Tree(name="b")])),
        (Numbers, Numbers([1, 2])),
        (Page | None, None),
        (Page | Strict, Strict(at=NOW)),
        (Page | int, 3),
        (list[Page], [Page(text="a"), Page(text="b")]),
        (dict[str, Page], {"a": Page(text="a")}),
        (tuple[int, Page], (1, Page(text="a"))),
        (Book, {"pages": [Page(text="a")]}),
        (Shelf, Shelf(Page(text="a"))),
        (Checked, Checked(3)),
        (Pair, Pair(Page(text="a"), AnyUrl("https://a.b/c"))),
        (Packet, Packet(Page(text="a"))),
        (AnyUrl, AnyUrl("https://a.b/c?d=1")),
        (EmailStr, "a@example.com"),
        (PositiveInt, 3),
        (Annotated[bytes, Field(max_length=4)], b"\xff\x00"),
    ],
)
def test_f05_values_come_back_as_they_were(annotation: Any, value: object) -> None:
    signature = signature_for(annotation)
    _, arguments = signature.decode(encode_arguments(signature.encode, {"value": value}))
    assert arguments == {"value": value}
    assert type(arguments["value"]) is type(value)
    assert signature.decode_result(encode_result(signature.encode_result, value)) == value


@pytest.mark.parametrize(
    ("annotation", "stored", "words"),
    [
        (Page, b'{"value":{"text":"long"}}', "text: String should have at most 3 characters - at"),
        (list[Page], b'{"value":[{}]}', r"^Object missing required field `0.text` - at `\$.value`"),
        (Strict, b'{"value":{"at":"x","no":1}}', "at: Input should be .*; no: Extra inputs"),
        (Packet, b'{"value":{"page":{"text":1}}}', r"text: Input should be .* at `\$.value.page`"),
        (PositiveInt, b'{"value":0}', "Input should be greater than 0"),
        (Annotated[int, Gt(5)], b'{"value":5}', "Input should be greater than 5"),
        (EmailStr, b'{"value":"a"}', "not a valid email address"),
        (Checked, b'{"value":{"count":0}}', "count: Input should be greater than 0"),
    ],
)
def test_f05_what_does_not_fit_is_told_without_the_values(
    annotation: Any, stored: bytes, words: str
) -> None:
    with pytest.raises(msgspec.ValidationError, match=words) as caught:
        signature_for(annotation).decode(stored)
    assert "input_value" not in str(caught.value)


def test_f05_validators_change_what_the_handler_gets() -> None:
    signature = signature_for(Name)
    assert signature.decode(signature.encode({"value": " a "}))[1] == {"value": "a"}


def test_f05_plain_data_pass_for_a_model() -> None:
    # As the command line sends them.
    signature = signature_for(list[Page])
    payload = signature.encode({"value": [{"text": "a"}]})
    assert signature.decode(payload)[1] == {"value": [Page(text="a")]}


def test_f05_a_missing_argument_is_left_to_the_handlers_default() -> None:
    def handler(page: Page = Page(text="a"), count: int = 1) -> None:  # noqa: B008 (as users write)
        raise AssertionError

    handler.__annotations__["page"] = Page
    assert Signature(handler, JSON).decode(b"{}") == ((), {})


class Account(BaseModel):
    password: SecretStr


class Open(BaseModel):
    password: SecretStr
    token: Annotated[SecretStr, PlainSerializer(lambda secret: secret.get_secret_value())]

    @field_serializer("password")
    def reveal(self, secret: SecretStr) -> str:
        return secret.get_secret_value()


@pytest.mark.parametrize(
    ("annotation", "name"),
    [
        (SecretStr, "SecretStr"),
        (SecretStr | None, "SecretStr"),
        (Secret[int], "Secret"),
        (Account, "SecretStr"),
        (dict[str, list[Account]], "SecretStr"),
    ],
)
def test_f05_secrets_are_refused_since_asterisks_would_be_stored(
    annotation: Any, name: str
) -> None:
    with pytest.raises(UsageError, match=f"would store {name}.* as asterisks"):
        signature_for(annotation)


def test_f05_secrets_with_a_serializer_are_stored() -> None:
    value = Open(password=SecretStr("a"), token=SecretStr("b"))
    signature = signature_for(Open)
    assert signature.decode(signature.encode({"value": value}))[1] == {"value": value}


class Plain:
    pass


class Holder(msgspec.Struct):
    email: EmailStr


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (tuple[Page, Plain], "pydantic can't store it: .*Plain"),
        (Page | Packet, "pydantic can't store it: .*Packet"),
        (Holder, "EmailStr has no JSON form"),
    ],
)
def test_f05_what_pydantic_can_not_store_is_refused_when_declared(
    annotation: Any, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        signature_for(annotation)


def test_f05_a_value_that_its_model_can_not_write_says_where() -> None:
    with pytest.raises(NotSerializable, match=r"^args\.value can't be encoded by pydantic: "):
        signature_for(list[Page]).encode({"value": [object()]})


def test_f05_a_number_without_a_json_form_is_refused_in_a_model_too() -> None:
    with pytest.raises(NotSerializable, match=r"args\.value\[0\]=nan has no JSON form"):
        signature_for(list[Annotated[float, Field(description="x")]]).encode(
            {"value": [float("nan")]}
        )


def test_f05_so_it_is_in_a_model_in_a_struct() -> None:
    with pytest.raises(NotSerializable, match=r"args\.value\.page .*returned\.size=inf"):
        signature_for(Measured).encode({"value": Measured(Size(size=float("inf")))})


def test_f05_a_model_where_no_type_is_said_is_refused_with_what_to_do() -> None:
    with pytest.raises(NotSerializable, match=r"args\.value is a Page.*annotate the parameter"):
        signature_for(Any).encode({"value": Page(text="a")})


async def test_f05_models_pass_through_a_worker_and_its_processes(storage_url: str) -> None:
    order = Order(item="tea", count=2, at=NOW)
    async with typed_app.opened(storage_url) as app:
        tasks = typed_app.declare(app)
        async with running(Worker(app, process_slots=1)):
            for task in tasks:
                receipt = await (await task.enqueue(order)).result(timeout=patience(20))
                assert receipt == Receipt(order=order, total=2 * PRICE)


async def test_f05_a_kit_has_models_too() -> None:
    order = Order(item="tea", count=2, at=NOW)
    app = App("memory://")
    tasks = typed_app.declare(app)
    async with Kit(app) as kit:
        handles = [await task.enqueue(order) for task in tasks]
        kit.assert_enqueued(tasks[0], {"order": order})
        await kit.run_until_idle()
        for handle in handles:
            assert (await handle.result()).order == order


async def test_f05_a_model_with_a_field_too_few_waits_for_another_release() -> None:
    app = App("memory://")
    typed_app.declare(app)
    name = f"{typed_app.__name__}.sell"
    async with Kit(app) as kit:
        with pytest.raises(InvalidArguments, match=r"missing required field `count`.*order"):
            await kit.perform(
                Job(id="x", queue="q", task=name, payload=b'{"order":{"item":"tea","at":0}}')
            )


async def test_f05_an_undecodable_model_is_a_dead_letter_that_says_why(storage_url: str) -> None:
    async with typed_app.opened(storage_url) as app:
        typed_app.declare(app)
        name = f"{typed_app.__name__}.sell"
        job = await App(storage_url, tenant=app.tenant).enqueue(
            name, queue="default", order={"item": "tea", "count": 0, "at": NOW}
        )
        async with running(Worker(app)):
            with pytest.raises(JobFailed, match="count: Input should be greater than 0") as caught:
                await job.result(timeout=patience(20))
    assert caught.value.reason == "undecodable"


@pytest.mark.parametrize("version", ["1.10.21", "2.10.6"])
def test_f05_a_pydantic_that_is_too_old_is_told(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr("pydantic.VERSION", version)
    with pytest.raises(UsageError, match=rf"is pydantic {version}: headrace needs 2\.11 or newer"):
        signature_for(Page)


def test_f05_pydantic_is_not_imported_by_headrace() -> None:
    program = (
        "import sys, headrace\n"
        "app = headrace.App()\n"
        "@app.task\n"
        "async def f(a: int, b: list[str] | None = None) -> dict[str, int]: ...\n"
        "f.job(1)\n"
        "assert 'pydantic' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=patience(20))
