# The game itself, which is its own server when it is told to.
source "$programs/minetest-server.sh"
packages=minetest
program=usr/games/minetest
server=$program
server_option=--server
