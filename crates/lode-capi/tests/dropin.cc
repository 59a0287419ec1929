// A program for LevelDB's C++ interface that prints what it gets: scripts/dropin-test
// compares that with what LevelDB itself gives. Usage: dropin DIRECTORY (a new one).

#include <leveldb/cache.h>
#include <leveldb/comparator.h>
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

using leveldb::Slice;
using leveldb::Status;

namespace {

void Say(const std::string& what, const std::string& text) {
  std::printf("%s: %s\n", what.c_str(), text.c_str());
}

// Kinds, not messages: those name files that are called otherwise.
std::string Kind(const Status& status) {
  return status.ok()                ? "fine"
         : status.IsNotFound()      ? "not found"
         : status.IsCorruption()    ? "corruption"
         : status.IsIOError()       ? "io"
         : status.IsInvalidArgument() ? "invalid"
                                      : "other";
}

void Statuses() {
  Status status = Status::NotFound("a", "b");
  const Status copy = status;
  status = Status::OK();
  Say("copy", copy.ToString());
  Say("assigned", status.ToString());
  Status moved = std::move(status);
  moved = Status::Corruption("c");
  Say("moved", moved.ToString());
  for (const Status& each : {Status::NotSupported("d"), Status::InvalidArgument("e", "f"),
                             Status::IOError("", "g")}) {
    Say("status", each.ToString());
  }
}

void Orders() {
  const leveldb::Comparator* bytewise = leveldb::BytewiseComparator();
  Say("name", bytewise->Name());
  const std::vector<std::string> keys = {"", "a", "abc", "abd", "abq", "b", "\xff\xff", "\xff"};
  for (const std::string& a : keys) {
    std::string successor = a;
    bytewise->FindShortSuccessor(&successor);
    Say("successor of " + a, successor);
    for (const std::string& b : keys) {
      std::string separator = a;
      if (bytewise->Compare(a, b) < 0) bytewise->FindShortestSeparator(&separator, b);
      Say(a + " and " + b, separator);
    }
  }
}

void Filters() {
  std::unique_ptr<const leveldb::FilterPolicy> bloom(leveldb::NewBloomFilterPolicy(10));
  Say("name", bloom->Name());
  std::vector<std::string> owned;
  for (int i = 0; i < 100; i++) owned.push_back("key" + std::to_string(i * i));
  const std::vector<Slice> keys(owned.begin(), owned.end());
  std::string filter = "before";
  bloom->CreateFilter(keys.data(), static_cast<int>(keys.size()), &filter);
  filter.erase(0, 6);
  unsigned sum = 0;
  for (const char c : filter) sum = sum * 31 + static_cast<unsigned char>(c);
  Say("filter", std::to_string(filter.size()) + " bytes, " + std::to_string(sum));
  int passed = 0;
  for (int i = 0; i < 10000; i++) passed += bloom->KeyMayMatch("key" + std::to_string(i), filter);
  Say("passed", std::to_string(passed));
}

int deleted = 0;
void OnDelete(const Slice&, void*) { deleted++; }
void OnCleanup(void* a, void* b) { *static_cast<int*>(a) += *static_cast<int*>(b); }

void Caches() {
  std::unique_ptr<leveldb::Cache> cache(leveldb::NewLRUCache(1000));
  int values[3] = {1, 2, 3};
  leveldb::Cache::Handle* held = cache->Insert("a", &values[0], 10, OnDelete);
  cache->Release(cache->Insert("b", &values[1], 20, OnDelete));
  cache->Release(cache->Insert("a", &values[2], 30, OnDelete));
  leveldb::Cache::Handle* found = cache->Lookup("a");
  Say("found", std::to_string(*static_cast<int*>(cache->Value(found))));
  Say("held", std::to_string(*static_cast<int*>(cache->Value(held))));
  cache->Release(found);
  Say("charge", std::to_string(cache->TotalCharge()));
  Say("deleted", std::to_string(deleted));
  cache->Release(held);
  cache->Erase("b");
  Say("deleted", std::to_string(deleted));
  Say("gone", cache->Lookup("b") == nullptr ? "yes" : "no");
  Say("new ids differ", cache->NewId() != cache->NewId() ? "yes" : "no");
  cache->Prune();
  Say("charge", std::to_string(cache->TotalCharge()));
  Say("deleted", std::to_string(deleted));
}

class CountingLogger : public leveldb::Logger {
 public:
  void Logv(const char* format, std::va_list arguments) override {
    char line[2000];
    lines += std::vsnprintf(line, sizeof line, format, arguments) > 0;
  }
  int lines = 0;
};

class ByLength : public leveldb::Comparator {
 public:
  int Compare(const Slice& a, const Slice& b) const override {
    return a.size() != b.size() ? (a.size() < b.size() ? -1 : 1) : a.compare(b);
  }
  const char* Name() const override { return "test.ByLength"; }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

class Printer : public leveldb::WriteBatch::Handler {
 public:
  void Put(const Slice& key, const Slice& value) override {
    Say("put " + key.ToString(), value.ToString());
  }
  void Delete(const Slice& key) override { Say("delete", key.ToString()); }
};

void Databases(const std::string& name) {
  ByLength order;
  std::unique_ptr<leveldb::Cache> cache(leveldb::NewLRUCache(1 << 20));
  leveldb::Options options;
  options.comparator = &order;
  options.block_cache = cache.get();
  options.write_buffer_size = 128 << 10;
  CountingLogger logger;
  options.info_log = &logger;
  leveldb::DB* raw = nullptr;
  Say("open", Kind(leveldb::DB::Open(options, name, &raw)));
  options.create_if_missing = true;
  Say("create", Kind(leveldb::DB::Open(options, name, &raw)));
  std::unique_ptr<leveldb::DB> db(raw);
  leveldb::WriteBatch batch;
  for (int i = 0; i < 3000; i++) {
    batch.Put(std::to_string(i * 37 % 3000), std::string(100, static_cast<char>('a' + i % 26)));
  }
  Say("size", std::to_string(batch.ApproximateSize()));
  Say("write", Kind(db->Write({}, &batch)));
  leveldb::WriteBatch small, copy;
  small.Put("x", "1");
  small.Delete("7");
  copy = small;
  copy.Append(small);
  Printer printer;
  Say("iterate", Kind(copy.Iterate(&printer)));
  const leveldb::Snapshot* before = db->GetSnapshot();
  Say("write", Kind(db->Write({}, &copy)));
  std::string value = "old";
  Say("get", Kind(db->Get({}, "7", &value)) + value);
  leveldb::ReadOptions then;
  then.snapshot = before;
  Say("then", Kind(db->Get(then, "7", &value)) + value);
  db->ReleaseSnapshot(before);
  db->CompactRange(nullptr, nullptr);
  int cleaned = 0, one = 1, two = 2;
  {
    std::unique_ptr<leveldb::Iterator> it(db->NewIterator({}));
    it->RegisterCleanup(OnCleanup, &cleaned, &one);
    it->RegisterCleanup(OnCleanup, &cleaned, &two);
    int keys = 0;
    std::string firsts;
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      if (keys++ < 15) firsts += it->key().ToString() + " ";
    }
    Say("keys", std::to_string(keys) + ": " + firsts);
    it->Seek("100");
    it->Prev();
    Say("before 100", it->key().ToString());
    it->SeekToLast();
    Say("last", it->key().ToString() + it->value().ToString());
    Say("status", Kind(it->status()));
  }
  Say("cleaned", std::to_string(cleaned));
  db.reset();
  Say("logged", logger.lines > 0 ? "yes" : "no");
  leveldb::Options other;
  Say("other order", Kind(leveldb::DB::Open(other, name, &raw)));
  Say("destroy", Kind(leveldb::DestroyDB(name, options)));
  Say("destroy again", Kind(leveldb::DestroyDB(name, options)));
}

void Environments(const std::string& root) {
  leveldb::Env* env = leveldb::Env::Default();
  const std::string name = root + "/file";
  Say("write", Kind(leveldb::WriteStringToFile(env, "some text", name)));
  leveldb::WritableFile* writing = nullptr;
  Say("append", Kind(env->NewAppendableFile(name, &writing)));
  Say("append", Kind(writing->Append(", and more")) + Kind(writing->Sync()) + Kind(writing->Close()));
  delete writing;
  std::string text;
  Say("read", Kind(leveldb::ReadFileToString(env, name, &text)) + text);
  leveldb::RandomAccessFile* reading = nullptr;
  Say("open", Kind(env->NewRandomAccessFile(name, &reading)));
  char scratch[16];
  Slice part;
  Say("read", Kind(reading->Read(5, 4, &part, scratch)) + part.ToString());
  delete reading;
  leveldb::FileLock *lock = nullptr, *again = nullptr;
  Say("lock", Kind(env->LockFile(root + "/lock", &lock)));
  Say("twice", Kind(env->LockFile(root + "/lock", &again)));
  Say("unlock", Kind(env->UnlockFile(lock)));
  std::vector<std::string> names;
  Say("list", Kind(env->GetChildren(root, &names)));
  std::sort(names.begin(), names.end());
  for (const std::string& each : names) Say("has", each);
  uint64_t size = 0;
  Say("size", Kind(env->GetFileSize(name, &size)) + std::to_string(size));
  Say("rename", Kind(env->RenameFile(name, name + "2")));
  Say("exists", env->FileExists(name) ? "yes" : "no");
  Say("remove", Kind(env->RemoveFile(name + "2")) + Kind(env->RemoveFile(name)));
  Say("directory", Kind(env->CreateDir(root + "/d")) + Kind(env->RemoveDir(root + "/d")));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string root = argv[1];
  std::printf("%zu %zu %zu\n", sizeof(leveldb::Options), sizeof(Status), sizeof(leveldb::WriteBatch));
  Statuses();
  Orders();
  Filters();
  Caches();
  Databases(root + "/db");
  Environments(root);
  return 0;
}
