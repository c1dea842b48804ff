"""What sessions and offers are held by is one kind of lease, and noted under the keys of before."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.errors import CheckpointIntegrityError, HandoffError, SessionLostError
from holdfast.session.lease import SessionLease
from holdfast.verbs import leases, stored_values
from holdfast.verbs.claims import Claim, last_claim
from holdfast.verbs.leases import Lease
from holdfast.verbs.notes import NoteBatch

END = datetime(2026, 1, 1, tzinfo=UTC)
KINDS: dict[str, stored_values.Kind] = {"owner": stored_values.TEXT, "until": stored_values.MOMENT}


def session_lease() -> SessionLease:
    return SessionLease("/sessions/a/s", 3, 30.0, END, "me")


def claim() -> Claim:
    return Claim("offer", 3, 300.0, END, "me", "s")


def last(*keys: str) -> leases.LastLease | None:
    """Return the last lease of notes with these keys, each of which ends a day later."""
    noted = [
        (key, {"owner": key, "until": END + timedelta(days=day)}) for day, key in enumerate(keys)
    ]
    return leases.last_lease(SessionLease, "a lease", noted, KINDS, ("owner", "until"))


@pytest.mark.parametrize(
    ("lease", "fence", "value"),
    [
        (session_lease(), ("/sessions/a/s", "lease/4"), {"owner": "me", "until": END}),
        (
            claim(),
            ("offer", "claim/4"),
            {"worker": "me", "session_id": "s", "until": END},
        ),
    ],
)
def test_the_next_number_is_the_fence_of_a_lease(
    lease: Lease, fence: tuple[str, str], value: dict[str, Any]
) -> None:
    assert (lease.fence, lease.value()) == (fence, value)
    assert lease.key == fence[1].replace("4", "3")


@pytest.mark.parametrize(
    ("make", "prefix", "expires"),
    [(session_lease, "lease/3/", True), (claim, "claim/3/renewed/", False)],
)
def test_a_renewal_is_noted_under_the_number_as_older_versions_noted_it(
    make: Callable[[], Lease], prefix: str, expires: bool
) -> None:
    with SyncClient.memory() as client:
        batch = NoteBatch()
        again = make().renewed(client.runtime.engine, batch)

    (note,) = batch.notes
    assert note.key.startswith(prefix)
    assert "/" not in note.key.removeprefix(prefix)
    assert again.until > END
    assert note.expires_at == (again.until if expires else None)
    assert replace(again, until=END) == make()


@pytest.mark.parametrize(
    ("make", "lost"), [(session_lease, SessionLostError), (claim, HandoffError)]
)
def test_what_another_has_taken_over_cannot_be_renewed(
    make: Callable[[], Lease], lost: type[Exception]
) -> None:
    with SyncClient.memory() as client:
        engine, lease = client.runtime.engine, make()
        taken = NoteBatch()
        replace(lease, number=lease.number + 1).note(engine, taken)
        client.runtime.run(taken.write())

        with pytest.raises(lost):
            client.runtime.run(leases.renew(engine, lease))


def test_the_last_lease_is_the_one_of_the_highest_number_as_it_was_renewed_last() -> None:
    found = last("lease/1", "lease/1/x", "lease/2", "lease/2/y", "lease/1/late")

    assert found == leases.LastLease(2, {"owner": "lease/2/y", "until": END + timedelta(days=3)})


def test_a_renewal_that_was_under_way_does_not_take_a_lease_again_that_was_given_back() -> None:
    found = last("lease/1", "lease/1/released", "lease/1/late")

    assert found is not None
    assert found.is_released
    assert found.is_over


def test_without_notes_there_is_no_lease() -> None:
    assert last() is None


@pytest.mark.parametrize("key", ["claim/", "claim/x", "claim/-1", "claim/9999999999999999999999"])
def test_a_lease_without_a_number_is_an_error_that_names_what_it_is_of(key: str) -> None:
    with pytest.raises(CheckpointIntegrityError, match="the offer 'o'"):
        last_claim("the offer 'o'", [(key, {})])
