# A Minetest world: map, players and accounts in LevelDB. A mod of the world makes
# land and accounts and counts them; the map is then moved to another backend and back.
packages=minetest-server
program=usr/lib/minetest/minetestserver
server=$program
sign='PROBE nodes .*='
cannot_run() { false; }

world() {
    # Where a server that is not installed looks for its files.
    mkdir -p "$root/usr/lib/share"
    ln -sfn "$root/usr/share/games/minetest" "$root/usr/lib/share/minetest"
    ln -sfn "$root/usr/share/games/minetest" "$root/usr/share/minetest"
    printf '%s\n' 'bind_address = 127.0.0.1' 'mg_name = v7' 'fixed_map_seed = 42' \
        'server_announce = false' 'movement_speed_walk = 4' >settings
    HOME=$PWD run "$root/$server" ${server_option-} --config settings --world "$data/world" \
        --port 30123 --logfile '' --color never "$@" 2>&1
}

# What the mod says, without what the server says at the same time.
said() { grep -o 'PROBE .*' | sort; }

make() {
    mkdir -p "$data/world/worldmods/probe"
    printf '%s\n' 'gameid = devtest' 'backend = leveldb' 'player_backend = leveldb' \
        'auth_backend = leveldb' 'mod_storage_backend = sqlite3' >"$data/world/world.mt"
    echo 'name = probe' >"$data/world/worldmods/probe/mod.conf"
    cp "$programs/minetest_probe.lua" "$data/world/worldmods/probe/init.lua"
    world | said
}

# Every block of the map, and every account.
moved() {
    cp "$data/world/world.mt" kept.mt
    world --migrate sqlite3 | sed -n 's/.*\(Successfully migrated.*\)/\1/p'
    world --migrate-auth sqlite3 | sed -n 's/.*\(Successfully migrated.*\)/\1/p'
    python3 - "$data/world" <<'END'
import hashlib, sqlite3, sys
for file, query in (("map.sqlite", "select pos, data from blocks order by pos"),
                    ("auth.sqlite", "select name, password from auth order by name")):
    rows = sqlite3.connect(f"{sys.argv[1]}/{file}").execute(query).fetchall()
    print(file, len(rows), hashlib.sha256(repr(rows).encode()).hexdigest())
END
    cp kept.mt "$data/world/world.mt"
    rm -f "$data"/world/{map,auth}.sqlite
}

use() {
    moved >moved.txt
    # The hash of the map holds times.
    sed 's/^map.sqlite \([0-9]*\).*/map.sqlite \1/' moved.txt
    world | said
}
