"""Agents that hold modules, optimizers and generators of torch and numpy, saved and loaded."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from holdfast import (
    Checkpointable,
    CheckpointManager,
    SchemaMigrationError,
    SerializationError,
    register_migration,
)


class Learner(Checkpointable):
    """An agent that learns: a module, its optimizer and scheduler, and where chance stands."""

    def __init__(self, width: int = 8) -> None:
        self.model = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.Linear(width, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.1)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 2)
        self.dice = random.Random(1)
        self.noise = np.random.default_rng(2)
        self.generator = torch.Generator().manual_seed(3)
        self.steps = 0

    def step(self) -> None:
        inputs = torch.randn(5, 4, generator=self.generator) * self.dice.random()
        loss = (self.model(inputs) - float(self.noise.random())).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        self.steps += 1


def weights(learner: Learner) -> list[Any]:
    return [parameter.tolist() for parameter in learner.model.parameters()]


@pytest.fixture(params=["memory", "file", "sqlite"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointManager:
    if request.param == "memory":
        return CheckpointManager()
    return CheckpointManager(request.param, path=tmp_path / "states")


def test_learning_goes_on_as_if_nothing_had_happened(manager: CheckpointManager) -> None:
    learner = Learner()
    for _ in range(3):
        learner.step()
    manager.save("learner", learner)
    resumed = manager.load("learner", Learner())
    for _ in range(3):
        learner.step()
        resumed.step()

    assert weights(resumed) == weights(learner)
    assert resumed.optimizer.param_groups[0]["lr"] == learner.optimizer.param_groups[0]["lr"]
    assert resumed.steps == 6


def test_a_state_is_loaded_into_the_module_that_stands_there(manager: CheckpointManager) -> None:
    learner = Learner()
    manager.save("learner", learner)
    model, parameters = learner.model, list(learner.model.parameters())
    before = weights(learner)
    learner.step()

    manager.load("learner", learner)

    assert learner.model is model
    assert all(a is b for a, b in zip(parameters, learner.model.parameters(), strict=True))
    assert weights(learner) == before


def test_training_one_layer_writes_that_layer_alone(tmp_path: Path) -> None:
    class Pair(Checkpointable):
        def __init__(self) -> None:
            self.model: Any = torch.nn.ModuleList(torch.nn.Linear(100, 300) for _ in range(2))

    with CheckpointManager("sqlite", path=tmp_path / "pair.db") as manager:
        pair = Pair()
        manager.save("pair", pair)
        first = manager.client.stats().stored_bytes
        with torch.no_grad():
            pair.model[0].weight += 1
        manager.save("pair", pair)
        written = manager.client.stats().stored_bytes - first

    layer = 100 * 300 * 4
    assert first > 1.7 * layer
    assert written < 1.1 * layer


def test_a_rollback_puts_the_weights_back() -> None:
    learner = Learner()
    learner.step()
    before = weights(learner)

    def diverge() -> None:
        with CheckpointManager().rollback_context("learner", learner):
            learner.step()
            raise RuntimeError("diverged")

    with pytest.raises(RuntimeError, match="diverged"):
        diverge()

    assert weights(learner) == before
    assert learner.steps == 1


def test_a_clone_learns_by_itself() -> None:
    learner = Learner()
    learner.step()
    before = weights(learner)

    twin = learner.clone()
    twin.step()

    assert weights(learner) == before
    assert weights(twin) != before
    owned = {id(parameter) for parameter in twin.model.parameters()}
    assert {id(p) for group in twin.optimizer.param_groups for p in group["params"]} == owned


def test_a_diff_tells_which_attributes_learned() -> None:
    manager = CheckpointManager()
    learner = Learner()
    manager.save("learner", learner)
    assert manager.diff("learner", agent=learner)["changed"] == {}

    learner.step()

    assert set(manager.diff("learner", agent=learner)["changed"]) == {
        *("model", "optimizer", "scheduler", "dice", "noise", "generator", "steps")
    }


def test_a_state_that_does_not_fit_changes_nothing() -> None:
    small, large = Learner(8), Learner(16)
    before = weights(large)
    state = small.state_dict()
    state["steps"] = 99

    with pytest.raises(SchemaMigrationError, match=r"(?s)\$\.model.*size mismatch"):
        large.load_state_dict(state)

    assert weights(large) == before
    assert large.steps == 0


def test_a_failure_further_on_puts_the_weights_back() -> None:
    learner = Learner()
    state = learner.state_dict()
    learner.step()
    after = weights(learner)
    state["optimizer"]["state"]["param_groups"] = []

    with pytest.raises(SchemaMigrationError, match=r"\$\.optimizer"):
        learner.load_state_dict(state)

    assert weights(learner) == after


def test_no_module_is_made_from_stored_data() -> None:
    class Bare(Checkpointable):
        def __init__(self) -> None:
            self.model: Any = None

    holder = Bare()
    holder.model = torch.nn.Linear(2, 2)
    state = holder.state_dict()

    with pytest.raises(SerializationError, match="set the attribute to one") as caught:
        Bare().load_state_dict(state)

    assert caught.value.path == "$.model"


def test_modules_in_lists_dicts_and_nested_agents_are_kept() -> None:
    class Team(Checkpointable):
        def __init__(self) -> None:
            self.members = [Learner(), Learner()]
            self.heads = {"a": torch.nn.Linear(2, 2), 3: torch.nn.Linear(2, 2)}

    team = Team()
    state = team.state_dict()
    before = [weights(member) for member in team.members]
    head = team.heads[3].weight.tolist()
    for member in team.members:
        member.step()
    with torch.no_grad():
        team.heads[3].weight += 1

    team.load_state_dict(state)

    assert [weights(member) for member in team.members] == before
    assert team.heads[3].weight.tolist() == head


def test_a_dict_that_looks_like_the_state_of_a_module_stays_a_dict() -> None:
    class Odd(Checkpointable):
        def __init__(self) -> None:
            self.value: Any = None

    odd = Odd()
    odd.value = {"__class__": "torch.nn.Module", "__version__": "1.0", "state": {}}
    copy = Odd()
    copy.load_state_dict(odd.state_dict())

    assert copy.value == odd.value


def test_a_migration_sees_the_state_of_a_module() -> None:
    class Renamed(Checkpointable):
        def __init__(self) -> None:
            self.net = torch.nn.Linear(2, 2)

        @classmethod
        def _checkpoint_version(cls) -> int:
            return 2

    @register_migration("Renamed", "1.0")
    def model_became_net(state: Any) -> Any:
        state["net"] = state.pop("model")
        return state

    old = torch.nn.Linear(2, 2)
    renamed = Renamed()
    module = {"__class__": "torch.nn.Module", "__version__": "1.0", "state": old.state_dict()}
    renamed.load_state_dict({"__class__": "Renamed", "__version__": "1.0", "model": module})

    assert torch.equal(renamed.net.weight, old.weight)
