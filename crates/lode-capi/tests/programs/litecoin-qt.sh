# The same node inside Litecoin's wallet program, with its windows drawn nowhere.
source "$programs/litecoin.sh"
packages='litecoin-qt litecoind'
program=usr/lib/litecoin/litecoin-qt
export QT_QPA_PLATFORM=offscreen QT_QPA_PLATFORM_PLUGIN_PATH=$root/usr/lib/x86_64-linux-gnu/qt5/plugins/platforms
