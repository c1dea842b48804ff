"""Every framework that a record can be of has a form, an adapter, and what it needs."""

from pathlib import Path

from holdfast import Framework
from holdfast.adapters.frameworks import FRAMEWORKS
from holdfast.core.conversation import FORMS

ADAPTERS = Path(__file__).parents[2] / "src" / "holdfast" / "adapters"


def test_every_framework_has_a_form_and_an_adapter() -> None:
    every = {each.value for each in Framework} - {"custom"}

    assert set(FORMS) == set(FRAMEWORKS) == every
    assert {path.parent.name for path in ADAPTERS.glob("*/__init__.py")} == every
