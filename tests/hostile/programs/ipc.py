"""Leaves things behind that are no processes and no files: shared memory, message queues, semaphores."""

import ctypes
import os

from common import MARK, TARGETS, libc, quietly, refused, say, did, called

CREATE = 0o1000 | 0o600
key = TARGETS["key"]
called("shared memory", libc.shmget(key, ctypes.c_size_t(1 << 20), CREATE), did)
called("a message queue", libc.msgget(key, CREATE), did)
called("semaphores", libc.semget(key, 1, CREATE), did)
name = f"/hostile-{MARK}".encode()
libmq = ctypes.CDLL("librt.so.1", use_errno=True) if not hasattr(libc, "mq_open") else libc
called("a POSIX queue", libmq.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None), did)
quietly(lambda: open(f"/dev/shm/hostile-{MARK}", "w").write("x"))
say("done")
