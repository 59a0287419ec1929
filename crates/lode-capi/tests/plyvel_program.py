"""Prints what plyvel gets from the LevelDB that it finds: scripts/dropin-test compares.

Usage: plyvel_program.py DIRECTORY (one that is there, and empty)
"""

import sys

import plyvel

name = sys.argv[1] + "/db"
db = plyvel.DB(name, create_if_missing=True, bloom_filter_bits=10, lru_cache_size=1 << 20,
               write_buffer_size=1 << 20)
for i in range(20000):
    db.put(b"key%06d" % (i * 7919 % 20000), b"v" * (i % 200))
with db.write_batch(transaction=True, sync=True) as batch:
    batch.put(b"a", b"1")
    batch.delete(b"key000007")
print(db.get(b"a"), db.get(b"key000007"), db.get(b"nope", b"default"))
snapshot = db.snapshot()
db.delete(b"a")
print(snapshot.get(b"a"), db.get(b"a"))
print(sum(len(value) for _, value in db), len(list(db.iterator(prefix=b"key0001"))))
print(list(db.iterator(start=b"key000100", stop=b"key000105", reverse=True, include_value=False)))
walk = db.raw_iterator()
walk.seek(b"key015000")
print(walk.key(), walk.valid())
walk.prev()
print(walk.key())
walk.seek_to_last()
print(walk.key())
part = db.prefixed_db(b"p/")
part.put(b"x", b"y")
print(list(part), db.get(b"p/x"))
print(db.get_property(b"leveldb.stats") is not None, db.get_property(b"bogus"))
db.compact_range()
print(db.approximate_size(b"key", b"kez") > 0)
snapshot.close()
db.close()
print(db.closed)
for wrong in ({"error_if_exists": True},
              {"comparator": lambda a, b: (a > b) - (a < b), "comparator_name": b"other"}):
    try:
        plyvel.DB(name, **wrong)
    except plyvel.Error as error:
        print(type(error).__name__)
db = plyvel.DB(name)
print(len(list(db)))
db.close()
plyvel.repair_db(name)
db = plyvel.DB(name)
print(len(list(db)))
db.close()
plyvel.destroy_db(name)
db = plyvel.DB(name + "-backwards", create_if_missing=True,
               comparator=lambda a, b: (b > a) - (b < a), comparator_name=b"backwards")
for key in (b"1", b"2", b"3"):
    db.put(key, key)
print(list(db))
db.close()
