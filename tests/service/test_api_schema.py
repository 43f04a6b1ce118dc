"""Whatever the description of the HTTP API allows, and what it does not, no request makes the service fail."""

import zlib

import hypothesis
import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from helpers.serving import configuration, served, some_items
from pairseek.client import Client
from pairseek.web.access.auth import make_token

CHECKS = (not_a_server_error, status_code_conformance, response_schema_conformance)


@pytest.fixture(scope="module")
def visitors(cluster):
    # PostgreSQL, because it is the stricter of the two about what a text or a number may be.
    with served(cluster.database(), studies=[(configuration(), some_items())]) as visitors:
        yield visitors


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_request_makes_the_service_fail(visitors, mode):
    token = make_token(visitors.service.database, "fuzz", ["read", "write", "answer"], "test")
    client = Client(visitors.address, token)
    client.set_open("which", is_open=True)  # what was tried before may have closed it
    session = client.open_session("which")
    known = {"slug": "which", "session_id": session.id}
    schema = schemathesis.openapi.from_url(f"{visitors.address}/openapi.json")
    tried = 0
    for all_operation in schema.get_all_operations():
        operation = all_operation.ok()

        @hypothesis.settings(max_examples=15, suppress_health_check=list(hypothesis.HealthCheck), deadline=None)
        @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
        def one(case):
            # Half of the requests reach a study and a session that exist: what lies behind the address is tried too.
            if zlib.crc32(repr(case.body).encode()) % 2:
                given = dict(case.path_parameters or {})
                case.path_parameters = {name: known.get(name, value) for name, value in given.items()}
            reply = case.call(headers={"Authorization": f"Bearer {token}"})
            case.validate_response(reply, checks=CHECKS)

        try:
            one()
        except hypothesis.errors.Unsatisfiable:
            # Nothing of this operation can be wrong: it takes no parameters.
            assert mode is GenerationMode.NEGATIVE
            assert not operation.body
            continue
        tried += 1
    assert tried >= 10
