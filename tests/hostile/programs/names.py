"""Files whose names are options, lines, or no text at all, and a folder as deep as it goes."""

import os

from common import quietly, say

for name in [b"--exec=touch evil", b"-c", b"--git-dir=evil", b"a\nb", b"\xff\xfe", b"a\tb", b"\x1b[2J", b":(top)x", b"HEAD", b"--",
             "\N{RIGHT-TO-LEFT OVERRIDE}txt.exe".encode(), b"x" * 255]:
    with open(name, "wb") as file:
        file.write(b"hostile\n")
DEPTH = 600
here = os.open(".", os.O_RDONLY)
for _ in range(DEPTH):
    os.mkdir("d")
    os.chdir("d")
with open("bottom", "w") as file:
    file.write("hostile\n")
os.fchdir(here)
say("done")
