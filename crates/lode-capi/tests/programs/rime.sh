# Rime's user dictionaries: words are imported, listed, exported and backed up.
packages=librime-bin
program=usr/lib/x86_64-linux-gnu/librime.so.1
sign='word1234'
cannot_run() { false; }

dictionary() { (cd "$data" && run "$root/usr/bin/rime_dict_manager" "$@" 2>&1 | grep -v '^[IWE][0-9]\|^Log'); }

make() {
    awk 'BEGIN { for (i = 0; i < 2000; i++)
        printf "word%d\tci%d shu%d\t%d\n", i, i % 37, i % 11, i % 9 + 1 }' >words.txt
    dictionary --import luna "$PWD/words.txt"
    head -50 words.txt | sed 's/^/more/' >more.txt
    dictionary --import other "$PWD/more.txt"
}

use() {
    dictionary --list | sort
    local name
    for name in luna other; do
        dictionary --export "$name" "$PWD/$name.txt"
        grep -v '^#' "$name.txt" | sort
        dictionary --backup "$name"
        grep -v '^#@/tick' "$data/sync/unknown/$name.userdb.txt"
    done
}
