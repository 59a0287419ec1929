# Lomiri's service for thumbnails, with its three caches of pictures in LevelDB.
packages=lomiri-thumbnailer-service
program=usr/libexec/lomiri-thumbnailer/thumbnailer-service
sign='Hits:  *12'
cannot_run() {
    command -v dbus-run-session >/dev/null && command -v glib-compile-schemas >/dev/null &&
        return 1
    echo "it needs dbus-run-session and glib-compile-schemas (dbus, libglib2.0-bin)"
}

# The same files for every run: entries are kept by the times and numbers of theirs.
pictures=$work/pictures

draw() {
    [[ ! -e $pictures ]] || return
    mkdir "$pictures"
    python3 - "$pictures" <<'END'
import struct, sys, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for n in range(12):
    width, height = 200 + n, 150
    rows = b"".join(b"\0" + bytes((x * 3 + y * 5 + n * 17) % 256 for x in range(width * 3))
                    for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    with open(f"{sys.argv[1]}/picture{n}.png", "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) +
                   chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
with open(f"{sys.argv[1]}/picture12.png", "wb") as file:
    file.write(b"no picture")
END
}

# Runs the commands of $1 beside the service, on a bus of their own.
session() {
    mkdir -p schemas home thumbnails
    cp "$root"/usr/share/glib-2.0/schemas/*.xml schemas
    glib-compile-schemas schemas
    export HOME=$PWD/home XDG_CACHE_HOME=$data/cache XDG_RUNTIME_DIR=$PWD GSETTINGS_BACKEND=memory
    export GSETTINGS_SCHEMA_DIR=$PWD/schemas root work library data pictures
    export -f run admin await beside "$1"
    dbus-run-session -- bash -c "beside $1" 2>&1 | grep -v '^dbus-daemon'
}

beside() {
    : >service.txt
    run "$root/usr/libexec/lomiri-thumbnailer/thumbnailer-service" 2>service.txt &
    await grep -q 'failure cache' service.txt
    "$1"
    admin shutdown
    wait
}

# Without times.
admin() {
    run "$root/usr/bin/lomiri-thumbnailer-admin" "$@" 2>&1 | sed '/ time: /d'
}

ask_all() {
    local n
    for n in {0..12} 3 4; do admin get "$pictures/picture$n.png" thumbnails; done
    cat thumbnails/* | sha256sum
    admin stats
}

ask_again() {
    admin zero-stats
    local n
    for n in {0..12}; do admin get "$pictures/picture$n.png" thumbnails; done
    cat thumbnails/* | sha256sum
    admin stats
    admin compact
}

make() {
    draw
    session ask_all
}

use() { session ask_again; }
