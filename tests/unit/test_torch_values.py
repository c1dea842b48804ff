"""Values of torch are kept to the bit; nothing in stored data names code of torch's."""

import subprocess
import sys
from collections import OrderedDict
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from holdfast import CheckpointIntegrityError, SerializationError, SyncClient
from holdfast.core.codec import pack, unpack
from holdfast.core.diff import diff_values
from holdfast.core.json_form import dumps, from_json, loads, to_json
from holdfast.core.kinds import by_name
from tests.unit.attacks import load_typed

DTYPES = [
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex128),
    *(torch.complex64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
    *(torch.uint16, torch.uint32, torch.uint64, torch.bool, torch.float8_e4m3fn),
]
SHAPES = [(), (0,), (1,), (5,), (2, 3), (2, 0, 4), (1, 2, 3, 4)]


def filled(dtype: Any, shape: tuple[int, ...], seed: int) -> Any:
    generator = torch.Generator().manual_seed(seed)
    data = torch.randint(0, 100, shape, generator=generator).to(torch.float32)
    return data.to(dtype)


def bits(tensor: Any) -> Any:
    return tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)


def same(a: Any, b: Any) -> bool:
    return (
        type(a) is type(b)
        and (a.dtype, a.shape, a.requires_grad) == (b.dtype, b.shape, b.requires_grad)
        and torch.equal(bits(a), bits(b))
    )


def through(value: Any, *, as_json: bool) -> Any:
    return from_json(loads(dumps(to_json(value)))) if as_json else unpack(pack(value))


@given(st.sampled_from(DTYPES), st.sampled_from(SHAPES), st.integers(0, 99), st.booleans())
def test_tensors_are_kept(dtype: Any, shape: Any, seed: int, as_json: bool) -> None:
    tensor = filled(dtype, shape, seed)

    assert same(through(tensor, as_json=as_json), tensor)
    if dtype.is_floating_point or dtype.is_complex:
        assert same(unpack(pack(tensor.requires_grad_())), tensor)
        parameter = torch.nn.Parameter(tensor, requires_grad=bool(seed % 2))
        assert same(through(parameter, as_json=as_json), parameter)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(12).reshape(3, 4).T,
        torch.arange(12)[::2],
        torch.zeros(3).expand(2, 3),
        torch.complex(torch.ones(2), torch.ones(2)).conj(),
        torch.complex(torch.ones(2), torch.ones(2)).conj().imag,
        torch.tensor([float("nan"), float("-inf"), -0.0]),
        torch.ones(2, requires_grad=True) * 2,
    ],
    ids=["transposed", "strided", "expanded", "conjugate", "negative", "special", "computed"],
)
def test_views_and_odd_numbers_are_kept_by_their_values(tensor: Any) -> None:
    copy = unpack(pack(tensor))

    assert same(copy, tensor)
    assert copy.is_contiguous()
    assert copy.is_leaf


def test_a_revived_tensor_has_memory_of_its_own() -> None:
    base = torch.zeros(4)
    first, second = unpack(pack([base, base[:2]]))

    first += 1

    assert second.tolist() == [0, 0]
    assert base.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "value", [torch.Size([2, 3]), torch.bfloat16, torch.device("cuda:1"), torch.device("cpu")]
)
def test_sizes_dtypes_and_devices_are_kept(value: Any) -> None:
    copy = unpack(pack({"x": value}))["x"]

    assert type(copy) is type(value)
    assert copy == value


def test_a_generator_goes_on_where_it_was() -> None:
    generator = torch.Generator().manual_seed(4)
    torch.randn(3, generator=generator)

    copy = unpack(pack(generator))

    assert torch.equal(torch.randn(5, generator=copy), torch.randn(5, generator=generator))
    state = unpack(pack(torch.get_rng_state()))
    assert torch.equal(state, torch.get_rng_state())


def network() -> Any:
    return torch.nn.Sequential(
        torch.nn.Linear(64, 256), torch.nn.BatchNorm1d(256), torch.nn.Linear(256, 64)
    )


def test_the_state_of_a_module_is_kept_with_its_versions() -> None:
    module = network()
    state: Any = module.state_dict()

    copy: Any = unpack(pack(state))

    assert type(copy) is OrderedDict
    assert list(copy) == list(state)
    assert vars(copy) == vars(state) != {}
    assert all(same(copy[name], state[name]) for name in state)
    other = network()
    other.load_state_dict(copy)
    assert torch.equal(other.eval()(torch.ones(2, 64)), module.eval()(torch.ones(2, 64)))


@pytest.mark.parametrize("cls", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
def test_an_optimizer_goes_on_where_it_was(cls: Any) -> None:
    def trained(module: Any, optimizer: Any) -> None:
        for _ in range(2):
            optimizer.zero_grad()
            module(torch.ones(3, 64)).square().mean().backward()
            optimizer.step()

    module = network()
    optimizer = cls(module.parameters(), lr=0.1)
    trained(module, optimizer)
    kept = unpack(pack({"module": module.state_dict(), "optimizer": optimizer.state_dict()}))

    other = network()
    other.load_state_dict(kept["module"])
    resumed = cls(other.parameters(), lr=0.5)
    resumed.load_state_dict(kept["optimizer"])
    trained(module, optimizer)
    trained(other, resumed)

    assert all(map(torch.equal, module.parameters(), other.parameters()))


def test_an_unchanged_tensor_costs_nothing() -> None:
    client = SyncClient.memory()
    module = network()
    client.save("coder", execution_state=module.state_dict(), session_id="s")
    first = client.stats().stored_bytes
    with torch.no_grad():
        module[2].weight += 1
    client.save("coder", execution_state=module.state_dict(), session_id="s")
    second = client.stats().stored_bytes

    layer = module[2].weight.numel() * 4
    assert second - first < layer * 1.1
    assert first > layer * 1.8


def test_a_diff_shows_tensors() -> None:
    old = {"w": torch.zeros(5000), "same": torch.ones(5000)}
    new = {"w": torch.ones(5000), "same": torch.ones(5000), "more": torch.ones(2)}

    diff = diff_values(old, new)

    assert list(diff.changed) == ["$.w"]
    assert torch.equal(diff.changed["w"][1], torch.ones(5000))
    assert list(diff.added) == ["$.more"]
    assert "tensor(" in str(diff)


class Marked(torch.Tensor):
    pass


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: torch.zeros(3).to_sparse(), "sparse"),
        (lambda: torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.quint8), "quantized"),
        (lambda: torch.empty(3, device="meta"), "meta"),
        (lambda: torch.zeros(3).as_subclass(Marked), "subclass"),
        (lambda: torch.zeros(3, dtype=torch.complex32), "dtype"),
        (lambda: torch.nn.Linear(2, 2), "state_dict"),
        (lambda: torch.optim.SGD([torch.zeros(1)]), "state_dict"),
    ],
    ids=["sparse", "quantized", "meta", "subclass", "complex32", "module", "optimizer"],
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's, of experimental and deprecated types
def test_what_cannot_be_kept_is_named_by_its_path_with_the_remedy(make: Any, why: str) -> None:
    value = make()

    with pytest.raises(SerializationError, match=why) as caught:
        pack({"net": [value]})

    assert caught.value.path == "$.net[0]"


GOOD = ["torch:Tensor", b"\x00" * 8, "float32", [2], False, "cpu"]


def changed(**fields: Any) -> list[Any]:
    names = ("name", "data", "dtype", "shape", "requires_grad", "device")
    return [fields.get(name, value) for name, value in zip(names, GOOD, strict=True)]


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        ("torch.Tensor", changed(name="os:system")),
        ("torch.Tensor", changed(data=b"\x00" * 7)),
        ("torch.Tensor", changed(data="text")),
        ("torch.Tensor", changed(dtype="load")),
        ("torch.Tensor", changed(dtype="quint8")),
        ("torch.Tensor", changed(dtype="bool", shape=[8], data=b"\x02" * 8)),
        ("torch.Tensor", changed(shape=[-2])),
        ("torch.Tensor", changed(shape=[2**62, 2**62])),
        ("torch.Tensor", changed(shape=[0, 2**80], data=b"")),
        ("torch.Tensor", changed(shape=[1] * 100 + [2])),
        ("torch.Tensor", changed(shape="2")),
        ("torch.Tensor", changed(requires_grad=1)),
        ("torch.Tensor", changed(dtype="int32", requires_grad=True)),
        ("torch.Tensor", changed(device="cpu; import os")),
        ("torch.Tensor", changed(device="privateuseone")),
        ("torch.Tensor", GOOD[:-1]),
        ("torch", ["torch:load", "x"]),
        ("torch", ["torch:dtype", "Tensor"]),
        ("torch", ["torch:device", "hpu"]),
        ("torch", ["torch:Size", ["a"]]),
        ("torch", ["torch:Generator", b"\x00" * 5056]),
        ("torch", ["torch:Generator", b"\xff" * 5056]),
        ("torch", ["torch:Generator", b"\x01" * 16]),
        ("torch", ["torch:Generator", b""]),
    ],
)
def test_what_is_no_value_of_torch_is_refused(kind: str, plain: Any) -> None:
    with pytest.raises(CheckpointIntegrityError):
        load_typed(kind, plain)


@given(st.sampled_from(["torch.Tensor", "torch"]), st.data())
def test_any_field_of_a_wrong_type_is_refused(kind: str, data: st.DataObject) -> None:
    plain: list[Any] = list(GOOD) if kind == "torch.Tensor" else ["torch:Generator", b"\x00" * 5056]
    at = data.draw(st.integers(0, len(plain) - 1))
    plain[at] = data.draw(
        st.none() | st.integers(0, 9) | st.text(max_size=3) | st.binary(max_size=3)
    )

    with pytest.raises(CheckpointIntegrityError):
        load_typed(kind, plain)


def test_a_tensor_of_a_device_that_is_not_here_comes_on_the_cpu() -> None:
    tensor = load_typed("torch.Tensor", changed(device="cuda:9"))

    assert tensor.device.type == "cpu"


def test_torch_is_not_imported_to_read_a_tensor() -> None:
    script = (
        "import sys\n"
        "from holdfast.core.codec import unpack\n"
        "from holdfast.errors import UnknownTypeError\n"
        f"data = bytes.fromhex({pack([torch.zeros(2), torch.float32]).hex()!r})\n"
        "try:\n"
        "    unpack(data)\n"
        "except UnknownTypeError as error:\n"
        "    print(error)\n"
        "print(unpack(data, 'raw')[0].type_name, 'torch' in sys.modules)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert "torch:Tensor is not imported" in said.stdout
    assert said.stdout.endswith("torch:Tensor False\n")


def test_kinds_of_torch_have_their_codes_for_good() -> None:
    assert [by_name[name].code for name in ("torch.Tensor", "torch")] == [55, 56]
