"""Kinds of torch values; torch is not imported here, only used where it already is.

A tensor is kept as its bytes, dtype, shape, whether it requires a gradient and the device it was
on. Strides are not kept, nor gradients and what they are computed from. Tensors that share memory
come back as equal copies. No name in stored data is resolved: dtypes come from a table.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from holdfast.core.kinds.plain_shapes import WHOLE
from holdfast.core.kinds.table import (
    Kind,
    Reviver,
    Revives,
    Unkeepable,
    add,
    add_matcher,
    all_exactly,
    exactly,
)

TENSOR, TORCH = 55, 56

_DTYPES = (
    *("float64", "float32", "float16", "bfloat16", "complex128", "complex64"),
    *("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool"),
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
)
_TENSORS = ("torch:Tensor", "torch:Parameter")
_device = re.compile(r"(cpu|cuda|mps|xpu|meta)(?::(\d{1,3}))?")


def _bytes_at(address: int, length: int) -> bytes:
    from ctypes import string_at  # which takes long to import, and only tensors need

    return string_at(address, length)


def _dtype_name(dtype: Any) -> str:
    name = str(dtype).removeprefix("torch.")
    if name not in _DTYPES:
        raise Unkeepable(f"of dtype {dtype} cannot be checkpointed; convert it with .to(...)")
    return name


def _dtype(name: Any) -> Any:
    if exactly(name, str) not in _DTYPES:
        raise ValueError(f"no such dtype: {name[:40]}")
    found = getattr(sys.modules["torch"], name, None)
    if found is None:
        raise ValueError(f"this version of torch has no {name}")
    return found


def _reduce_tensor(tensor: Any) -> list[Any]:
    torch = sys.modules["torch"]
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
        raise Unkeepable("cannot be checkpointed: it is sparse, quantized or nested; convert it")
    if tensor.device.type == "meta":
        raise Unkeepable("cannot be checkpointed: it is on the meta device and holds nothing")
    if sys.byteorder != "little":
        raise Unkeepable("cannot be checkpointed on a big-endian machine; convert it to numpy")
    name = _TENSORS[type(tensor) is torch.nn.Parameter]
    dtype = _dtype_name(tensor.dtype)
    plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    # Without numpy, which torch does not need; the tensor is alive until the copy is made.
    data = _bytes_at(plain.data_ptr(), plain.numel() * plain.element_size())
    return [name, data, dtype, list(tensor.shape), tensor.requires_grad, str(tensor.device)]


def _revive_tensor(plain: list[Any], reviver: Reviver) -> Any:
    name, data, dtype, shape, requires_grad, device = exactly(plain, list)
    if exactly(name, str) not in _TENSORS:
        raise ValueError(f"no such tensor: {name[:40]}")
    torch = sys.modules.get("torch")
    if torch is None:
        return reviver.missing(TENSOR, plain, "is not imported")
    made = _made(torch, exactly(data, bytes), _dtype(dtype), all_exactly(shape, int))
    tensor = made.to(_device_here(torch, exactly(device, str)))
    if exactly(requires_grad, bool) and not tensor.dtype.is_floating_point | tensor.is_complex():
        raise ValueError(f"{dtype} has no gradient")
    if name == "torch:Parameter":
        return torch.nn.Parameter(tensor, requires_grad=requires_grad)
    return tensor.requires_grad_(requires_grad)


def _made(torch: Any, data: bytes, dtype: Any, shape: list[int]) -> Any:
    size = dtype.itemsize
    for extent in shape:
        if extent < 0:
            raise ValueError("a negative extent")
        size *= extent
    if size != len(data) or len(shape) > 64:
        raise ValueError(f"{len(data)} bytes for a tensor of {size}")
    if dtype is torch.bool and data.translate(None, b"\x00\x01"):
        raise ValueError("a bool that is neither")
    if not data:
        return torch.empty(shape, dtype=dtype)
    # A copy, so that it has memory of its own, aligned as torch does.
    return torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape).clone()


def _device_here(torch: Any, name: str) -> str:
    """Return the device that a tensor was on, if this machine has it, else the CPU."""
    found = _device.fullmatch(name)
    if found is None:
        raise ValueError(f"no such device: {name[:40]}")
    kind, index = found[1], int(found[2] or 0)
    if kind == "cuda":
        is_here = torch.cuda.is_available() and index < torch.cuda.device_count()
    elif kind == "mps":
        is_here = torch.backends.mps.is_available() and not index
    elif kind == "xpu":
        is_here = torch.xpu.is_available() and index < torch.xpu.device_count()
    else:
        is_here = False
    return name if is_here else "cpu"


def _reduce_other(value: Any) -> list[Any]:
    torch = sys.modules["torch"]
    cls = type(value)
    if cls is torch.Size:
        return ["torch:Size", list(value)]
    if cls is torch.dtype:
        return ["torch:dtype", _dtype_name(value)]
    if cls is torch.device:
        if not _device.fullmatch(str(value)):
            raise Unkeepable("cannot be checkpointed; keep its name")
        return ["torch:device", str(value)]
    if value.device.type != "cpu":
        raise Unkeepable(f"on {value.device} cannot be checkpointed; keep its get_state()")
    state = value.get_state()
    return ["torch:Generator", _bytes_at(state.data_ptr(), state.numel())]


def _revive_other(plain: list[Any], reviver: Reviver) -> Any:
    name, main = exactly(plain, list)
    if exactly(name, str) not in _others:
        raise ValueError(f"no such torch value: {name[:40]}")
    torch = sys.modules.get("torch")
    if torch is None:
        return reviver.missing(TORCH, plain, "is not imported")
    return _others[name](torch, main)


def _device_of(torch: Any, main: Any) -> Any:
    if not _device.fullmatch(exactly(main, str)):
        raise ValueError(f"no such device: {main[:40]}")
    return torch.device(main)


def _generator(torch: Any, main: Any) -> Any:
    value = torch.Generator()
    # Torch checks the size, and that no position in it lies outside.
    value.set_state(torch.frombuffer(bytearray(exactly(main, bytes)), dtype=torch.uint8))
    return value


_others: dict[str, Any] = {
    "torch:Size": lambda torch, main: torch.Size(all_exactly(main, int)),
    "torch:dtype": lambda torch, main: _dtype(main),
    "torch:device": _device_of,
    "torch:Generator": _generator,
}

TENSOR_KIND = add(
    Kind(TENSOR, "torch.Tensor", _reduce_tensor, _revive_tensor, Revives.OWN_TYPES, WHOLE)
)
TORCH_KIND = add(Kind(TORCH, "torch", _reduce_other, _revive_other, Revives.OWN_TYPES, WHOLE))


def is_live(cls: type) -> bool:
    """Return whether a class is one of torch's that hold functions beside their state."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    nn, optim = getattr(torch, "nn", None), getattr(torch, "optim", None)
    bases = (
        getattr(nn, "Module", None),
        getattr(optim, "Optimizer", None),
        getattr(getattr(optim, "lr_scheduler", None), "LRScheduler", None),
    )
    return any(base is not None and issubclass(cls, base) for base in bases)


def _match(cls: type) -> Kind | None:
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "nn"):
        return None
    if cls is torch.Tensor or cls is torch.nn.Parameter:
        return TENSOR_KIND
    if cls in (torch.Size, torch.dtype, torch.device) or cls is torch.Generator:
        return TORCH_KIND
    if issubclass(cls, torch.Tensor):
        raise Unkeepable("is a subclass of torch.Tensor; convert it or register_type(...) it")
    if is_live(cls):
        raise Unkeepable(
            "cannot be checkpointed whole: keep its state_dict(), and load that into one that your "
            "program made"
        )
    return None


add_matcher(_match)
