"""LevelDB's own db_bench, compiled against LevelDB and against our libleveldb.so.1d."""

import os
import re
import subprocess
import sys

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What of LevelDB's source belongs to the program, not to the library.
OWN_SOURCES = ["benchmarks/db_bench.cc"] + [
    f"util/{name}.cc" for name in ("coding", "crc32c", "histogram", "testutil")
]
LINE = re.compile(r"(?:^|\s)(\w+)\s+:\s+([\d.]+) micros/op;")


def install_what_is_missing():
    """db_bench's helpers include gmock, though it uses nothing of it."""
    wanted = {"leveldb/db.h": "libleveldb-dev", "gmock/gmock.h": "libgmock-dev"}
    compiler = [os.environ.get("CXX", "c++"), "-E", "-x", "c++", "-"]
    missing = [
        package
        for header, package in wanted.items()
        if subprocess.run(compiler, input=f"#include <{header}>".encode(),
                          capture_output=True).returncode
    ]
    if not missing:
        return
    command = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    if os.getuid() != 0:
        command = ["sudo", "-n", *command]
    if subprocess.run(command, stdout=sys.stderr).returncode:
        sys.exit(f"install {' '.join(missing)} first")


def build(source, work):
    """The two programs, by the name of their library; both are put into `work`.

    `source` is a folder with LevelDB 1.23's source.
    """
    source = os.path.abspath(source)
    if not os.path.exists(os.path.join(source, OWN_SOURCES[0])):
        sys.exit(f"no source of LevelDB's in {source}")
    install_what_is_missing()
    ours = os.path.join(work, "ours")
    subprocess.run([f"{REPOSITORY}/scripts/leveldb-so", ours], check=True)
    headers = {"theirs": [], "ours": ["-I", f"{REPOSITORY}/crates/lode-capi/include"]}
    libraries = {"theirs": ["-lleveldb"],
                 "ours": [f"-L{ours}", "-l:libleveldb.so.1d", f"-Wl,-rpath,{ours}"]}
    programs = {}
    for name in ("theirs", "ours"):
        programs[name] = os.path.join(work, f"db_bench-{name}")
        subprocess.run(
            [os.environ.get("CXX", "c++"), "-std=c++17", "-O2", "-DNDEBUG",
             "-DLEVELDB_PLATFORM_POSIX=1", *headers[name], "-I", source,
             *(os.path.join(source, file) for file in OWN_SOURCES),
             "-o", programs[name], *libraries[name], "-lpthread"],
            check=True)
    return programs


def run(program, database, **options):
    """What db_bench prints; `options` are its own, without the dashes."""
    flags = [f"--{name}={value}" for name, value in options.items()]
    done = subprocess.run([program, f"--db={database}", *flags], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join([program, *flags])}: {done.stderr.strip()}")
    return done.stdout
