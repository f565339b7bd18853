"""E1, E2, B4: a Redis URL is taken as it is meant, or refused when the app is made."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from headrace import App, InvalidOption, StorageRefused, Worker
from headrace.app import clients_of
from headrace.storage.connect import check_url
from headrace.testing import running
from tests.support.redis_server import RedisServer

REFUSED = {
    "redis://h?nonsense=1": "'nonsense' is not known; known are db, username, password",
    "redis://h?foo=bar": "'foo' is not known",
    "redis://h?timeout=5": "'timeout' is not known",
    "redis://h?dbs=1": "'dbs' is not known, did you mean 'db'",
    "redis://h?user=x": "'user' is not known, did you mean 'username'",
    "redis://h?decode_responses=True": "'decode_responses' is not known",
    "redis://h?protocol=3": "'protocol' is not known",
    "redis://h?encoding=latin-1": "'encoding' is not known",
    "redis://h?retry_on_timeout=1": "'retry_on_timeout' is not known",
    "redis://h?health_check_interval=1": "'health_check_interval' is not known",
    "redis://h?socket_timeout=1": "'socket_timeout' is not known",
    "redis://h?max_connections=1": "'max_connections' is not known",
    "redis://h?ssl=true": "begin the URL with rediss://",
    "redis://h?ssl_cert_reqs=none": "begin the URL with rediss://",
    "unix:///run/redis.sock?ssl_cert_reqs=none": "begin the URL with rediss://",
    "rediss://h?ssl_cert_reqs=CERT_NONE": "ssl_cert_reqs='CERT_NONE' is not valid: use none",
    "rediss://h?ssl_check_hostname=perhaps": "use true or false",
    "rediss://h?ssl_ca_certs=": "ssl_ca_certs is empty",
    "rediss://h?ssl_cart_reqs=none": "did you mean 'ssl_cert_reqs'",
    "redis://h/abc": "db='abc' is not valid: use the number of a database",
    "redis://h/production": "db='production' is not valid",
    "redis://h/-1": "db='-1' is not valid",
    "redis://h/0/1": "db='0/1' is not valid",
    "redis://h/4294967296": "is not valid",
    "redis://h?db=": "db='' is not valid",
    "redis://h?db=1.5": "db='1.5' is not valid",
    "redis://h/1?db=2": "says twice, and differently, what db is",
    "redis://h?db=1&db=1": "says db twice",
    "redis://a@h?username=b": "says twice, and differently, what username is",
    "redis://h?client_name=a%20b": "use 1 to 64 printable ASCII characters",
    "redis://h:0": "port 0 is not valid",
    "redis://h:65536": "can't be read",
    "redis://h%0a": "no name of a host",
    f"redis://{'h' * 64}": "no name of a host",
    "unix://run/redis.sock": "names no socket",
    "unix://": "names no socket",
}


@pytest.mark.parametrize("url", REFUSED)
def test_what_a_url_can_not_mean_is_refused_when_the_app_is_made(url: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        App(url)
    assert REFUSED[url] in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://h/3",
        "redis://h/3/",
        "redis://h?db=3",
        "redis://h/3?db=3",
        "redis://:57@h/0",
        "redis://user:p%23%40%2F%3Fss@h:6379/0?client_name=shop",
        "redis://h?username=u&password=p",
        "rediss://h?ssl_cert_reqs=none&ssl_check_hostname=false",
        "unix:///run/redis@1.sock?db=2",
        "unix://:p%40ss@/run/redis.sock",
    ],
)
def test_what_a_url_can_mean_is_taken(url: str) -> None:
    assert check_url(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "redis://:57#Wc903z@host:6421/0",
        "redis://:57?Wc903z@host:6421/0",
        "redis://:57/Wc903z@host:6421/0",
        "redis://:p#Wc903z@host",
        "redis://:Wc903z",
        "redis://:57?Wc903z",
        "redis://:57#Wc903z",
        "redis://:[Wc903z@host",
        "unix://:57/Wc903z@/run/redis.sock",
        "redis://user:57@host?password=Wc903z",
        "redis://user:57@host?password=x@Wc903z",
    ],
)
def test_a_password_that_is_not_encoded_is_refused_and_no_piece_of_it_is_shown(url: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        App(url)
    assert "Wc903z" not in f"{caught.value!r}{caught.value.__cause__!r}"
    assert "57" not in str(caught.value)


async def test_the_options_of_a_url_are_those_of_every_connection(
    redis_server: RedisServer,
) -> None:
    async with App(f"{redis_server.url}/7?client_name=shop", tenant="options") as app:

        @app.task
        async def work() -> int:
            return 5

        async with running(Worker(app, lease=0.6)):
            assert await work.enqueue_and_wait() == 5
            with redis.Redis.from_url(f"{redis_server.url}/7") as client:
                clients = client.client_list()
                assert client.keys("hr:{options*")
    theirs = [line for line in clients if line["db"] == "7" and line["name"] == "shop"]
    assert len(theirs) >= 3


async def test_a_database_that_the_server_does_not_have_is_a_refusal(
    redis_server: RedisServer,
) -> None:
    async with App(f"{redis_server.url}/99") as app:

        @app.task
        async def work() -> None: ...

        for call in (app.connect(), work.enqueue(), work.enqueue_and_wait(), Worker(app).run()):
            with pytest.raises(StorageRefused, match=r"DB index is out of range.*name another"):
                await call


@pytest.mark.parametrize("name", ["ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile"])
async def test_a_file_for_tls_that_is_not_there_is_named(name: str, tmp_path: Path) -> None:
    async with App("redis://unused") as app:
        app.url = check_url(f"rediss://127.0.0.1?{name}={tmp_path}/none")
    with pytest.raises(InvalidOption, match=f"{name}='{tmp_path}/none' can't be read"):
        clients_of(app).open_storage()
    (tmp_path / "none").write_text("rubbish")
    if name == "ssl_ca_certs":
        with pytest.raises(InvalidOption, match="ssl_ca_certs can't be used"):
            clients_of(app).open_storage()
