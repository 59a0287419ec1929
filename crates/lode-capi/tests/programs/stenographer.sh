# Stenographer's recorder of network traffic: its indexes are tables of LevelDB's.
# It records a network of its own in which nothing but the test's packets goes about;
# Debian's LevelDB reads the indexes.
packages=stenographer
program=usr/sbin/stenotype
sign='^01'
cannot_run() {
    if ! unshare -n ip link set lo up 2>/dev/null; then
        echo "it needs root, and a network of its own"
    elif ! echo '#include <leveldb/table.h>' | "${CXX:-c++}" -E -x c++ - >/dev/null 2>&1; then
        echo "it needs LevelDB's headers (libleveldb-dev, g++)"
    else
        return 1
    fi
}

recorded() {
    ip link set lo up
    run "$root/$program" --iface=lo --dir="$data" --threads=1 --aiops=8 --blocks=16 \
        --filesize_mb=16 --blockage_sec=1 --fileage_sec=30 --seccomp=none --uid="$(id -un)" \
        --gid="$(id -gn)" --no_watchdogs -v >recorder.txt 2>&1 &
    await grep -q 'starting to process' recorder.txt
    python3 - <<'END'
import socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.bind(("", 8999))
for i in range(400):
    sender.sendto(b"packet %d" % i, ("127.0.0.%d" % (i % 50 + 1), 9000 + i % 70))
END
    sleep 2.5
    local recorder
    recorder=$(pgrep -f "^$root/$program")
    kill -INT "$recorder"
    await grep -q 'Wrote all index files' recorder.txt
    # Without packets it waits for one forever.
    kill -KILL "$recorder"
    wait
}

make() {
    mkdir -p "$data/PKT0" "$data/IDX0"
    export root work library data program
    export -f run await recorded
    unshare -n bash -c recorded 2>/dev/null
}

use() {
    "${CXX:-c++}" -std=c++17 -O1 "$programs/stenographer_index.cc" -o index -lleveldb
    ./index "$data"/IDX0/*
}
