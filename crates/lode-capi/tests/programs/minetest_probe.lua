-- Makes accounts and a piece of land, unless they are there, counts both, and stops.
local function show(what, counts)
	local lines = {}
	for name, count in pairs(counts) do table.insert(lines, name .. "=" .. count) end
	table.sort(lines)
	print("PROBE " .. what .. " " .. table.concat(lines, " "))
end

local function accounts()
	local auth = core.get_auth_handler()
	if not auth.get_auth("player1") then
		for i = 1, 200 do auth.create_auth("player" .. i, "password" .. i) end
		auth.delete_auth("player7")
		auth.set_password("player3", "other")
	end
	local found = {}
	for name in auth.iterate() do found[name] = auth.get_auth(name).password end
	show("accounts", found)
end

local low, high = {x = -32, y = -32, z = -32}, {x = 31, y = 31, z = 31}

local function land()
	for x = -30, 30 do core.set_node({x = x, y = 20, z = 0}, {name = "basenodes:stone"}) end
	local found = {}
	for x = low.x, high.x do for y = low.y, high.y do for z = low.z, high.z do
		local name = core.get_node({x = x, y = y, z = z}).name
		found[name] = (found[name] or 0) + 1
	end end end
	show("nodes", found)
end

core.after(0, function()
	accounts()
	core.emerge_area(low, high, function(_, _, left)
		if left > 0 then return end
		land()
		core.request_shutdown("", false, 0)
	end)
end)
