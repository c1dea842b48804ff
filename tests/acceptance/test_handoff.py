"""Handoffs: offered once, claimed by one, kept by a lease, settled once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from holdfast import (
    CheckpointBuilder,
    CheckpointNotFoundError,
    ContractError,
    HandoffError,
    InvalidArgumentError,
    Keep,
    SyncClient,
)
from tests.acceptance.conftest import OpenClient
from tests.clients import PERSISTENT, url_of

STATE = {"invoice": "INV-1", "total": 12.5, "lines": ["a", "b"]}
AN_INSTANT = 0.001


class Invoice(BaseModel):
    invoice: str
    total: float
    lines: list[str]


@dataclass
class InvoiceRecord:
    invoice: str
    total: float
    lines: list[str]
    note: str | None = None


SCHEMA = {
    "title": "Invoice",
    "type": "object",
    "required": ["invoice", "total"],
    "properties": {"total": {"type": "number"}, "lines": {"items": {"type": "string"}}},
}
CONTRACTS = [Invoice, InvoiceRecord, SCHEMA]


def offer(client: SyncClient, state: Any = STATE, **options: Any) -> str:
    saved = client.save("clerk", execution_state=state, session_id="march", step_index=4, area="EU")
    return client.handoff(saved, "approver", **options)


def test_an_offer_lies_in_the_inbox_of_its_target(client: SyncClient) -> None:
    first, second = offer(client, contract="invoice/1"), offer(client)

    found = client.inbox("approver")

    assert [each.checkpoint_id for each in found] == [first, second], "the oldest first"
    assert (found[0].from_agent, found[0].from_session) == ("clerk", "march")
    assert (found[0].contract, found[1].contract) == ("invoice/1", None)
    assert found[0].is_open()
    assert client.inbox("somebody else") == []


def test_who_accepts_goes_on_in_a_session_of_the_target(client: SyncClient) -> None:
    offered = offer(client)

    accepted = client.accept(offered, worker="w-1")

    assert accepted.agent_id == "approver"
    assert accepted.session_id.startswith("march-")
    assert accepted.parent_id == offered
    assert accepted.execution_state == STATE
    assert accepted.metadata == {"area": "EU"}
    assert accepted.step_name == "accepted_from_clerk"
    assert accepted.verify_integrity()
    following = client.save("approver", execution_state={}, session_id=accepted.session_id)
    chain = [info.agent_id for info in client.ancestors(following)]
    assert chain == ["approver", "clerk", "clerk"], "the chain leads back to where it began"


def test_a_session_may_be_named(client: SyncClient) -> None:
    assert client.accept(offer(client), session_id="mine").session_id == "mine"


def test_an_accepted_offer_is_taken(client: SyncClient) -> None:
    offered = offer(client)
    client.accept(offered, worker="w-1")

    assert client.inbox("approver") == []
    (taken,) = client.inbox("approver", every=True)
    assert (taken.worker, taken.attempts, taken.outcome) == ("w-1", 1, None)
    with pytest.raises(HandoffError, match="is taken by w-1 until"):
        client.accept(offered)


def test_of_many_who_want_it_one_wins(client: SyncClient) -> None:
    """The clients of a face are driven by one thread; the race of processes is tested elsewhere."""
    offered = offer(client)
    outcomes: list[str | None] = []
    for _ in range(5):
        try:
            outcomes.append(client.accept(offered).checkpoint_id)
        except HandoffError:
            outcomes.append(None)

    assert sum(outcome is not None for outcome in outcomes) == 1


def test_of_eight_threads_one_wins(url: str) -> None:
    with SyncClient.open(url) as client, ThreadPoolExecutor(8) as pool:
        offered = offer(client)
        together = threading.Barrier(8)

        def accept(number: int) -> str | None:
            together.wait()
            try:
                return client.accept(offered, worker=f"w-{number}").checkpoint_id
            except HandoffError:
                return None

        won = [each for each in pool.map(accept, range(8)) if each is not None]

        assert len(won) == 1
        sessions = [each.agent_id for each in client.sessions()]
        assert sessions.count("approver") == 1, "the losers left nothing behind"


def test_completing_settles_it_for_good(client: SyncClient) -> None:
    offered = offer(client)
    client.accept(offered)

    settled = client.complete(offered)

    assert settled.outcome == "completed"
    assert client.inbox("approver") == []
    with pytest.raises(HandoffError, match="is completed"):
        client.accept(offered)
    with pytest.raises(HandoffError, match=r"already|not yours"):
        client.complete(offered)
    with pytest.raises(HandoffError, match="is completed already"):
        client.reject(offered, "too late")


def test_an_offer_is_also_known_by_what_was_made_of_it(client: SyncClient) -> None:
    offered = offer(client)
    accepted = client.accept(offered)
    later = client.save("approver", session_id=accepted.session_id)

    assert client.offer(later).checkpoint_id == offered
    assert client.complete(later).checkpoint_id == offered


def test_rejecting_says_why(client: SyncClient) -> None:
    offered = offer(client)

    settled = client.reject(offered, "no such account")

    assert (settled.outcome, settled.reason) == ("rejected", "no such account")
    assert client.inbox("approver") == []
    with pytest.raises(HandoffError, match=r"is rejected \(no such account\)"):
        client.accept(offered)


def test_only_who_holds_it_completes_it(open_client: OpenClient, url: str) -> None:
    if url.startswith("memory"):
        return
    mine, other = open_client(url), open_client(url)
    offered = offer(mine)
    mine.accept(offered, worker="me")

    with pytest.raises(HandoffError, match="is not yours to complete: me holds it"):
        other.complete(offered)
    assert mine.complete(offered).outcome == "completed"


def test_a_claim_whose_lease_ended_returns_to_the_inbox(client: SyncClient) -> None:
    offered = offer(client)
    first = client.accept(offered, worker="dies", lease_seconds=AN_INSTANT)
    while not client.inbox("approver"):
        pass

    second = client.accept(offered, worker="lives")

    (taken,) = client.inbox("approver", every=True)
    assert (taken.worker, taken.attempts) == ("lives", 2)
    assert second.session_id == first.session_id
    assert second.parent_id == first.checkpoint_id


def test_who_takes_over_goes_on_from_what_was_saved_last(client: SyncClient) -> None:
    offered = offer(client)
    first = client.accept(offered, lease_seconds=AN_INSTANT)
    saved = client.save("approver", execution_state={"half": "done"}, session_id=first.session_id)
    while not client.inbox("approver"):
        pass

    second = client.accept(offered)

    assert second.parent_id == saved
    assert second.execution_state == {"half": "done"}


def test_saving_renews_a_claim(client: SyncClient) -> None:
    offered = offer(client)
    accepted = client.accept(offered, lease_seconds=0.5)
    first = client.offer(offered).claimed_until
    assert first is not None
    client.save("approver", execution_state={"early": True}, session_id=accepted.session_id)
    assert client.offer(offered).claimed_until == first, "not before half of it is over"
    while datetime.now(UTC) < first - timedelta(seconds=0.25):
        pass

    client.save("approver", execution_state={"later": True}, session_id=accepted.session_id)

    renewed = client.offer(offered)
    assert renewed.claimed_until is not None
    assert renewed.claimed_until > first
    assert renewed.attempts == 1


def test_a_claim_can_be_renewed_by_hand_until_it_is_lost(client: SyncClient) -> None:
    offered = offer(client)
    client.accept(offered, lease_seconds=60)

    renewed = client.renew(offered, lease_seconds=600)

    assert renewed.claimed_until is not None
    assert renewed.claimed_until > datetime.now(UTC) + timedelta(seconds=300)
    client.reject(offered)
    with pytest.raises(HandoffError, match="is not yours to renew"):
        client.renew(offered)


def test_a_lost_claim_is_neither_renewed_nor_completed(open_client: OpenClient, url: str) -> None:
    if url.startswith("memory"):
        return
    slow, quick = open_client(url), open_client(url)
    offered = offer(slow)
    slow.accept(offered, lease_seconds=AN_INSTANT)
    while not quick.inbox("approver"):
        pass
    quick.accept(offered, worker="quick")

    with pytest.raises(HandoffError, match="is not yours to renew"):
        slow.renew(offered)
    with pytest.raises(HandoffError, match="quick holds it"):
        slow.complete(offered)
    assert quick.complete(offered).outcome == "completed"


def test_an_offer_expires(client: SyncClient) -> None:
    offered = offer(client, ttl_seconds=0)

    assert client.inbox("approver") == []
    with pytest.raises(CheckpointNotFoundError):
        client.accept(offered)


def test_an_offer_without_a_contract_names_none(client: SyncClient) -> None:
    offered = offer(client)

    assert client.restore(offered).handoff_schema is None
    assert client.offer(offered).contract is None


def test_an_offer_of_an_earlier_release_that_names_a_version_has_no_contract(
    client: SyncClient,
) -> None:
    built = CheckpointBuilder("clerk").handoff("approver", schema="1.0").build()
    plain = CheckpointBuilder("clerk").handoff("approver").build()

    assert (built.handoff_schema, plain.handoff_schema) == ("1.0", None)
    for checkpoint in (built, plain):
        assert client.offer(client.put(checkpoint)).contract is None


@pytest.mark.parametrize("contract", CONTRACTS, ids=["pydantic", "dataclass", "schema"])
def test_a_state_that_fits_its_contract_is_offered_and_accepted(
    client: SyncClient, contract: Any
) -> None:
    offered = offer(client, contract=contract)

    assert str(client.offer(offered).contract).startswith("Invoice")
    assert client.accept(offered, contract=contract).execution_state == STATE


@pytest.mark.parametrize("contract", CONTRACTS, ids=["pydantic", "dataclass", "schema"])
def test_a_state_that_does_not_fit_is_not_offered(client: SyncClient, contract: Any) -> None:
    wrong = {"invoice": "INV-1", "total": "a lot", "lines": ["a", 3]}

    with pytest.raises(ContractError) as caught:
        offer(client, wrong, contract=contract)

    assert {problem.path for problem in caught.value.problems} == {"$.total", "$.lines[1]"}
    assert "$.total: expected " in str(caught.value)
    assert "got str 'a lot'" in str(caught.value)
    assert client.inbox("approver") == []
    assert client.stats().checkpoints == 1


@pytest.mark.parametrize("contract", CONTRACTS, ids=["pydantic", "dataclass", "schema"])
def test_what_does_not_fit_the_receiver_is_not_claimed(client: SyncClient, contract: Any) -> None:
    offered = offer(client, {"total": None})

    with pytest.raises(ContractError, match=r"\$"):
        client.accept(offered, contract=contract)

    assert [each.attempts for each in client.inbox("approver")] == [0]


def test_a_missing_field_is_named(client: SyncClient) -> None:
    with pytest.raises(ContractError, match=r"\$\.invoice: expected .*, got nothing"):
        offer(client, {"total": 1, "lines": []}, contract=Invoice)


def test_secrets_are_not_shown(client: SyncClient) -> None:
    class Login(BaseModel):
        api_key: int

    with pytest.raises(ContractError) as caught:
        offer(client, {"api_key": "sk-123"}, contract=Login)

    assert "sk-123" not in str(caught.value)


def test_the_schema_travels_with_the_offer(client: SyncClient) -> None:
    schema = client.offer(offer(client, contract=Invoice)).schema

    assert schema is not None
    assert schema["properties"]["total"] == {"title": "Total", "type": "number"}
    offered = client.inbox("approver")[0].checkpoint_id
    assert client.accept(offered, contract=schema).parent_id == offered


@pytest.mark.parametrize("contract", [1, ["list"], object, {"type": "no such type"}])
def test_what_is_no_contract_is_refused(client: SyncClient, contract: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="contract"):
        offer(client, contract=contract)


def test_only_an_offer_can_be_accepted(client: SyncClient) -> None:
    saved = client.save("clerk")

    with pytest.raises(HandoffError, match="is none: this checkpoint was not handed off"):
        client.accept(saved)


@pytest.mark.parametrize("lease", [0, -1, "long", None, True, float("inf"), float("nan")])
def test_a_lease_is_a_number_of_seconds(client: SyncClient, lease: Any) -> None:
    offered = offer(client)

    with pytest.raises(InvalidArgumentError, match="lease_seconds is a number"):
        client.accept(offered, lease_seconds=lease)


def test_an_offer_may_be_named_by_a_part_of_its_id(client: SyncClient) -> None:
    offered = offer(client)

    assert client.accept(offered[:-4]).parent_id == offered


def test_taking_gives_the_oldest_open_offer_or_none_in_the_end(client: SyncClient) -> None:
    first, second = offer(client), offer(client)
    client.accept(first)

    taken = client.take("approver", timeout=0)

    assert taken is not None
    assert taken.parent_id == second
    assert client.take("approver", timeout=0) is None


def test_taking_waits_for_an_offer(url: str) -> None:
    with SyncClient.open(url) as client, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.take, "approver", timeout=30)
        offered = offer(client)

        taken = waiting.result()

        assert taken is not None
        assert taken.parent_id == offered


def test_taking_waits_for_a_lease_to_end(client: SyncClient) -> None:
    offered = offer(client)
    client.accept(offered, worker="dead", lease_seconds=0.2)

    taken = client.take("approver", worker="next", timeout=30)

    assert taken is not None
    assert client.offer(offered).worker == "next"


def test_pruning_keeps_open_offers_and_lets_settled_ones_go(client: SyncClient) -> None:
    settled, still_open = offer(client), offer(client)
    client.reject(settled)
    client.save("clerk", execution_state={}, session_id="march")

    client.prune(Keep(last=1))

    assert [each.checkpoint_id for each in client.inbox("approver", every=True)] == [still_open]


@pytest.mark.parametrize("store", PERSISTENT)
def test_an_offer_and_its_claim_survive_a_restart(
    open_client: OpenClient, store: str, tmp_path: Any
) -> None:
    url = url_of(store, tmp_path)
    first = open_client(url)
    offered = offer(first, contract=Invoice)
    first.accept(offered, worker="w-1")
    first.close()

    again = open_client(url).offer(offered)

    assert (again.worker, again.attempts, again.contract) == ("w-1", 1, "Invoice")
