// Tables, dumps and files in memory through LevelDB's C++ interface: prints what it
// gets, and scripts/dropin-test compares that with what LevelDB itself gives.
// usage: tables make NEW-DIRECTORY        writes tables and a database
//        tables run NEW-DIRECTORY MADE... reads those, and writes some of its own

#include <leveldb/cache.h>
#include <leveldb/comparator.h>
#include <leveldb/db.h>
#include <leveldb/dumpfile.h>
#include <leveldb/env.h>
#include <leveldb/filter_policy.h>
#include <leveldb/helpers/memenv.h>
#include <leveldb/table.h>
#include <leveldb/table_builder.h>
#include <leveldb/write_batch.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

using leveldb::Iterator;
using leveldb::Options;
using leveldb::ReadOptions;
using leveldb::Slice;
using leveldb::Status;
using leveldb::Table;
using leveldb::TableBuilder;

namespace {

void Say(const std::string& what, const std::string& text) {
  std::printf("%s: %s\n", what.c_str(), text.c_str());
}

void Say(const std::string& what, uint64_t number) { Say(what, std::to_string(number)); }

std::string Kind(const Status& status) {
  return status.ok()                ? "fine"
         : status.IsNotFound()      ? "not found"
         : status.IsCorruption()    ? "corruption"
         : status.IsIOError()       ? "io"
         : status.IsInvalidArgument() ? "invalid"
                                      : "other";
}

uint64_t Digest(const std::string& bytes, uint64_t digest = 14695981039346656037u) {
  for (const char c : bytes) digest = (digest ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return digest;
}

// A few bytes of it, and how long it is.
std::string Brief(const Slice& bytes) {
  return std::string(bytes.data(), std::min<size_t>(bytes.size(), 12)) + "/" +
         std::to_string(bytes.size());
}

// ---- Files of the program's own

// Keeps what it is given; fails from the given number of bytes on.
class Sink : public leveldb::WritableFile {
 public:
  explicit Sink(uint64_t room = UINT64_MAX) : room_(room) {}
  Status Append(const Slice& data) override {
    if (bytes.size() + data.size() > room_) return Status::IOError("the sink", "is full");
    bytes.append(data.data(), data.size());
    return Status::OK();
  }
  Status Close() override { return Status::OK(); }
  Status Flush() override {
    flushes++;
    return Status::OK();
  }
  Status Sync() override { return Status::OK(); }

  std::string bytes;
  int flushes = 0;

 private:
  const uint64_t room_;
};

// Lends its own bytes, and does not use the caller's room.
class Source : public leveldb::RandomAccessFile {
 public:
  explicit Source(std::string bytes) : bytes_(std::move(bytes)) {}
  Status Read(uint64_t offset, size_t n, Slice* result, char*) const override {
    reads++;
    if (offset > bytes_.size()) return Status::IOError("the source", "ends before");
    *result = Slice(bytes_.data() + offset, std::min<uint64_t>(n, bytes_.size() - offset));
    return Status::OK();
  }
  uint64_t size() const { return bytes_.size(); }

  mutable int reads = 0;

 private:
  const std::string bytes_;
};

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

// ---- Entries

using Entries = std::vector<std::pair<std::string, std::string>>;

Entries Some(int count, size_t value_bytes, const leveldb::Comparator* comparator) {
  Entries entries = {{"", "the empty key"}, {std::string("\0zero", 5), ""}, {"\xff\xff", "high"}};
  uint32_t random = 17;
  for (int i = 0; i < count; i++) {
    random = random * 1664525 + 1013904223;
    const std::string key = "key" + std::to_string(random % 1000000) + std::string(i % 5, 'x');
    entries.emplace_back(key, std::string(random % (value_bytes + 1), 'a' + i % 26) + key);
  }
  const auto before = [&](const auto& a, const auto& b) {
    return comparator->Compare(a.first, b.first) < 0;
  };
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  std::sort(entries.begin(), entries.end(), before);
  entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
  return entries;
}

std::string Built(const Options& options, const Entries& entries) {
  Sink sink;
  TableBuilder builder(options, &sink);
  for (const auto& entry : entries) builder.Add(entry.first, entry.second);
  const Status status = builder.Finish();
  if (!status.ok() || builder.FileSize() != sink.bytes.size()) Say("building", status.ToString());
  return sink.bytes;
}

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
  Say("kept all", cache->TotalCharge() > size / 2 && cache->TotalCharge() < 3 * size ? "yes" : "no");
  Walk("from the cache", table, reading);
  std::unique_ptr<Iterator> iterator(table->NewIterator(reading));
  iterator->SeekToFirst();
  cache->Prune();
  Say("pruned", iterator->Valid() && iterator->value() == Slice(entries[0].second) ? "fine" : "wrong");
  iterator.reset();
  delete table;
}

// ---- Files in memory

std::string Children(leveldb::Env* env, const std::string& dir) {
  std::vector<std::string> names = {"old"};
  std::string text = Kind(env->GetChildren(dir, &names));
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) text += " " + name;
  return text;
}

void ReadAgain(leveldb::Env* env, const std::string& name) {
  leveldb::SequentialFile* opened = nullptr;
  Say("open " + name, env->NewSequentialFile(name, &opened).ToString());
  const std::unique_ptr<leveldb::SequentialFile> file(opened);
  if (file == nullptr) return;
  char scratch[16];
  Slice part;
  for (int i = 0; i < 3; i++) {
    const Status status = file->Read(5, &part, scratch);
    Say("read", status.ToString() + " " + part.ToString());
  }
  Say("skip", file->Skip(2).ToString());
  const Status status = file->Read(5, &part, scratch);
  Say("read", status.ToString() + " " + part.ToString());
  Say("skip", file->Skip(1000).ToString());
  Say("at the end", file->Read(5, &part, scratch).ToString());
  Say("there", part.size());
}

void Wakes(void* arg) { *static_cast<int*>(arg) += 1; }

void Memory() {
  leveldb::Env* base = leveldb::Env::Default();
  const std::unique_ptr<leveldb::Env> env(leveldb::NewMemEnv(base));
  Say("nothing", Children(env.get(), "/dir"));
  Say("exists", env->FileExists("/dir/f"));
  uint64_t size = 77;
  Say("size", env->GetFileSize("/dir/f", &size).ToString());
  Say("remove", env->RemoveFile("/dir/f").ToString());
  Say("rename", env->RenameFile("/dir/f", "/dir/g").ToString());
  Say("create directory", env->CreateDir("/dir").ToString());
  Say("remove directory", env->RemoveDir("/nowhere").ToString());
  ReadAgain(env.get(), "/dir/f");
  leveldb::RandomAccessFile* random = nullptr;
  Say("random", env->NewRandomAccessFile("/dir/f", &random).ToString());
  leveldb::WritableFile* writable = nullptr;
  Say("write", env->NewWritableFile("/dir/f", &writable).ToString());
  Say("append", writable->Append("hello ").ToString());
  Say("append", writable->Append("world, ").ToString());
  Say("flush", writable->Flush().ToString());
  Say("sync", writable->Sync().ToString());
  // What is not closed is seen, and can grow.
  ReadAgain(env.get(), "/dir/f");
  Say("append", writable->Append("and more").ToString());
  Say("close", writable->Close().ToString());
  delete writable;
  env->GetFileSize("/dir/f", &size);
  Say("size", size);
  ReadAgain(env.get(), "/dir/f");
  Say("appendable", env->NewAppendableFile("/dir/f", &writable).ToString());
  writable->Append(" at the end");
  delete writable;
  // LevelDB's loses a file that NewAppendableFile has made.
  Say("another", leveldb::WriteStringToFile(env.get(), "n", "/dir/sub/n").ToString());
  Say("children", Children(env.get(), "/dir"));
  Say("children", Children(env.get(), "/di"));
  Say("children", Children(env.get(), "/dir/sub"));
  Say("open", env->NewRandomAccessFile("/dir/f", &random).ToString());
  // A file that is open keeps what it has, whatever becomes of its name.
  Say("rename", env->RenameFile("/dir/f", "/dir/sub/n").ToString());
  Say("children", Children(env.get(), "/dir"));
  Say("remove", env->RemoveFile("/dir/sub/n").ToString());
  Say("exists", env->FileExists("/dir/sub/n"));
  char scratch[100];
  Slice part;
  for (const uint64_t offset : {0, 6, 31, 32, 33, 1000}) {
    part = Slice("unchanged");
    const Status status = random->Read(offset, 10, &part, scratch);
    Say("at " + std::to_string(offset), status.ToString() + " " + (status.ok() ? part.ToString() : ""));
  }
  delete random;
  // Writing anew cuts what others have open.
  leveldb::WriteStringToFile(env.get(), "first contents", "/f");
  env->NewRandomAccessFile("/f", &random);
  env->NewWritableFile("/f", &writable);
  writable->Append("new");
  random->Read(0, 10, &part, scratch);
  Say("cut", part.ToString());
  delete random;
  delete writable;
  std::string text;
  Say("whole", leveldb::ReadFileToString(env.get(), "/f", &text).ToString());
  Say("text", text);
  std::string large(3 << 20, 'l');
  leveldb::WriteStringToFile(env.get(), large, "/large");
  leveldb::ReadFileToString(env.get(), "/large", &text);
  Say("large", text == large ? "same" : "other");
  leveldb::FileLock* lock = nullptr;
  leveldb::FileLock* second = nullptr;
  Say("lock", env->LockFile("/lock", &lock).ToString());
  Say("lock", env->LockFile("/lock", &second).ToString());
  Say("unlock", env->UnlockFile(lock).ToString());
  Say("unlock", env->UnlockFile(second).ToString());
  Say("test directory", env->GetTestDirectory(&text).ToString());
  Say("test directory", text);
  leveldb::Logger* logger = nullptr;
  Say("logger", env->NewLogger("/log", &logger).ToString());
  delete logger;
  Say("no file of it", env->FileExists("/log"));
  int woken = 0;
  env->StartThread(Wakes, &woken);
  for (int i = 0; i < 1000 && woken == 0; i++) env->SleepForMicroseconds(1000);
  Say("woken", static_cast<uint64_t>(woken));
  Say("clock", env->NowMicros() / 1000000000 == base->NowMicros() / 1000000000 ? "base's" : "other");
  Say("not on disk", base->FileExists("/dir/sub/n") || base->FileExists("/large"));
}

// ---- Dumps

// One line, or more, for each call.
class Dump : public leveldb::WritableFile {
 public:
  Status Append(const Slice& data) override {
    calls++;
    text += data.ToString() + "|";
    return calls > calls_max ? Status::IOError("enough") : Status::OK();
  }
  Status Close() override { return Status::OK(); }
  Status Flush() override { return Status::OK(); }
  Status Sync() override { return Status::OK(); }

  int calls = 0;
  int calls_max = 1 << 30;
  std::string text;
};

bool EndsWith(const std::string& name, const std::string& end) {
  return name.size() >= end.size() && name.substr(name.size() - end.size()) == end;
}

void DumpOne(leveldb::Env* env, const std::string& name, const std::string& said) {
  Dump dump;
  const Status status = leveldb::DumpFile(env, name, &dump);
  Say("dump of " + said, Kind(status) + " " + std::to_string(dump.calls) + " " +
                             std::to_string(Digest(dump.text)));
  std::printf("%s\n", dump.text.substr(0, 1500).c_str());
}

void Dumps(const std::string& made) {
  leveldb::Env* disk = leveldb::Env::Default();
  const std::unique_ptr<leveldb::Env> env(leveldb::NewMemEnv(disk));
  for (const char* name : {"000001.sst", "000002.log", "MANIFEST-000003", "CURRENT", "LOG", "LOCK",
                           "000004.dbtmp", "000005.txt", "", "x", "000007"}) {
    DumpOne(env.get(), std::string("/d/") + name, name);
  }
  std::vector<std::string> names;
  disk->GetChildren(made + "/db", &names);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    std::string bytes;
    if (!EndsWith(name, ".log") && !EndsWith(name, ".ldb") && name.find("MANIFEST") != 0) continue;
    DumpOne(disk, made + "/db/" + name, name);
    leveldb::ReadFileToString(disk, made + "/db/" + name, &bytes);
    if (EndsWith(name, ".ldb")) continue;
    // Damage in heads, types and lengths, at the end of blocks and anywhere else; and
    // files that were cut off.
    std::vector<size_t> places = {0, 4, 5, 6, 7, 19, 30, 32760, 32767, 32768, 32772, 32773, 32774,
                                  32780, 65536, 65541, 65542, 65550, 98304, 98310, 98400};
    for (size_t i = 0; i < 60; i++) places.push_back(i * 2731 % (bytes.size() + 1));
    for (const size_t at : places) {
      if (at >= bytes.size()) continue;
      for (const char change : {'\x01', '\x03', '\x40'}) {
        std::string damaged = bytes;
        damaged[at] ^= change;
        leveldb::WriteStringToFile(env.get(), damaged, "/" + name);
        DumpOne(env.get(), "/" + name, name + " damaged at " + std::to_string(at));
      }
      leveldb::WriteStringToFile(env.get(), bytes.substr(0, at), "/" + name);
      DumpOne(env.get(), "/" + name, name + " cut at " + std::to_string(at));
    }
    // Blocks left out, and twice.
    for (size_t block = 0; (block + 2) * 32768 < bytes.size(); block++) {
      std::string other = bytes;
      other.erase(block * 32768, 32768);
      leveldb::WriteStringToFile(env.get(), other, "/" + name);
      DumpOne(env.get(), "/" + name, name + " without block " + std::to_string(block));
      other.insert(block * 32768, bytes, block * 32768, 32768);
      other.insert(block * 32768, bytes, block * 32768, 32768);
      leveldb::WriteStringToFile(env.get(), other, "/" + name);
      DumpOne(env.get(), "/" + name, name + " with two blocks " + std::to_string(block));
    }
  }
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
  Options options;
  options.create_if_missing = true;
  leveldb::DB* db = nullptr;
  if (!leveldb::DB::Open(options, directory + "/db", &db).ok()) return 1;
  for (const auto& entry : Some(500, 500, leveldb::BytewiseComparator())) {
    db->Put(leveldb::WriteOptions(), entry.first, entry.second);
  }
  delete db;
  if (!leveldb::DB::Open(options, directory + "/db", &db).ok()) return 1;
  // The last log has records of several blocks, of many changes, and empty ones.
  for (int i = 0; i < 30; i++) {
    leveldb::WriteBatch batch;
    for (int j = 0; j < i; j++) batch.Put("b" + std::to_string(j), std::string(i, '\n'));
    for (int j = 0; j < i / 2; j++) batch.Delete("b" + std::to_string(j));
    db->Write(leveldb::WriteOptions(), &batch);
    if (i % 5 == 0) db->Put(leveldb::WriteOptions(), "large", std::string(i * 3000, 'L'));
  }
  delete db;
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
  Steps();
  Failures();
  Caches();
  Memory();
  for (int i = 3; i < argc; i++) {
    ReadMade(argv[i]);
    Dumps(argv[i]);
  }
  return 0;
}
