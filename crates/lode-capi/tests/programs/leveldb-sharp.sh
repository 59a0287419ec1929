# leveldb-sharp, the C# binding, under Mono: leveldb_sharp.cs.
packages='libleveldb1.2-cil mono-mcs'
program=usr/bin/mono-sgen
sign='\[key4999, value 19999\]'
cannot_run() { false; }

mono() {
    MONO_CFG_DIR=$root/etc MONO_GAC_PREFIX=$root/usr \
        MONO_PATH=$root/usr/lib/mono/4.5:$root/usr/lib/cli/leveldb-sharp-1.2 \
        run "$root/usr/bin/mono-sgen" "$@"
}

compiled() {
    mono "$root/usr/lib/mono/4.5/mcs.exe" -out:program.exe \
        -r:"$root/usr/lib/cli/leveldb-sharp-1.2/leveldb-sharp.dll" "$programs/leveldb_sharp.cs"
}

make() { compiled && mono program.exe make "$data/words"; }
use() { compiled && mono program.exe use "$data/words"; }
