"""What this machine can do, looked up and measured: device, threads, bf16 or fp32.

Some virtual machines announce AMX and then stop a process that uses it. So where it is announced,
one product is first tried in a process of its own; if that dies, the library behind PyTorch's
bf16 products is set to do without it.
"""

import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

import psutil
import torch

from headstart.config import Config, Precision, check_number
from headstart.errors import HeadstartError
from headstart.files import cache_folder, write_text

# Those that matter for training, with the names people know them by.
INSTRUCTION_SETS = {
    "avx2": "AVX2",
    "avx512_f": "AVX-512",
    "avx512_bf16": "AVX-512 bf16",
    "avx512_vnni": "AVX-512 VNNI",
    "avx_vnni": "AVX VNNI",
    "amx_bf16": "AMX bf16",
    "amx_int8": "AMX int8",
    "neon": "NEON",
    "bf16": "Arm bf16",
    "sve": "SVE",
}
COMPILERS = ("c++", "g++", "clang++", "cl")


@dataclass(frozen=True)
class Facts:
    """One machine, as this process may use it."""

    system: str
    python: str
    torch: str
    cpu: str
    cores: int  # physical ones
    usable_cores: int  # what the scheduler and a container's quota leave to this process
    instruction_sets: list[str]
    memory_bytes: int
    free_memory_bytes: int
    accelerators: list[str]
    compiler: str | None


def look_up() -> Facts:
    """Look at the machine; takes milliseconds once PyTorch is loaded."""
    abilities = torch.cpu.get_capabilities()
    memory = psutil.virtual_memory()
    limit = _container_memory()
    return Facts(
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        torch=torch.__version__,
        cpu=str(abilities.get("cpu_name") or platform.processor() or "unknown"),
        cores=psutil.cpu_count(logical=False) or os.cpu_count() or 1,
        usable_cores=usable_cores(),
        instruction_sets=[name for key, name in INSTRUCTION_SETS.items() if abilities.get(key)],
        memory_bytes=min(memory.total, limit),
        free_memory_bytes=min(memory.available, limit),
        accelerators=_accelerators(),
        compiler=next((path for name in COMPILERS if (path := shutil.which(name))), None),
    )


def usable_cores() -> int:
    """Cores this process may use: a container often has fewer than the machine."""
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    quota = _first_line(Path("/sys/fs/cgroup/cpu.max")).split()
    if len(quota) == 2 and quota[0].isdigit():
        allowed = min(allowed, max(1, int(quota[0]) // int(quota[1])))
    return allowed


def choose_threads(wanted: int | None = None) -> int:
    """Threads for the matrix products: one a physical core; a second there only waits."""
    if wanted is not None:
        check_number("threads", wanted, minimum=1, maximum=512)
        return wanted
    return max(1, min(usable_cores(), psutil.cpu_count(logical=False) or 1))


def _container_memory() -> int:
    limit = _first_line(Path("/sys/fs/cgroup/memory.max"))
    return int(limit) if limit.isdigit() else 2**63


def _first_line(path: Path) -> str:
    return path.read_text().strip() if path.is_file() else ""


def _accelerators() -> list[str]:
    found = [
        f"cuda:{number} {torch.cuda.get_device_name(number)}"
        for number in range(torch.cuda.device_count())
    ]
    return [*found, "mps"] if torch.backends.mps.is_available() else found


def pick_device(wanted: str | None = None) -> torch.device:
    """`cuda` or `mps` where there is one, else `cpu`; `wanted` overrides, if it is here."""
    here = available_devices()
    if wanted is None:
        return torch.device(here[0])
    try:
        device = torch.device(wanted)
    except RuntimeError:
        raise HeadstartError(
            f"there is no device called {wanted!r}", fix=f"use --device {' or '.join(here)}"
        ) from None
    missing_card = device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count()
    if device.type not in here or missing_card:
        raise HeadstartError(
            f"this machine has no {wanted}", fix=f"use --device {' or '.join(here)}"
        )
    return device


def available_devices() -> list[str]:
    """The kinds of device on this machine, the fastest first."""
    devices = ["cpu"]
    if torch.backends.mps.is_available():
        devices.insert(0, "mps")
    if torch.cuda.is_available():
        devices.insert(0, "cuda")
    return devices


# A block's product: 512 tokens, width 256, feed-forward twice as wide.
ROWS, INNER, COLUMNS = 512, 256, 512
REPETITIONS = 7
# Converting to bf16 and back costs time too; a small gain in the product is a loss in the end.
WORTHWHILE = 1.3
ISA, WITHOUT_AMX = "ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16"
_TRIAL = "import torch; a = torch.ones(512, 512, dtype=torch.bfloat16); a @ a"


@dataclass(frozen=True)
class PrecisionChoice:
    """The precision to train in, the speed of both, and why."""

    precision: Precision
    fp32_gflops: float
    bf16_gflops: float
    why: str


def choose_precision(device: torch.device) -> PrecisionChoice:
    """Time the same product in both precisions, in turn, and take bf16 where it pays."""
    if device.type == "cpu":
        make_bf16_safe()
    speeds = _measure(device)
    ratio = speeds["bf16"] / speeds["fp32"]
    if ratio >= WORTHWHILE:
        precision: Precision = "bf16"
        why = f"its products run {ratio:.1f} times as fast as fp32 here"
    else:
        precision = "fp32"
        why = f"bf16 products run at {ratio:.2g} times the speed of fp32 here; " + (
            f"below {WORTHWHILE} it does not pay" if ratio >= 1 else "it would only be slower"
        )
    return PrecisionChoice(precision, speeds["fp32"], speeds["bf16"], why)


@cache
def make_bf16_safe() -> None:
    """Turn AMX off for this process and its children where it is announced but does not work.

    To be called before the first bf16 product: the library looks at its setting once.
    """
    if ISA in os.environ or not torch.cpu.get_capabilities().get("amx_bf16"):
        return
    if not _amx_works():
        os.environ[ISA] = WITHOUT_AMX


def autocast(precision: Precision, device: torch.device) -> torch.autocast:
    """The context in which a network is trained or read in this precision."""
    if precision == "bf16" and device.type == "cpu":
        make_bf16_safe()
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16")


def _amx_works() -> bool:
    """Whether a bf16 product survives; tried once per machine and version, then looked up."""
    cpu = str(torch.cpu.get_capabilities().get("cpu_name", "")).replace(" ", "-")
    name = f"{platform.node()}-{cpu}-{platform.release()}-torch-{torch.__version__}"
    known = cache_folder() / "machine" / f"amx-{name}.txt"
    try:
        return known.read_text(encoding="utf-8") == "works"
    except OSError:
        pass
    try:
        tried = subprocess.run([sys.executable, "-c", _TRIAL], capture_output=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired):
        return False
    works = tried.returncode == 0
    if tried.returncode > 0:  # it did not get as far as the product: that says nothing of AMX
        return False
    try:
        known.parent.mkdir(parents=True, exist_ok=True)
        write_text(known, "works" if works else "does not work")
    except (OSError, HeadstartError):
        pass  # it is tried again next time
    return works


def _measure(device: torch.device) -> dict[Precision, float]:
    """Billions of floating-point operations per second, the median of a few products each."""
    kinds: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}
    operands = {
        name: (
            torch.ones(ROWS, INNER, dtype=kind, device=device),
            torch.ones(INNER, COLUMNS, dtype=kind, device=device),
        )
        for name, kind in kinds.items()
    }
    seconds: dict[Precision, list[float]] = {"fp32": [], "bf16": []}
    for repetition in range(REPETITIONS + 1):
        for name, (left, right) in operands.items():  # in turn: a noisy moment hits both
            _wait(device)
            start = time.perf_counter()
            left @ right
            _wait(device)
            if repetition:  # the first one also sets things up
                seconds[name].append(time.perf_counter() - start)
    operations = 2 * ROWS * INNER * COLUMNS
    return {name: operations / statistics.median(times) / 1e9 for name, times in seconds.items()}


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


C = TypeVar("C", bound=Config)


def resolve_machine(config: C) -> C:
    """Return the config with a device, a number of threads and a precision, and use the threads."""
    threads = choose_threads(getattr(config, "threads", None))
    torch.set_num_threads(threads)
    device = pick_device(getattr(config, "device", None))
    precision = getattr(config, "precision", None)
    if precision is None:
        precision = choose_precision(device).precision
    elif device.type == "cpu":
        make_bf16_safe()
    return config.replace(device=str(device), threads=threads, precision=precision)


def peak_memory() -> int:
    """Return the most memory that this process has used, in bytes."""
    try:
        import resource
    except ImportError:  # Windows
        return int(psutil.Process().memory_info().rss)
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
