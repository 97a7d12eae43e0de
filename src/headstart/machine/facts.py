"""What this machine is: looked up, nothing assumed."""

import os
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

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
