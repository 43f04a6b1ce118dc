"""Client of the HTTP API: studies, sessions, answers and data.

The client needs only the standard library.

The examples assume a service on this machine and its token in ``token.txt``, which two commands provide:

    pairseek serve
    pairseek token create shop --scope read --scope write --scope answer > token.txt

They use the study ``teas``, which the example of `Client` creates.

Examples
--------
>>> from pathlib import Path
>>> from pairseek.client import Client
>>> client = Client("http://127.0.0.1:8421", Path("token.txt").read_text().strip())
>>> session = client.open_session("teas", seed=1)
>>> session.state().status
'asking'
"""

from pairseek.client.client import Client
from pairseek.client.connection import ServiceError
from pairseek.client.records import (
    CatalogueVersion,
    Outcome,
    Pair,
    RecommendedItem,
    SessionEstimate,
    State,
    StudyFacts,
)
from pairseek.client.session import Session

__all__ = [
    "CatalogueVersion",
    "Client",
    "Outcome",
    "Pair",
    "RecommendedItem",
    "ServiceError",
    "Session",
    "SessionEstimate",
    "State",
    "StudyFacts",
]
