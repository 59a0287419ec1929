# A cluster of one Ceph monitor, which keeps all it knows in LevelDB.
packages=ceph-mon
program=usr/bin/ceph-mon
sign='value 3'
cannot_run() { false; }

ceph_program() {
    printf '%s\n' '[global]' 'fsid = 5f4dcc3b-5aa7-65d6-1d83-27deb882cf99' \
        'mon initial members = a' 'mon host = [v2:127.0.0.1:40551,v1:127.0.0.1:40550]' \
        'auth cluster required = none' 'auth service required = none' \
        'auth client required = none' 'mon keyvaluedb = leveldb' 'admin socket =' \
        "run dir = $PWD" "log file = $PWD/log" "mon cluster log file = $PWD/cluster-log" \
        "mon data = $data/mon" "keyring = $data/keyring" \
        "plugin dir = $root/usr/lib/x86_64-linux-gnu/ceph" \
        "erasure code dir = $root/usr/lib/x86_64-linux-gnu/ceph/erasure-code" >ceph.conf
    local name=$1
    shift
    CEPH_CONF=ceph.conf run "$root/usr/bin/$name" "$@" 2>&1
}

start() {
    ceph_program ceph-mon -i a -f >mon.txt &
    monitor=$!
    await in_quorum
}

in_quorum() { ask mon stat | grep -q quorum; }

stop() {
    pkill -TERM -P "$monitor" -f ceph-mon
    wait "$monitor"
}

# Without times and numbers that count them.
ask() {
    PYTHONPATH=$root/usr/lib/python3/dist-packages CEPH_CONF=ceph.conf \
        run /usr/bin/python3 "$root/usr/bin/ceph" "$@" 2>&1 |
        sed 's/20[0-9-]*T[0-9:.+]*/TIME/g; s/(age [^)]*)//'
}

make() {
    mkdir "$data/mon"
    ceph_program ceph-authtool --create-keyring "$data/keyring" --gen-key -n mon. \
        --cap mon 'allow *' | sed "s|$data||"
    ceph_program monmaptool --create --addv a '[v2:127.0.0.1:40551,v1:127.0.0.1:40550]' \
        --fsid 5f4dcc3b-5aa7-65d6-1d83-27deb882cf99 monmap >/dev/null
    ceph_program ceph-mon --mkfs -i a --monmap monmap --keyring "$data/keyring"
    cat "$data/mon/kv_backend"
    start
    local i
    for i in 1 2 3 4 5; do ask config-key set "name$i" "value $i"; done
    ask config-key rm name4
    ask osd create 11111111-2222-3333-4444-555555555555
    ask osd pool create pool 8
    ask osd pool application enable pool test
    ask config set osd osd_max_backfills 3
    stop
}

use() {
    start
    ask config-key ls
    ask config-key get name3
    ask config dump
    ask osd tree
    ask osd pool ls detail | sed 's/last_change [0-9]*//'
    ask mon dump
    ask status | sed -n '/id:/p; /mon:/p; /pools:/p'
    stop
    # The keys of what does not go on by itself.
    ceph_program ceph-monstore-tool "$data/mon" dump-keys | sed 's/ leveldb: .*//' |
        grep '^\(config\|kv\|mon_config_key\|monitor_store\|mdsmap\) *[^ ]*' | sort
}
