"""Names of before lead to the same things, warn where they are used, and are read from stores."""

import warnings
from importlib import import_module
from typing import Any

import pytest

import holdfast
from holdfast import ApprovalDeniedError, SyncClient, model
from holdfast.core import class_names
from tests.project.names_page import MODULES, is_elsewhere, names

ERRORS = {"ApprovalDenied": "ApprovalDeniedError", "StillWaiting": "StillWaitingError"}
REFUSALS = ("Fenced", "MissingBase", "MissingParent", "NoteExists", "NotTheHead", "Refused")
OLD = [
    *(
        (module, old, now)
        for module in ("holdfast", "holdfast.errors")
        for old, now in ERRORS.items()
    ),
    *(("holdfast.stores.base", old, f"{old}Error") for old in REFUSALS),
]
SAVED_BY_0_3 = {
    "adapters.langgraph.moving": ("Moved",),
    "core.diff": ("ByPath", "Diff"),
    "core.raw": ("Raw", "Sealed"),
    "errors": ("ApprovalDenied", "CheckpointNotFoundError", "Problem", "StillWaiting"),
    "model": ("Checkpoint", "CheckpointInfo", "Framework"),
    "session.approval": ("Decision", "Question"),
    "session.effects": ("Effect",),
    "session.explore": ("Exploration", "Outcome"),
    "session.recovery": ("Recovered",),
    "session.replay": ("Step",),
    "session.rollback": ("RolledBack",),
    "session.unknown": ("UnknownCall",),
    "state.checkpointable": ("LoadedKeys",),
    "state.manager": ("Saved",),
    "stores.base": ("Collected", "SessionInfo", "Stats"),
    "verbs.bundle": ("Exported", "Imported"),
    "verbs.events": ("Event",),
    "verbs.handoff": ("Offer",),
    "verbs.interrupts": ("OpenInterrupt",),
    "verbs.lineage": ("Node", "Tree"),
    "verbs.prune": ("Keep", "Pruned"),
    "verbs.verify": ("Damage", "Verified"),
    "workspace.diff": ("TreeDiff",),
    "workspace.results": ("Restored", "Snapshot"),
    "workspace.scan": ("Skipped",),
}
"""Classes that a program of 0.3 was given, and may have kept in a state."""


@pytest.mark.parametrize(("module", "old", "now"), OLD)
def test_an_old_name_is_the_same_class_and_warns_where_it_is_used(
    module: str, old: str, now: str
) -> None:
    with pytest.warns(DeprecationWarning, match=f"{module}.{old} is called .*{now} now") as told:
        found = getattr(import_module(module), old)

    assert found is getattr(holdfast, now)
    assert {each.filename for each in told} == {__file__}


def test_an_old_name_that_is_imported_catches_what_is_raised_today() -> None:
    with pytest.warns(DeprecationWarning, match="ApprovalDeniedError"):
        from holdfast import ApprovalDenied

    with pytest.raises(ApprovalDenied) as raised:
        raise ApprovalDeniedError("send", "no")
    assert isinstance(raised.value, ApprovalDeniedError)


@pytest.mark.parametrize("module", ["holdfast", "holdfast.errors", "holdfast.stores.base"])
def test_a_name_that_never_was_is_an_attribute_error(module: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'Nonsense'"):
        _ = import_module(module).Nonsense


def test_old_names_are_not_shown() -> None:
    assert not {old for _, old, _ in OLD} & set(dir(holdfast))


def test_an_error_that_was_saved_under_its_old_name_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with SyncClient.memory() as client:
        with monkeypatch.context() as before:
            before.setitem(
                class_names._names, ApprovalDeniedError, "holdfast.errors:ApprovalDenied"
            )
            saved = client.save("a", execution_state={"why": ApprovalDeniedError("send", "no")})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            why: Any = client.restore(saved).execution_state["why"]

    assert type(why) is ApprovalDeniedError
    assert (why.tool, why.reason) == ("send", "no")


@pytest.mark.parametrize(
    "name", [f"{home}:{each}" for home, all in SAVED_BY_0_3.items() for each in all]
)
def test_what_0_3_may_have_kept_in_a_state_is_still_known_by_its_name(name: str) -> None:
    here = [module for module in MODULES if not is_elsewhere(module)]
    public = [getattr(import_module(module), each) for module in here for each in names(module)]

    assert class_names.find_class(f"holdfast.{name}") in public


@pytest.mark.parametrize("name", ["Checkpoint", "CheckpointInfo", "Framework"])
def test_what_states_hold_of_the_model_is_named_as_in_every_release(name: str) -> None:
    assert class_names.class_name(getattr(model, name)) == f"holdfast.model:{name}"
