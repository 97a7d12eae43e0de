"""How long gloo's all-reduce takes: one process of it, started once for each rank.

    python bench/scaling/all_reduce.py RANK COUNT ADDRESS PORT INTERFACE BYTES…

Rank 0 prints the median seconds for each size, as JSON.
"""

import json
import os
import statistics
import sys
import time

REPETITIONS = 9


def main() -> None:
    rank, count, address, port, interface, *sizes = sys.argv[1:]
    os.environ["GLOO_SOCKET_IFNAME"] = interface
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    place = {"rank": int(rank), "world_size": int(count)}
    dist.init_process_group("gloo", init_method=f"tcp://{address}:{port}", **place)
    found = []
    for size in map(int, sizes):
        tensor = torch.zeros(size // 4)
        seconds = []
        for _ in range(REPETITIONS):
            dist.barrier()
            began = time.perf_counter()
            dist.all_reduce(tensor)
            seconds.append(time.perf_counter() - began)
        found.append(statistics.median(seconds[2:]))
    dist.destroy_process_group()
    if rank == "0":
        print(json.dumps(found))


if __name__ == "__main__":
    main()
