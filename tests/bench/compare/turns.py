"""Contenders that take turns: each a process of its own (contender.py) that loads one model once and waits to be told to run it."""
import contextlib
import json
import math
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.realpath(os.path.join(HERE, "..", "..", ".."))
PAUSE_SECONDS = 0.25   # OpenMP of Intel and LLVM spins for 0.2 s


def environment(name):
    """The Python of the environment build/NAME, which holds what NAME.txt lists; made when it is not there."""
    folder, needs = os.path.join(ROOT, "build", name), os.path.join(HERE, name + ".txt")
    python, mark = os.path.join(folder, "bin", "python"), os.path.join(folder, ".installed")
    wanted = open(needs).read()
    if not os.path.exists(mark) or open(mark).read() != wanted:
        print(f"== making {folder}", file=sys.stderr)
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", needs], check=True)
        with open(mark, "w") as file:
            file.write(wanted)
    return python


class Contender:
    """A process that loads one model once and is told when to run it."""

    def __init__(self, name, kind, model, args):
        python = getattr(args, "python", None) or environment("tvm" if kind == "tvm" else "peers")
        self.name = name
        self.log = open(os.path.join(args.work, f"{name}.log"), "w")
        self.process = subprocess.Popen(
            [python, os.path.join(HERE, "contender.py"), kind, model, str(args.threads), str(args.seconds), str(args.trials),
             getattr(args, "sizes", "")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
            env=dict(os.environ, HONE_RUNTIME=os.path.join(args.bin, "..", "lib", "libhone_runtime.so")))
        self.ready = self.process.stdout.readline().strip() == "ready"
        self.ms = []

    def turn(self):
        self.process.stdin.write("run\n")
        self.process.stdin.flush()
        self.ms.append(float(self.process.stdout.readline()))
        time.sleep(PAUSE_SECONDS)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


def median(values):
    ordered, n = sorted(values), len(values)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2


def interval(values):
    ordered, n = sorted(values), len(values)
    # P(the true median lies before the k-th smallest or after the k-th largest) = 2 P(Binomial(n, 1/2) < k)
    k = max([k for k in range(1, n // 2 + 1) if 2 * sum(math.comb(n, i) for i in range(k)) <= 0.05 * 2 ** n], default=1)
    return ordered[k - 1], ordered[n - k]


def take_turns(wanted, args):
    """Times (name, kind, model) in turn, every second round in the opposite order. Who does not take the model is left out,
    which is said. The contenders, each with its times by round."""
    contenders = []
    for name, kind, model in wanted:
        contender = Contender(name, kind, model, args)
        if contender.ready:
            contenders.append(contender)
        else:
            print(f"   {name} does not take {model}: see {contender.log.name}", file=sys.stderr)
            contender.close()
    for turn in range(args.rounds):
        for contender in contenders[::1 if turn % 2 == 0 else -1]:
            contender.turn()
    for contender in contenders:
        contender.close()
    return contenders


def spread(contenders):
    """(p90 - p10) / p50 of the rounds, of the contender of which it is largest."""
    return max((sorted(c.ms)[-1 - len(c.ms) // 10] - sorted(c.ms)[len(c.ms) // 10]) / median(c.ms) for c in contenders)


def hone(args, *command):
    done = subprocess.run([os.path.join(args.bin, "hone"), *command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"hone {' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def untuned_bundle(path, base, args, how=()):
    out = base + "-untuned.hone"
    hone(args, "compile", path, "-o", out, "--untuned", "--threads", str(args.threads), *how)
    return out


@contextlib.contextmanager
def service_for(target, database, args):
    """A daemon on that database and a worker that measures for the target on this machine: the address."""
    address, program = "unix:" + database + ".sock", lambda name: os.path.join(args.bin, name)
    allowed = ["--allow-missing-layer=all"]  # nobody else's work: the sandbox may lack what this machine does not give
    with open(database + ".log", "a") as log:
        daemon = subprocess.Popen([program("honed"), "--db", database, "--listen", address, *allowed], stdout=log, stderr=log)
        worker = subprocess.Popen([program("hone-worker"), "--server", address, "--exit-with-daemon", "--target", target,
                                   "--runner", program("hone-runner"), *allowed], stdout=log, stderr=log)
        try:
            yield address
        finally:
            for process in (worker, daemon):
                process.terminate()
                process.wait()


def tuned_bundle(path, base, args, how=(), target="cpu:native"):
    """A bundle of the records of at least args.trials a task, in a database that is kept beside it."""
    out, database = base + "-tuned.hone", base + ".db"
    how = ["--threads", str(args.threads), "--target", target, *how]
    trials = args.trials * len(json.loads(hone(args, "inspect", path, "--json"))["tasks"])
    if os.path.exists(database):
        rows = [json.loads(line) for line in hone(args, "jobs", "--db", database, "--json").splitlines()]
        trials -= sum(row.get("trials", 0) for row in rows)
    tune = ["tune", path, *how, "--trials", str(trials), "--wait", "10m"]
    if trials > 0 and target == "cpu:native":
        hone(args, *tune, "--db", database)
    elif trials > 0:
        with service_for(target, database, args) as address:
            hone(args, *tune, "--server", address)
    hone(args, "compile", path, "-o", out, "--db", database, *how)
    return out
