// LevelDB itself, for scripts/adopt-test.
//
//     real fill DIRECTORY SEED   writes at random until it is killed
//     real dump DIRECTORY SEED   prints all entries, as `lode db scan --hex` does
//
// The seed also chooses the options.

#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>

namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u | 1) {}
  uint64_t Next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1du >> 11;
  }
  uint64_t Below(uint64_t bound) { return Next() % bound; }

 private:
  uint64_t state_;
};

void Check(const leveldb::Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::exit(1);
  }
}

leveldb::Options OptionsFor(uint64_t seed) {
  Random random(seed + 1000);
  leveldb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 64 << 10 << random.Below(4);
  options.max_file_size = 1 << 20;
  options.block_size = 1 << 10 << random.Below(4);
  options.block_restart_interval = 1 + static_cast<int>(random.Below(20));
  options.compression = random.Below(3) == 0 ? leveldb::kNoCompression : leveldb::kSnappyCompression;
  options.filter_policy = random.Below(2) == 0 ? leveldb::NewBloomFilterPolicy(10) : nullptr;
  options.reuse_logs = random.Below(2) == 0;
  return options;
}

std::string Key(Random& random, uint64_t seed) {
  char key[64];
  const uint64_t number = random.Below(20000);
  switch (seed % 3) {
    case 0:
      std::snprintf(key, sizeof key, "%016llu", static_cast<unsigned long long>(number));
      return key;
    case 1:
      return std::string(1 + number % 40, static_cast<char>(number % 256)) + std::to_string(number);
    default:
      std::snprintf(key, sizeof key, "user/%llu/name", static_cast<unsigned long long>(number));
      return key;
  }
}

void Fill(leveldb::DB* db, uint64_t seed) {
  Random random(seed);
  std::deque<const leveldb::Snapshot*> kept;
  for (;;) {
    leveldb::WriteBatch batch;
    const uint64_t changes = random.Below(50) == 0 ? random.Below(2000) : 1 + random.Below(3);
    for (uint64_t i = 0; i < changes; i++) {
      const std::string key = Key(random, seed);
      if (random.Below(5) == 0) {
        batch.Delete(key);
      } else {
        const uint64_t length = random.Below(1000) == 0 ? random.Below(200000) : random.Below(300);
        batch.Put(key, std::string(length, static_cast<char>('a' + random.Below(26))));
      }
    }
    leveldb::WriteOptions options;
    options.sync = random.Below(100) == 0;
    Check(db->Write(options, &batch));
    if (random.Below(200) == 0) kept.push_back(db->GetSnapshot());
    if (kept.size() > 5) {
      db->ReleaseSnapshot(kept.front());
      kept.pop_front();
    }
    if (random.Below(5000) == 0) db->CompactRange(nullptr, nullptr);
  }
}

void Print(const leveldb::Slice& slice) {
  for (size_t i = 0; i < slice.size(); i++) {
    std::printf("%02x", static_cast<unsigned char>(slice[i]));
  }
}

void Dump(leveldb::DB* db) {
  std::unique_ptr<leveldb::Iterator> it(db->NewIterator({}));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    Print(it->key());
    std::printf("\t");
    Print(it->value());
    std::printf("\n");
  }
  Check(it->status());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s fill|dump DIRECTORY SEED\n", argv[0]);
    return 2;
  }
  const uint64_t seed = std::strtoull(argv[3], nullptr, 10);
  leveldb::DB* db = nullptr;
  Check(leveldb::DB::Open(OptionsFor(seed), argv[2], &db));
  if (std::strcmp(argv[1], "fill") == 0) {
    Fill(db, seed);
  } else {
    Dump(db);
  }
  delete db;
  return 0;
}
