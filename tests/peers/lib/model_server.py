"""Serves a small model on a free loopback port until standard input ends. Run as a program of its own:

    python3 model_server.py FOLDER SECONDS

FOLDER holds the unpacked wheels. The address is printed when the server answers; shortly before SECONDS are over it
says where it hangs, if it does.
"""

import faulthandler
import pathlib
import sys

CONTEXT_TOKENS = 8192


def main():
    """Sampling is greedy, so that a prompt has one reply."""
    folder = pathlib.Path(sys.argv[1])
    faulthandler.dump_traceback_later(0.9 * float(sys.argv[2]))
    sys.path.insert(0, str(folder))
    import xllamacpp

    (gguf,) = folder.glob("**/*.gguf")
    settings = xllamacpp.CommonParams()
    settings.model.path = str(gguf)
    settings.port = 0
    settings.hostnames = ["127.0.0.1"]
    settings.n_ctx = CONTEXT_TOKENS
    settings.n_parallel = 1
    for threads in (settings.cpuparams, settings.cpuparams_batch):
        threads.n_threads = 2
        threads.poll = 0  # a thread that waits by spinning starves the one it waits for when the machine is busy
    settings.sampling.temp = 0.0
    settings.warmup = False
    server = xllamacpp.Server(settings)
    faulthandler.cancel_dump_traceback_later()
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
