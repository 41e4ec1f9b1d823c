"""Becomes the daemon as a person's shell would start it: with a terminal, and with descriptors that
somebody forgot to close: 8 is a file outside, 9 a folder, one more the terminal's other side."""

import fcntl
import os
import pty
import sys
import termios

outside, words = sys.argv[1], sys.argv[2:]
other, terminal = pty.openpty()
os.setsid()
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
os.dup2(terminal, 0)
os.dup2(os.open(outside + "/canary.txt", os.O_RDWR), 8)
os.dup2(os.open(outside, os.O_RDONLY | os.O_DIRECTORY), 9)
os.set_inheritable(other, True)
os.execv(words[0], words)
