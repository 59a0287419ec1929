# Ceph's tool for key-value stores: every command that it has for LevelDB but
# get-size, which adds up files by LevelDB's names for them.
packages=ceph-base
program=usr/bin/ceph-kvstore-tool
sign='(prefix2, key2)'
cannot_run() { false; }

# Without the lines that LevelDB writes to its log.
tool() { run "$root/$program" leveldb "$data/store" "$@" 2>&1 | sed '/ leveldb: /d; /^$/d'; }

make() {
    mkdir "$data/store"
    tool list
    tool destructive-repair
    local i
    for i in 1 2 3 4 5 6 7 8; do
        head -c "$((i * 3000))" /dev/zero | tr '\0' "$i" >value
        tool set "prefix$((i % 3))" "key$i" in "$PWD/value"
    done
    tool set prefix0 version ver 77
    tool rm prefix1 key4
    tool rm prefix1 key4
    tool get prefix2 key5
}

use() {
    tool list
    tool list-crc prefix1
    tool dump prefix0
    tool exists prefix1
    tool exists prefix1 key4
    tool get prefix2 key4
    tool get prefix2 key2 out "$PWD/got"
    cksum <got
    tool crc prefix2 key2
    tool get-size prefix2 key2 | grep -v '^[a-z0-9]*\( - \|: \|$\)\|^estimated'
    tool store-crc "$PWD/sums"
    cat sums
    tool set later key in "$PWD/sums"
    tool rm-prefix later
    tool list later
    tool stats
    tool compact
    tool compact-prefix prefix0
    tool compact-range prefix1 a z
    tool store-copy "$PWD/copy" 3 leveldb | grep copied | sed 's/ts = .*, //'
    tool destructive-repair
    tool list-crc
}
