// Makes small databases with LevelDB itself, for tests to move into.
//
//     c++ -O1 make.cc -lleveldb -o make && ./make DIRECTORY
//
// Beside each database NAME it writes NAME.expected: the number of its entries,
// and a checksum over all of them, as LevelDB's own iterator gives them: CRC-32C
// of each key's length, the key, the value's length and the value, lengths as
// four bytes, low byte first.

#include <leveldb/cache.h>
#include <leveldb/comparator.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

namespace {

void Check(const leveldb::Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::exit(1);
  }
}

uint32_t Crc32c(uint32_t crc, const char* bytes, size_t length) {
  crc = ~crc;
  for (size_t i = 0; i < length; i++) {
    crc ^= static_cast<unsigned char>(bytes[i]);
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

uint32_t Add(uint32_t crc, const leveldb::Slice& slice) {
  const uint32_t n = static_cast<uint32_t>(slice.size());
  const char length[4] = {static_cast<char>(n), static_cast<char>(n >> 8),
                          static_cast<char>(n >> 16), static_cast<char>(n >> 24)};
  return Crc32c(Crc32c(crc, length, 4), slice.data(), n);
}

// The bytes of a key backwards.
class Backwards : public leveldb::Comparator {
 public:
  int Compare(const leveldb::Slice& a, const leveldb::Slice& b) const override {
    return -a.compare(b);
  }
  const char* Name() const override { return "test.Backwards"; }
  void FindShortestSeparator(std::string*, const leveldb::Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

std::string Key(int i) {
  char key[32];
  std::snprintf(key, sizeof key, "account/%06d", i);
  return key;
}

std::string Value(int i, int round) {
  // Shrinks well, so that the files stay small.
  const std::string part = "value " + std::to_string(i * 7 + round) + ";";
  std::string value;
  while (value.size() < static_cast<size_t>(60 + i % 90)) value += part;
  return value;
}

void Fill(leveldb::DB* db, int from, int to, int round) {
  for (int i = from; i < to; i++) Check(db->Put({}, Key(i), Value(i, round)));
}

void Delete(leveldb::DB* db, int from, int to, int step) {
  for (int i = from; i < to; i += step) Check(db->Delete({}, Key(i)));
}


void Make(const std::string& root, const std::string& name, leveldb::Options options,
          const std::function<void(leveldb::DB*)>& work) {
  const std::string path = root + "/" + name;
  leveldb::DestroyDB(path, options);
  options.create_if_missing = true;
  options.write_buffer_size = 64 << 10;
  leveldb::DB* db = nullptr;
  Check(leveldb::DB::Open(options, path, &db));
  work(db);
  uint32_t crc = 0;
  uint64_t entries = 0;
  std::unique_ptr<leveldb::Iterator> it(db->NewIterator({}));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    crc = Add(Add(crc, it->key()), it->value());
    entries++;
  }
  Check(it->status());
  it.reset();
  delete db;
  std::ofstream(path + ".expected") << entries << " " << crc << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  const std::string root = argv[1];
  leveldb::Options plain;
  plain.compression = leveldb::kSnappyCompression;

  // Two levels, level 0, and a log that is in no table.
  leveldb::Options filters = plain;
  std::unique_ptr<const leveldb::FilterPolicy> bloom(leveldb::NewBloomFilterPolicy(10));
  filters.filter_policy = bloom.get();
  Make(root, "filters", filters, [](leveldb::DB* db) {
    Fill(db, 0, 3000, 0);
    db->CompactRange(nullptr, nullptr);
    Fill(db, 500, 1500, 1);
    Delete(db, 100, 2900, 9);
    Fill(db, 3000, 3100, 2);
  });

  // Nothing compressed, no filters, large values.
  leveldb::Options raw = plain;
  raw.compression = leveldb::kNoCompression;
  Make(root, "raw", raw, [](leveldb::DB* db) {
    Fill(db, 0, 200, 0);
    Check(db->Put({}, "large", std::string(9000, 'x')));
    Check(db->Put({}, "", "the empty key"));
    Check(db->Put({}, "empty", ""));
    db->CompactRange(nullptr, nullptr);
    Delete(db, 0, 200, 2);
  });

  // Everything in the log, in batches, some longer than its blocks.
  Make(root, "log", plain, [](leveldb::DB* db) {
    leveldb::WriteBatch batch;
    for (int i = 0; i < 300; i++) batch.Put(Key(i), Value(i, 3));
    batch.Delete(Key(7));
    Check(db->Write({}, &batch));
    Check(db->Put({}, "after", "the batch"));
  });

  // Versions that a snapshot kept, in several tables.
  Make(root, "versions", plain, [](leveldb::DB* db) {
    const leveldb::Snapshot* kept[4];
    for (int round = 0; round < 4; round++) {
      Fill(db, 0, 400, round);
      kept[round] = db->GetSnapshot();
    }
    db->CompactRange(nullptr, nullptr);
    Delete(db, 0, 400, 3);
    db->CompactRange(nullptr, nullptr);
    for (const leveldb::Snapshot* snapshot : kept) db->ReleaseSnapshot(snapshot);
  });

  // Another order of keys.
  Backwards backwards;
  leveldb::Options ordered = plain;
  ordered.comparator = &backwards;
  Make(root, "backwards", ordered, [](leveldb::DB* db) {
    Fill(db, 0, 500, 0);
    db->CompactRange(nullptr, nullptr);
    Fill(db, 200, 600, 1);
  });

  // Small enough to begin fuzzing with; plain and compressed.
  for (const bool is_plain : {true, false}) {
    leveldb::Options small = filters;
    if (is_plain) small.compression = leveldb::kNoCompression;
    small.block_size = 256;
    Make(root, is_plain ? "small" : "small-snappy", small, [](leveldb::DB* db) {
      Fill(db, 0, 20, 0);
      db->CompactRange(nullptr, nullptr);
      Fill(db, 10, 15, 1);
      Delete(db, 0, 20, 7);
      Fill(db, 20, 22, 0);
    });
  }

  Make(root, "empty", plain, [](leveldb::DB*) {});
  return 0;
}
