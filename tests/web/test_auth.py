"""Sign-in under attack: attempts are counted before a password is verified, however many arrive at once."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import argon2
import pytest
import sqlalchemy as sa

from helpers.serving import cheap_passwords
from pairseek.store import migrate, people
from pairseek.store.database import Database
from pairseek.store.schema import attempts
from pairseek.web.access import auth
from pairseek.web.errors import Problem

PASSWORD = "a long password"


@pytest.fixture(scope="module", autouse=True)
def _cheap():
    with cheap_passwords():
        yield


@pytest.fixture
def database(database_url):
    made = Database(database_url)
    migrate.prepare(made)
    auth.set_password(made, "ann", PASSWORD)
    yield made
    made.close()


def tried(database, password, *, name="ann", address="192.0.2.1"):
    try:
        auth.sign_in(database, name, password, address)
    except Problem as problem:
        return problem.status
    return 200


class Hashes:
    """Stands in for argon2: counts how many are computed, and how many at a time."""

    def __init__(self):
        self.count = self.now = self.most = 0
        self.lock = threading.Lock()

    def __call__(self, secret, password):
        with self.lock:
            self.count += 1
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.005)
        with self.lock:
            self.now -= 1
        return False


def test_a_hundred_at_once_try_ten_passwords_two_at_a_time(database, database_url, monkeypatch):
    hashes = Hashes()
    monkeypatch.setattr(auth, "_is_correct", hashes)
    # Each half has connections of its own, as another worker has.
    other = Database(database_url)
    with ThreadPoolExecutor(100) as pool:
        replies = list(pool.map(lambda k: tried((database, other)[k % 2], f"wrong {k}"), range(100)))
    other.close()
    assert (replies.count(401), replies.count(429)) == (10, 90)
    assert hashes.count == 10
    assert hashes.most <= 2
    assert tried(database, PASSWORD) == 429, "the right password must not be found out by going on"


def test_a_success_counts_as_no_failure(database):
    assert [tried(database, PASSWORD) for _ in range(12)] == [200] * 12
    assert database.read(lambda c: c.execute(sa.select(sa.func.count()).select_from(attempts)).scalar()) == 0


def test_an_unknown_name_costs_what_a_known_one_does(database):
    stored = database.read(lambda c: people.user(c, "ann"))["password"]
    dummy = auth.register_attempt(database, "nobody", "192.0.2.1").password_hash
    assert argon2.extract_parameters(dummy) == argon2.extract_parameters(stored)
    # A hash that could not be parsed would be refused in no time.
    with pytest.raises(argon2.exceptions.VerifyMismatchError):
        auth._hasher().verify(dummy, "a guess")
    assert [tried(database, "wrong", name="nobody") for _ in range(10)] == [401] * 9 + [429]


@pytest.mark.parametrize("change", ["password", "removal"])
def test_a_password_that_ends_while_it_is_verified_opens_nothing(database, monkeypatch, change):
    verified = auth._is_correct

    def slow(secret, password):
        found = verified(secret, password)
        if change == "password":
            auth.set_password(database, "ann", "another password")
        else:
            database.write(lambda c: c.execute(sa.text("DELETE FROM users")))
        return found

    monkeypatch.setattr(auth, "_hashing", threading.Semaphore(3))
    monkeypatch.setattr(auth, "_is_correct", slow)
    assert tried(database, PASSWORD) == 401
