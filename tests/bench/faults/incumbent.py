#!/usr/bin/env python3
"""Ten faults of ../faults.md made against the tracker, the server and the runner of apache-tvm, on this machine's loopback.

    PYTHON-WITH-TVM tests/bench/faults/incumbent.py [NUMBER...]

Candidates are C, in the form that its code generator emits, and are measured by its RPCRunner with its defaults. Prints for each
fault what happened, as JSON lines.
"""
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from tvm import rpc
from tvm.s_tir.meta_schedule.arg_info import TensorInfo
from tvm.s_tir.meta_schedule.runner import EvaluatorConfig, RPCConfig, RPCRunner, RunnerInput

KEY = "board"
HEAD = """
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
int __tvm_ffi_main(void* self, const void* arguments, int count, void* result) {
  memset(result, 0, 16);
"""
CANDIDATES = {
    "good": "usleep(2000); return 0;",
    "hangs": "for (;;) {}",
    "ignores": "signal(SIGTERM, SIG_IGN); for (;;) {}",
    "crashes": "*(volatile int*)0 = 1; return 0;",
    "nothing": "return 0;",
    "writes": 'close(open(MARKER, O_CREAT | O_WRONLY, 0600)); return 0;',
    "leaves": 'if (fork() == 0) { setsid(); for (int i = 0; i < 100; ++i) { sleep(1); } _exit(0); } return 0;',
}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Fleet:
    """A tracker and its servers, in a folder of its own."""

    def __init__(self, folder, servers=1):
        self.folder, self.port, self.processes = folder, free_port(), []
        self.start_tracker()
        self.servers = [self.start("rpc_server", "--tracker", f"127.0.0.1:{self.port}", "--key", KEY, "--host", "127.0.0.1")
                        for _ in range(servers)]
        self.wait_for(servers)

    def start(self, program, *arguments):
        log = open(f"{self.folder}/{program}.log", "ab")
        process = subprocess.Popen([sys.executable, "-m", f"tvm.exec.{program}", *arguments], stdout=log, stderr=log,
                                   start_new_session=True)
        self.processes.append(process)
        return process

    def start_tracker(self):
        self.tracker = self.start("rpc_tracker", "--host", "127.0.0.1", "--port", str(self.port), "--port-end",
                                  str(self.port + 1))

    def answers(self):
        try:
            rpc.connect_tracker("127.0.0.1", self.port).summary()
            return True
        except Exception:
            return False

    def wait_for(self, servers, seconds=180):
        end = time.time() + seconds
        while time.time() < end:
            try:
                free = rpc.connect_tracker("127.0.0.1", self.port).summary()["queue_info"].get(KEY, {}).get("free", 0)
                if free >= servers:
                    return True
            except Exception:  # it has not started
                pass
            time.sleep(0.3)
        return False

    def candidate(self, name):
        source, library = f"{self.folder}/{name}.c", f"{self.folder}/{name}.so"
        with open(source, "w", encoding="utf-8") as file:
            file.write(f'#define MARKER "{self.folder}/marker"\n{HEAD}{CANDIDATES[name]}\n}}\n')
        subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
        return library

    def measure(self, name, seconds=90):
        """(what became of it, after how long)"""
        config = RPCConfig("127.0.0.1", self.port, KEY)
        runner = RPCRunner(rpc_config=config, max_workers=1,
                           evaluator_config=EvaluatorConfig(number=3, repeat=1, min_repeat_ms=10))
        start, done = time.time(), []
        library = self.candidate(name)

        def run():
            try:
                result = runner.run([RunnerInput(library, "cpu", [TensorInfo("float32", [16])])])[0].result()
                seconds_taken = None if result.run_secs is None else [float(s) for s in result.run_secs]
                done.append(f"measured: {seconds_taken}" if seconds_taken else f"failed: {str(result.error_msg).strip()[-160:]}")
            except Exception as error:  # what the tuner would see
                done.append(f"raised: {type(error).__name__}: {str(error).strip()[-160:]}")

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(seconds)
        return (done[0] if done else f"no answer within {seconds} s"), round(time.time() - start, 1)

    def end(self):
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def running(library):
    """Processes that have a candidate's library mapped, with the processor time they took."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if library in open(f"/proc/{pid}/maps", encoding="utf-8").read():
                ticks = open(f"/proc/{pid}/stat", encoding="utf-8").read().rsplit(")", 1)[1].split()[11:13]
                found.append((int(pid), sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")))
        except (OSError, PermissionError):
            pass
    return found


def candidate_fault(name):
    def fault(folder):
        fleet = Fleet(folder)
        try:
            first, took = fleet.measure(name)
            time.sleep(5)
            left = running(f"{folder}/tmp") + running(f"{name}.so")
            then, after = fleet.measure("good")
            return {"candidate": first, "seconds": took, "processes_left_after_5_s": len(left),
                    "marker_written": os.path.exists(f"{folder}/marker"), "next_candidate": then, "next_seconds": after}
        finally:
            for pid, _ in running(f"{name}.so"):
                os.kill(pid, signal.SIGKILL)
            fleet.end()
    return fault


def stranger(folder):
    """Whoever reaches the port of a server has what he sends run there."""
    fleet = Fleet(folder)
    try:
        session = rpc.connect_tracker("127.0.0.1", fleet.port).request(KEY, session_timeout=20)
        session.upload(fleet.candidate("writes"))
        session.load_module("writes.so")["main"]()
        return {"code_of_a_stranger_ran": os.path.exists(f"{folder}/marker")}
    finally:
        fleet.end()


def torn_line(folder):
    """The last line of the database is cut off, as by a loss of power or a full disk."""
    import tvm
    from tvm.s_tir import meta_schedule as ms
    from tvm.script import tirx as T

    def database():
        return ms.database.JSONDatabase(path_workload=f"{folder}/w.json", path_tuning_record=f"{folder}/r.json")

    @T.prim_func(s_tir=True)
    def double(a: T.Buffer((16,), "float32"), b: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.sblock("b"):
                v = T.axis.spatial(16, i)
                b[v] = a[v] * T.float32(2)

    module = tvm.IRModule({"main": double})
    kept = database()
    workload = kept.commit_workload(module)
    for i in range(100):
        kept.commit_tuning_record(ms.database.TuningRecord(tvm.s_tir.Schedule(module).trace, workload, [1e-6 * (i + 1)],
                                                           tvm.target.Target({"kind": "llvm", "num-cores": 1}),
                                                           ms.arg_info.ArgInfo.from_prim_func(double)))
    before = len(kept)
    text = open(f"{folder}/r.json", encoding="utf-8").read()
    with open(f"{folder}/r.json", "w", encoding="utf-8") as file:
        file.write(text[:-20])
    try:
        return {"records_before": before, "records_after": len(database())}
    except Exception as error:
        return {"records_before": before, "opening_it_again": f"raised {type(error).__name__}: {str(error).strip()[-160:]}"}


def lost_tracker(folder):
    fleet = Fleet(folder)
    try:
        before, _ = fleet.measure("good")
        os.killpg(fleet.tracker.pid, signal.SIGKILL)  # it works in a process of its own
        fleet.tracker.wait()
        without, took = fleet.measure("good")
        fleet.start_tracker()
        start = time.time()
        back = fleet.wait_for(1)
        again = round(time.time() - start, 1)
        then, _ = fleet.measure("good")
        return {"before": before, "without_tracker": without, "seconds": took, "tracker_answers": fleet.answers(), "server_is_back": back, "after_seconds": again,
                "then": then}
    finally:
        fleet.end()


def lost_server(folder):
    """One of two servers is killed while it measures: whether the candidate is measured by the other."""
    fleet = Fleet(folder, servers=2)
    try:
        CANDIDATES["slow"] = "sleep(3); return 0;"
        outcome = []
        thread = threading.Thread(target=lambda: outcome.append(fleet.measure("slow")))
        thread.start()
        victim = None
        for _ in range(200):
            at_work = [pid for pid, _ in running("slow.so")]
            groups = {os.getpgid(pid) for pid in at_work}
            victim = next((s for s in fleet.servers if s.pid in groups), None)
            if victim is not None:
                break
            time.sleep(0.1)
        if victim is not None:
            os.killpg(victim.pid, signal.SIGKILL)
        thread.join()
        then, took = fleet.measure("good")
        return {"killed": victim is not None, "candidate": outcome[0][0], "seconds": outcome[0][1], "next_candidate": then,
                "next_seconds": took}
    finally:
        fleet.end()


FAULTS = [
    ("a candidate loops for ever", candidate_fault("hangs")),
    ("and ignores SIGTERM", candidate_fault("ignores")),
    ("a candidate writes to address 0", candidate_fault("crashes")),
    ("a candidate computes nothing", candidate_fault("nothing")),
    ("a candidate writes a file of the user's", candidate_fault("writes")),
    ("a candidate leaves a process behind", candidate_fault("leaves")),
    ("a stranger without credentials has code run", stranger),
    ("the database's last line is torn", torn_line),
    ("the tracker is killed, and started again", lost_tracker),
    ("a worker is killed while it measures, beside another", lost_server),
]


def main():
    chosen = [int(n) for n in sys.argv[1:]] or range(1, len(FAULTS) + 1)
    for number in chosen:
        name, fault = FAULTS[number - 1]
        with tempfile.TemporaryDirectory() as folder:
            try:
                result = fault(folder)
            except Exception as error:
                result = {"raised": f"{type(error).__name__}: {error}"}
            print(json.dumps({"fault": number, "name": name, **result}), flush=True)


if __name__ == "__main__":
    main()
