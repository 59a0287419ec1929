# An object store of Ceph's, without a cluster: objects' keys and headers in LevelDB.
packages=ceph-osd
program=usr/bin/ceph-osd
sign='check succeeded'
cannot_run() { false; }

ceph_program() {
    printf '%s\n' '[global]' 'fsid = 5f4dcc3b-5aa7-65d6-1d83-27deb882cf99' \
        'mon host = [v2:127.0.0.1:40551,v1:127.0.0.1:40550]' 'auth client required = none' \
        'admin socket =' "run dir = $PWD" "log file = $PWD/log" 'osd objectstore = filestore' \
        'filestore omap backend = leveldb' 'osd journal size = 100' "osd data = $data/store" \
        "osd journal = $data/journal" "keyring = $PWD/keyring" 'osd max object name len = 256' \
        'osd max object namespace len = 64' \
        "plugin dir = $root/usr/lib/x86_64-linux-gnu/ceph" \
        "erasure code dir = $root/usr/lib/x86_64-linux-gnu/ceph/erasure-code" >ceph.conf
    local name=$1
    shift
    # Without times, and what its journal and LevelDB's log say.
    CEPH_CONF=ceph.conf CEPH_ARGS=--no-mon-config run "$root/usr/bin/$name" "$@" 2>&1 |
        sed '/ journal \| leveldb: /d; /^$/d; s/^20[0-9T:.+-]* [0-9a-f]* //'
}

tool() {
    ceph_program ceph-objectstore-tool --no-mon-config --data-path "$data/store" \
        --journal-path "$data/journal" --type filestore "$@"
}

make() {
    mkdir "$data/store"
    run "$root/usr/bin/monmaptool" --create --addv a '[v2:127.0.0.1:40551,v1:127.0.0.1:40550]' \
        --fsid 5f4dcc3b-5aa7-65d6-1d83-27deb882cf99 monmap >/dev/null
    ceph_program ceph-osd -i 0 --mkfs --monmap monmap \
        --osd-uuid 11111111-2222-3333-4444-555555555555
    local object
    object=$(tool --op meta-list | grep osd_superblock)
    for i in 1 2 3 4; do
        head -c "$((i * 5000))" /dev/zero | tr '\0' "$i" >value
        tool "$object" set-omap "key$i" value
    done
    tool "$object" set-omaphdr value
    tool "$object" rm-omap key2
}

use() {
    local object
    object=$(tool --op meta-list | grep osd_superblock)
    tool "$object" list-omap
    tool "$object" get-omap key3 | cksum
    tool "$object" get-omaphdr | cksum
    tool "$object" dump | grep -v time
    ceph_program ceph-osdomap-tool --no-mon-config --omap-path "$data/store/current/omap" \
        --backend leveldb --command dump-objects-with-keys
    ceph_program ceph-osdomap-tool --no-mon-config --omap-path "$data/store/current/omap" \
        --backend leveldb --command check
    ceph_program ceph-kvstore-tool leveldb "$data/store/current/omap" list-crc |
        grep -v 'osd_uuid\|^_SYS_'
}
