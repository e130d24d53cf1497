"""What runs the parts of a batch run: processes of this machine, Ray, Dask or Spark. They schedule, we predict."""

from __future__ import annotations

import itertools
import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol

from webinfer.errors import InputError
from webinfer.host.cores import usable_cores
from webinfer.scale.columns import optional
from webinfer.session.options import whole_number

AHEAD = 2  # parts that each worker is given: one to work at, one so that it does not wait
MAX_DEATHS = 3  # of processes at one part; then its rows have an error
MAX_PROCESSES = 1024
Outcome = tuple[int, int]  # rows of a part, and how many have an error


class Job(Protocol):
    """What is run (batch.BatchJob)."""

    def run(self, number: int) -> Outcome:
        """Does a part."""

    def give_up(self, number: int, why: str) -> Outcome:
        """Writes a part with an error in each row."""


_job: Any = None  # of this process, which is sent it once


def local(job: Job, todo: Sequence[int], processes: int | None, address: str | None = None) -> Iterator[Outcome]:
    """Processes of this machine, as many as it has cores; one of them is this process.

    A process that dies is replaced, and what it had runs again. A part at which MAX_DEATHS processes died, alone, is
    given up.
    """
    count = usable_cores() if processes is None else whole_number("processes", processes, 1, MAX_PROCESSES)
    if count == 1:
        yield from map(job.run, todo)
        return
    left, deaths = list(todo), Counter[int]()
    while left:
        for number in [number for number in left if deaths[number] >= MAX_DEATHS]:
            left.remove(number)
            yield job.give_up(number, f"crash: {MAX_DEATHS} processes died at the part of this row")
        # What may have ended a process is tried one by one, so that nothing else is blamed for it.
        suspects = [number for number in left if deaths[number]]
        workers, ahead = (1, 1) if suspects else (min(count, len(left)), AHEAD * count)
        for number, outcome in _until_broken(job, suspects or list(left), workers, ahead, count):
            if outcome is None:
                deaths[number] += 1
                continue
            left.remove(number)
            yield outcome


def _until_broken(
    job: Job, todo: Sequence[int], workers: int, ahead: int, count: int
) -> Iterator[tuple[int, Outcome | None]]:
    """Parts that were done; then, if a process died, those that were under way, with None."""
    threads = max(1, usable_cores() // count)
    context = multiprocessing.get_context("spawn")  # a fork would take locks and GPUs along
    if not todo:
        return
    with ProcessPoolExecutor(workers, context, _begin, (job, threads, context.Value("i", 0))) as pool:
        waiting, running = iter(todo), dict[Future[Outcome], int]()
        try:
            while True:
                while len(running) < ahead and (number := next(waiting, None)) is not None:
                    running[pool.submit(_run_part, number)] = number
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    outcome = future.result()
                    yield running.pop(future), outcome
        except BrokenProcessPool:
            for future, number in running.items():
                died = not future.done() or isinstance(future.exception(), BrokenProcessPool)
                yield number, None if died else future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _begin(job: Any, threads: int, begun: Any) -> None:
    """In a new process: notes the job. Its sessions have so many threads, and a GPU in turn with other processes'."""
    global _job
    with begun.get_lock():
        os.environ["WEBINFER_WORKER"] = str(begun.value)
        begun.value += 1
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    _job = job


def _run_part(number: int) -> Outcome:
    found: Outcome = _job.run(number)
    return found


def ray(job: Job, todo: Sequence[int], processes: int | None, address: str | None = None) -> Iterator[Outcome]:
    """Tasks of Ray, which runs a task again whose worker died. One core each, unless OMP_NUM_THREADS says otherwise."""
    module = optional("ray", "engine='ray'")
    began = not module.is_initialized()
    if began:
        module.init(address=address, num_cpus=None if address else processes, include_dashboard=False)
    try:
        sent, run = module.put(job), module.remote(max_retries=MAX_DEATHS)(_run_of)
        at_once = AHEAD * int(module.cluster_resources().get("CPU", 1))
        waiting, running = iter(todo), list[Any]()
        while True:
            while len(running) < at_once and (number := next(waiting, None)) is not None:
                running.append(run.remote(sent, number))
            if not running:
                return
            done, running = module.wait(running)
            yield from module.get(done)
    finally:
        if began:
            module.shutdown()


def dask(job: Job, todo: Sequence[int], processes: int | None, address: str | None = None) -> Iterator[Outcome]:
    """A client of Dask, the one that is open or a new one; the scheduler gives a dead worker's parts to others."""
    module = optional("distributed", "engine='dask'")
    with (
        module.Client(address)
        if address
        else module.Client(
            n_workers=processes or usable_cores(), threads_per_worker=1, dashboard_address=None
        ) as client
    ):
        sent, waiting = client.scatter(job, broadcast=True, hash=False), iter(todo)
        first = [
            client.submit(_run_of, sent, number, pure=False)
            for number in itertools.islice(waiting, AHEAD * len(client.ncores()))
        ]
        running = module.as_completed(first)
        for future in running:
            yield future.result()
            if (number := next(waiting, None)) is not None:
                running.add(client.submit(_run_of, sent, number, pure=False))


def spark(job: Job, todo: Sequence[int], processes: int | None, address: str | None = None) -> Iterator[Outcome]:
    """A job of Spark with a task for each part; it tells of all of them at the end."""
    sql = optional("pyspark.sql", "engine='spark'")
    session = sql.SparkSession.getActiveSession()
    began = session is None
    if session is None:
        master = address or f"local[{processes or usable_cores()},{1 + MAX_DEATHS}]"  # else one death ends the run
        session = sql.SparkSession.builder.master(master).config("spark.ui.enabled", "false").getOrCreate()
    try:
        numbers = session.sparkContext.parallelize(list(todo), len(todo))
        yield from numbers.map(lambda number: job.run(number)).toLocalIterator(prefetchPartitions=True)
    finally:
        if began:
            session.stop()


def _run_of(job: Job, number: int) -> Outcome:
    return job.run(number)


class _Engines(dict[str, Callable[[Job, Sequence[int], int | None, str | None], Iterator[Outcome]]]):
    def __missing__(self, name: str) -> Any:
        raise InputError(f"engine={name!r} is unknown; choose {' or '.join(self)}")


ENGINES = _Engines(local=local, ray=ray, dask=dask, spark=spark)
