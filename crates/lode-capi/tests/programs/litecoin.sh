# Litecoin's node on a chain of its own, without a network: blocks are made, indexed,
# undone and taken again, and the chain is verified from what is stored.
packages=litecoind
program=usr/lib/litecoin/litecoind
sign='"height": 150'
cannot_run() { false; }

# What a node that listens to nobody needs; the client comes with litecoind.
options=(-regtest "-datadir=$data" -rpcport=40555 -rpcuser=user -rpcpassword=password)

start() {
    run "$root/$program" "${options[@]}" -server -listen=0 -dnsseed=0 -connect=0 -disablewallet \
        -rpcbind=127.0.0.1 -rpcallowip=127.0.0.1 -txindex=1 -blockfilterindex=1 \
        -mocktime=1700000000 >node.txt 2>&1 &
    node=$!
    ask getblockcount >/dev/null
    await indexed
}

indexed() { [[ $(ask getindexinfo | grep -c '"synced": true') == 2 ]]; }

stop() {
    ask stop >/dev/null
    wait "$node" || tail -3 node.txt
}

ask() { run "$root/usr/bin/litecoin-cli" -rpcwait "${options[@]}" "$@" 2>&1; }

make() {
    start
    local address block
    # Pays to a key that everybody knows.
    address=$(ask createmultisig 1 \
        '["0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"]' |
        sed -n 's/.*"address": "\(.*\)".*/\1/p')
    ask generatetoaddress 150 "$address"
    block=$(ask getblockhash 101)
    ask invalidateblock "$block"
    ask getblockcount
    ask reconsiderblock "$block"
    ask getblockcount
    stop
}

use() {
    start
    # Its size on disk is a guess of either library's.
    ask gettxoutsetinfo | grep -v disk_size
    ask verifychain 4 0
    local height block transaction
    for height in 1 50 150; do
        block=$(ask getblockhash "$height")
        ask getblock "$block" 2
        ask getblockfilter "$block"
        transaction=$(ask getblock "$block" | sed -n '/"tx"/{n;s/[ ",]//g;p}')
        ask getrawtransaction "$transaction" true
        ask gettxout "$transaction" 0
    done
    ask getindexinfo
    stop
}
