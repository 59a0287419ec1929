// Tables through LevelDB's C++ interface: prints what it gets, and scripts/dropin-test
// compares that with what LevelDB itself gives.
// usage: tables make NEW-DIRECTORY        writes tables
//        tables run NEW-DIRECTORY MADE... reads those, and writes some of its own

#include "tables.h"

#include <leveldb/cache.h>
#include <leveldb/filter_policy.h>
#include <leveldb/helpers/memenv.h>

#include <cstring>
#include <memory>

namespace {

// A few bytes of it, and how long it is.
std::string Brief(const Slice& bytes) {
  return std::string(bytes.data(), std::min<size_t>(bytes.size(), 12)) + "/" +
         std::to_string(bytes.size());
}

// ---- Orders and filters of the program's own

// Backwards, with separators that are shorter than keys.
class Backwards : public leveldb::Comparator {
 public:
  int Compare(const Slice& a, const Slice& b) const override { return b.compare(a); }
  const char* Name() const override { return "test.Backwards"; }
  void FindShortestSeparator(std::string* start, const Slice& limit) const override {
    // The beginning of `start` that is above the limit, if it has no more than that.
    for (size_t n = 1; n < start->size(); n++) {
      const Slice shorter(start->data(), n);
      if (shorter.compare(limit) > 0 && !limit.starts_with(shorter)) {
        start->resize(n);
        return;
      }
    }
  }
  void FindShortSuccessor(std::string* key) const override { key->clear(); }
};

// The first bytes of all keys.
class FirstBytes : public leveldb::FilterPolicy {
 public:
  const char* Name() const override { return "test.FirstBytes"; }
  void CreateFilter(const Slice* keys, int n, std::string* dst) const override {
    for (int i = 0; i < n; i++) dst->push_back(keys[i].empty() ? '-' : keys[i][0]);
    calls++;
    keys_seen += n;
  }
  bool KeyMayMatch(const Slice& key, const Slice& filter) const override {
    return key.empty() || std::memchr(filter.data(), key[0], filter.size()) != nullptr;
  }
  mutable int calls = 0;
  mutable int keys_seen = 0;
};

// ---- What a table says

void Walk(const std::string& what, const Table* table, const ReadOptions& options) {
  const std::unique_ptr<Iterator> iterator(table->NewIterator(options));
  if (iterator->Valid()) Say(what, "valid before it was placed");
  uint64_t digest = 0;
  int count = 0;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), count++) {
    digest = Digest(iterator->key().ToString() + "=" + iterator->value().ToString(), digest);
  }
  Say(what + " forwards", std::to_string(count) + " entries, " + std::to_string(digest));
  for (iterator->SeekToLast(), digest = 0; iterator->Valid(); iterator->Prev(), count--) {
    digest = Digest(iterator->key().ToString() + "=" + iterator->value().ToString(), digest);
  }
  Say(what + " backwards", std::to_string(count) + " left, " + std::to_string(digest));
  Say(what + " status", Kind(iterator->status()));
}

void SeekAround(const std::string& what, const Table* table, const Entries& entries,
                const ReadOptions& options) {
  const std::unique_ptr<Iterator> iterator(table->NewIterator(options));
  std::string found;
  for (size_t i = 0; i < entries.size(); i += 1 + entries.size() / 40) {
    for (const std::string& target : {entries[i].first, entries[i].first + "!",
                                      entries[i].first.substr(0, 4)}) {
      iterator->Seek(target);
      found += iterator->Valid() ? Brief(iterator->key()) + Brief(iterator->value()) : "none";
      if (!iterator->Valid()) continue;
      iterator->Prev();
      found += iterator->Valid() ? "<" + Brief(iterator->key()) : "<none";
      if (!iterator->Valid()) continue;
      iterator->Next();
      iterator->Next();
      found += iterator->Valid() ? ">" + Brief(iterator->key()) : ">none";
    }
  }
  iterator->Seek("zzz");
  found += iterator->Valid() ? Brief(iterator->key()) : "none";
  Say(what + " sought", std::to_string(Digest(found)) + " " + Kind(iterator->status()));
}

void Read(const std::string& what, const Options& options, const std::string& bytes,
          const Entries& entries, bool with_offsets) {
  Source source(bytes);
  Table* opened = nullptr;
  const Status status = Table::Open(options, &source, source.size(), &opened);
  const std::unique_ptr<Table> table(opened);
  Say(what, Kind(status));
  if (table == nullptr) return;
  ReadOptions reading;
  Walk(what, table.get(), reading);
  reading.verify_checksums = true;
  reading.fill_cache = false;
  SeekAround(what, table.get(), entries, reading);
  std::string offsets;
  for (size_t i = 0; i < entries.size(); i += 1 + entries.size() / 20) {
    offsets += " " + std::to_string(table->ApproximateOffsetOf(entries[i].first));
  }
  offsets += " end " + std::to_string(table->ApproximateOffsetOf("zzzz"));
  if (with_offsets) Say(what + " offsets", offsets);
}

// ---- Tables byte for byte

struct Shape {
  const char* name;
  size_t block_bytes;
  int restart_interval;
  int count;
  size_t value_bytes;
};

const Shape kShapes[] = {
    {"plain", 4096, 16, 1000, 100},   {"small blocks", 256, 4, 300, 50},
    {"whole keys", 1024, 1, 300, 10}, {"long values", 4096, 16, 60, 20000},
    {"one block", 1 << 20, 16, 200, 30}, {"nothing", 4096, 16, -1, 0},
    {"a block each", 0, 1, 50, 40},
};

void Bytes() {
  const Backwards backwards;
  const FirstBytes first_bytes;
  const std::unique_ptr<const leveldb::FilterPolicy> bloom(leveldb::NewBloomFilterPolicy(10));
  const std::unique_ptr<const leveldb::FilterPolicy> weak(leveldb::NewBloomFilterPolicy(3));
  const leveldb::FilterPolicy* policies[] = {nullptr, bloom.get(), weak.get(), &first_bytes};
  for (const Shape& shape : kShapes) {
    for (const leveldb::FilterPolicy* policy : policies) {
      for (const bool is_backwards : {false, true}) {
        Options options;
        options.compression = leveldb::kNoCompression;
        options.block_size = shape.block_bytes;
        options.block_restart_interval = shape.restart_interval;
        options.filter_policy = policy;
        if (is_backwards) options.comparator = &backwards;
        const Entries entries = shape.count < 0
                                    ? Entries()
                                    : Some(shape.count, shape.value_bytes, options.comparator);
        const std::string bytes = Built(options, entries);
        const std::string name = std::string(shape.name) + (is_backwards ? " backwards" : "") +
                                 (policy == nullptr ? "" : std::string(" ") + policy->Name());
        Say(name, std::to_string(bytes.size()) + " bytes, " + std::to_string(Digest(bytes)));
        if (policy == nullptr || policy == &first_bytes) Read(name, options, bytes, entries, true);
      }
    }
  }
  Say("filters made", first_bytes.calls);
  Say("keys filtered", first_bytes.keys_seen);
}

// Blocks that end just before, at and behind the end of a filter's stretch of the file.
void Stretches() {
  const std::unique_ptr<const leveldb::FilterPolicy> bloom(leveldb::NewBloomFilterPolicy(10));
  Options options;
  options.compression = leveldb::kNoCompression;
  options.block_size = 1;
  options.filter_policy = bloom.get();
  uint64_t digest = 0;
  for (const size_t stretch : {2048, 4096}) {
    for (size_t bytes = stretch - 60; bytes < stretch + 60; bytes++) {
      const Entries entries = {{"a", std::string(bytes, 'v')}, {"b", "1"}, {"c", "2"}};
      digest = Digest(Built(options, entries), digest);
    }
  }
  Say("stretches", digest);
}

void Steps() {
  Options options;
  options.compression = leveldb::kNoCompression;
  const Backwards backwards;
  const Entries entries = Some(600, 200, options.comparator);
  Sink sink;
  TableBuilder builder(options, &sink);
  Say("before", builder.NumEntries() + builder.FileSize());
  builder.Flush();
  for (size_t i = 0; i < entries.size(); i++) {
    builder.Add(entries[i].first, entries[i].second);
    if (i % 50 == 0) {
      Say("entries", builder.NumEntries());
      Say("bytes", builder.FileSize());
      Say("flushes", sink.flushes);
    }
    if (i == 100) builder.Flush();
    if (i == 101) builder.Flush();
    // LevelDB aborts if the interval shrinks within a block.
    if (i == 205) builder.Flush();
    if (i == 205 || i == 333) {
      options.block_size = i == 205 ? 300 : 8000;
      options.block_restart_interval = i == 205 ? 3 : 40;
      Say("changed", builder.ChangeOptions(options).ToString());
    }
    if (i == 400) {
      Options other = options;
      other.comparator = &backwards;
      other.block_size = 10;
      Say("another order", builder.ChangeOptions(other).ToString());
    }
  }
  Say("status", builder.status().ToString());
  Say("finished", builder.Finish().ToString());
  Say("entries", builder.NumEntries());
  Say("bytes", builder.FileSize() == sink.bytes.size() ? builder.FileSize() : 0);
  Say("flushes", sink.flushes);
  Say("table", Digest(sink.bytes));
}

void Failures() {
  const Entries entries = Some(500, 100, leveldb::BytewiseComparator());
  Options options;
  options.compression = leveldb::kNoCompression;
  for (const uint64_t room : {0, 5000, 20000}) {
    Sink sink(room);
    TableBuilder builder(options, &sink);
    for (const auto& entry : entries) builder.Add(entry.first, entry.second);
    Say("full", builder.status().ToString());
    Say("finished", builder.Finish().ToString());
  }
  {
    Sink sink;
    TableBuilder builder(options, &sink);
    builder.Add("a", "b");
    builder.Abandon();
    Say("abandoned", builder.NumEntries() * 1000 + builder.FileSize() + sink.bytes.size());
  }
  const std::string sound = Built(options, entries);
  const auto open = [&](const std::string& what, const std::string& bytes) {
    Source source(bytes);
    Table* table = nullptr;
    const Status status = Table::Open(options, &source, source.size(), &table);
    Say(what, Kind(status) + (table == nullptr ? " null" : " opened"));
    delete table;
  };
  open("sound", sound);
  open("nothing", "");
  open("too short", sound.substr(sound.size() - 47));
  open("cut off", sound.substr(0, sound.size() - 1));
  std::string magic = sound;
  magic[magic.size() - 1] ^= 1;
  open("another magic number", magic);
  {
    Source source(sound);
    Table* table = nullptr;
    Say("claimed too long",
        Kind(Table::Open(options, &source, source.size() + 1000, &table)));
  }
  // A changed value is noticed by whoever compares checksums; the rest can be read.
  std::string changed = sound;
  const size_t at = changed.find(entries[200].second);
  changed[at + 1] ^= 0x20;
  for (const bool verify : {false, true}) {
    Source source(changed);
    Table* opened = nullptr;
    options.paranoid_checks = verify;
    Say("changed", Kind(Table::Open(options, &source, source.size(), &opened)));
    const std::unique_ptr<Table> table(opened);
    ReadOptions reading;
    reading.verify_checksums = verify;
    Walk(verify ? "verified" : "not verified", table.get(), reading);
    const std::unique_ptr<Iterator> iterator(table->NewIterator(reading));
    for (const size_t i : {10, 200, 400}) {
      iterator->Seek(entries[i].first);
      Say("there", iterator->Valid() && iterator->key() == entries[i].first ? "yes" : "no");
      Say("status", Kind(iterator->status()));
    }
  }
}

void Caches() {
  const Entries entries = Some(2000, 100, leveldb::BytewiseComparator());
  const std::unique_ptr<leveldb::Cache> cache(leveldb::NewLRUCache(8 << 20));
  Options options;
  options.block_cache = cache.get();
  options.compression = leveldb::kNoCompression;
  // From a file that does not lend its bytes: a block of such is not kept.
  const std::unique_ptr<leveldb::Env> env(leveldb::NewMemEnv(leveldb::Env::Default()));
  leveldb::WriteStringToFile(env.get(), Built(options, entries), "/table");
  uint64_t size = 0;
  leveldb::RandomAccessFile* opened = nullptr;
  env->GetFileSize("/table", &size);
  env->NewRandomAccessFile("/table", &opened);
  const std::unique_ptr<leveldb::RandomAccessFile> file(opened);
  Table* table = nullptr;
  Say("opened", Kind(Table::Open(options, file.get(), size, &table)));
  ReadOptions reading;
  reading.fill_cache = false;
  Walk("not kept", table, reading);
  Say("kept nothing", cache->TotalCharge() == 0 ? "yes" : "no");
  reading.fill_cache = true;
  Walk("kept", table, reading);
  const size_t kept = cache->TotalCharge();
  Say("kept all", kept > size / 2 && kept < 3 * size ? "yes" : "no");
  Walk("from the cache", table, reading);
  std::unique_ptr<Iterator> iterator(table->NewIterator(reading));
  iterator->SeekToFirst();
  cache->Prune();
  const bool is_there = iterator->Valid() && iterator->value() == Slice(entries[0].second);
  Say("pruned", is_there ? "fine" : "wrong");
  iterator.reset();
  delete table;
}

// ---- What is made by one library and read by the other

const char* const kMade[] = {"snappy", "snappy-small", "snappy-long", "plain"};

Options MadeOptions(const std::string& name) {
  Options options;
  if (name == "plain") options.compression = leveldb::kNoCompression;
  if (name == "snappy-small") options.block_size = 300;
  return options;
}

Entries MadeEntries(const std::string& name) {
  return Some(name == "snappy-long" ? 100 : 3000, name == "snappy-long" ? 30000 : 60,
              leveldb::BytewiseComparator());
}

int Make(const std::string& directory) {
  leveldb::Env* env = leveldb::Env::Default();
  const std::unique_ptr<const leveldb::FilterPolicy> bloom(leveldb::NewBloomFilterPolicy(10));
  for (const char* name : kMade) {
    Options options = MadeOptions(name);
    options.filter_policy = bloom.get();
    leveldb::WritableFile* file = nullptr;
    Status status = env->NewWritableFile(directory + "/" + name, &file);
    if (!status.ok()) return 1;
    TableBuilder builder(options, file);
    for (const auto& entry : MadeEntries(name)) builder.Add(entry.first, entry.second);
    status = builder.Finish();
    if (status.ok()) status = file->Close();
    delete file;
    if (!status.ok()) return 1;
  }
  return 0;
}

void ReadMade(const std::string& made) {
  leveldb::Env* env = leveldb::Env::Default();
  for (const std::string name : kMade) {
    const Entries entries = MadeEntries(name);
    std::string bytes;
    leveldb::ReadFileToString(env, made + "/" + name, &bytes);
    if (bytes.empty()) Say("nothing in", name);
    Read(name, MadeOptions(name), bytes, entries, true);
    // From the environment's own file.
    leveldb::RandomAccessFile* opened = nullptr;
    env->NewRandomAccessFile(made + "/" + name, &opened);
    const std::unique_ptr<leveldb::RandomAccessFile> file(opened);
    Table* table = nullptr;
    Say(name, Kind(Table::Open(MadeOptions(name), file.get(), bytes.size(), &table)));
    const std::unique_ptr<Table> kept(table);
    Walk(name, table, ReadOptions());
    const std::unique_ptr<Iterator> iterator(table->NewIterator(ReadOptions()));
    size_t same = 0;
    for (iterator->SeekToFirst(); iterator->Valid() && same < entries.size(); iterator->Next()) {
      if (iterator->key() != Slice(entries[same].first)) break;
      if (iterator->value() != Slice(entries[same].second)) break;
      same++;
    }
    Say("as it was written", same == entries.size() ? "yes" : "no");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "make") return Make(argv[2]);
  if (argc < 3 || std::string(argv[1]) != "run") return 2;
  Bytes();
  Stretches();
  Steps();
  Failures();
  Caches();
  for (int i = 3; i < argc; i++) ReadMade(argv[i]);
  return 0;
}
