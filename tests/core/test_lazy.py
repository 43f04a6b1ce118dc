"""Properties that are computed, and members that are loaded, at first use."""

import threading
from dataclasses import FrozenInstanceError, dataclass

import pytest

from pairseek.core.lazy import LazyMembers, _CachedProperty, cached_property


@pytest.fixture(params=[_CachedProperty, cached_property], ids=["ours", "as installed"])
def kind(request):
    return request.param


def test_a_value_is_computed_once_for_each_object(kind):
    calls = []

    @dataclass(frozen=True)
    class Square:
        side: float

        @kind
        def area(self):
            """Return the area."""
            calls.append(self.side)
            return self.side**2

    squares = [Square(2.0), Square(3.0)]
    assert [square.area for square in squares for _ in range(2)] == [4.0, 4.0, 9.0, 9.0]
    assert calls == [2.0, 3.0]
    assert Square.area.__doc__ == "Return the area."
    with pytest.raises(FrozenInstanceError):
        squares[0].area = 1.0


def test_two_objects_do_not_wait_for_each_other():
    both = threading.Barrier(2, timeout=20)

    class Person:
        @cached_property
        def answer(self):
            # Passes only if both compute at the same time.
            both.wait()
            return 1

    people = [Person(), Person()]
    threads = [threading.Thread(target=lambda person=person: person.answer, daemon=True) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert [person.__dict__.get("answer") for person in people] == [1, 1]


def test_members_are_loaded_when_they_are_looked_up():
    members = LazyMembers({"sqrt": "math:sqrt", "math": "math", "lost": "no.such.module:thing"})
    assert (members["sqrt"](9.0), members["math"].pi > 3.0, len(members)) == (3.0, True, 3)
    assert list(members) == ["sqrt", "math", "lost"]
    assert "lost" in members
    assert "pi" not in members
    with pytest.raises(ModuleNotFoundError):
        members["lost"]
    with pytest.raises(AttributeError, match="module 'here' has no attribute 'pi'"):
        members.attribute_of("here", "pi")


def test_every_part_is_registered_under_its_own_name():
    from pairseek.pairs.strategies import UTILITIES
    from pairseek.posteriors import POSTERIORS

    for table in (POSTERIORS, UTILITIES):
        assert all(kind.name == name for name, kind in table.items())
