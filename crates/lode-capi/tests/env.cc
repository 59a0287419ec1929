// Environments of a program's own: databases in memory, behind a wrapper, and on files
// that fail. scripts/dropin-test compares what this prints with what it prints with
// LevelDB itself. Usage: env DIRECTORY (a new one) [throw]

#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/helpers/memenv.h>
#include <leveldb/write_batch.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

using leveldb::Slice;
using leveldb::Status;

namespace {

void Say(const std::string& what, const std::string& text) {
  std::printf("%s: %s\n", what.c_str(), text.c_str());
}

std::string Kind(const Status& status) {
  return status.ok()                  ? "fine"
         : status.IsNotFound()        ? "not found"
         : status.IsCorruption()      ? "corruption"
         : status.IsIOError()         ? "io"
         : status.IsInvalidArgument() ? "invalid"
                                      : "other";
}

// ---- Files in memory

struct File {
  std::string bytes;
  size_t synced = 0;
};

struct Disk {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<File>> files;
  std::set<std::string> directories;
  std::set<std::string> locks;
  int open = 0;

  // Faults.
  int writes_left = -1;  // until all calls that write fail; -1: for ever
  bool may_throw = false;
  Status of_reads;

  // The failure of a call that writes, or OK. The mutex is held.
  Status Write() {
    if (writes_left < 0) return Status::OK();
    if (writes_left > 0) {
      writes_left--;
      return Status::OK();
    }
    if (may_throw) throw 7;
    return Status::IOError("my own disk", "wants no more");
  }
};

using Guard = std::lock_guard<std::mutex>;

class Opened {
 public:
  Opened(Disk* disk, std::shared_ptr<File> file) : disk(disk), file(std::move(file)) { disk->open++; }
  ~Opened() {
    const Guard guard(disk->mutex);
    disk->open--;
  }
  Disk* const disk;
  const std::shared_ptr<File> file;
};

class Sequential : public leveldb::SequentialFile {
 public:
  Sequential(Disk* disk, std::shared_ptr<File> file) : at_(disk, std::move(file)) {}
  Status Read(size_t n, Slice* result, char* scratch) override {
    const Guard guard(at_.disk->mutex);
    const size_t count = at_.file->bytes.copy(scratch, n, position_);
    position_ += count;
    *result = Slice(scratch, count);
    return at_.disk->of_reads;
  }
  Status Skip(uint64_t n) override {
    position_ += n;
    return Status::OK();
  }

 private:
  Opened at_;
  size_t position_ = 0;
};

// As a mapped file is: nothing behind its end may be asked for, and what it reads is
// never in `scratch`.
class RandomAccess : public leveldb::RandomAccessFile {
 public:
  RandomAccess(Disk* disk, std::shared_ptr<File> file)
      : at_(disk, std::move(file)), mapped_(at_.file->bytes) {}
  Status Read(uint64_t offset, size_t n, Slice* result, char*) const override {
    const Guard guard(at_.disk->mutex);
    if (!at_.disk->of_reads.ok()) return at_.disk->of_reads;
    if (offset + n > mapped_.size()) return Status::IOError("read", "beyond the end");
    *result = Slice(mapped_.data() + offset, n);
    return Status::OK();
  }

 private:
  Opened at_;
  const std::string mapped_;
};

// What is not flushed is lost when it is dropped, what is not synced in a crash.
class Writable : public leveldb::WritableFile {
 public:
  Writable(Disk* disk, std::shared_ptr<File> file) : at_(disk, std::move(file)) {}
  Status Append(const Slice& data) override {
    const Guard guard(at_.disk->mutex);
    const Status status = at_.disk->Write();
    if (status.ok()) buffer_.append(data.data(), data.size());
    return status;
  }
  Status Flush() override {
    const Guard guard(at_.disk->mutex);
    at_.file->bytes += buffer_;
    buffer_.clear();
    return Status::OK();
  }
  Status Sync() override {
    Flush();
    const Guard guard(at_.disk->mutex);
    const Status status = at_.disk->Write();
    if (status.ok()) at_.file->synced = at_.file->bytes.size();
    return status;
  }
  Status Close() override { return Flush(); }

 private:
  Opened at_;
  std::string buffer_;
};

struct Lock : leveldb::FileLock {
  std::string name;
};

class Memory : public leveldb::Env {
 public:
  Disk disk;

  // Power is lost: nothing but what was synced stays.
  void Crash() {
    const Guard guard(disk.mutex);
    for (auto& each : disk.files) each.second->bytes.resize(each.second->synced);
  }

  // What another process finds when this one is killed now.
  void CopyTo(Memory* other) {
    const Guard guard(disk.mutex);
    other->disk.directories = disk.directories;
    for (auto& each : disk.files) other->disk.files[each.first] = std::make_shared<File>(*each.second);
  }

  Status NewSequentialFile(const std::string& name, leveldb::SequentialFile** result) override {
    return Open<Sequential>(name, result);
  }
  Status NewRandomAccessFile(const std::string& name, leveldb::RandomAccessFile** result) override {
    return Open<RandomAccess>(name, result);
  }
  Status NewWritableFile(const std::string& name, leveldb::WritableFile** result) override {
    *result = nullptr;
    const Guard guard(disk.mutex);
    const Status status = disk.Write();
    if (!status.ok()) return status;
    if (disk.directories.count(Above(name)) == 0) return Status::IOError(name, "no directory");
    disk.files[name] = std::make_shared<File>();
    *result = new Writable(&disk, disk.files[name]);
    return Status::OK();
  }
  bool FileExists(const std::string& name) override {
    const Guard guard(disk.mutex);
    return disk.files.count(name) > 0 || disk.directories.count(name) > 0;
  }
  Status GetChildren(const std::string& name, std::vector<std::string>* result) override {
    result->clear();
    const Guard guard(disk.mutex);
    // One kind of failure for everything.
    if (disk.directories.count(name) == 0) return Status::IOError(name, "no such thing");
    for (const auto& each : disk.files) {
      if (Above(each.first) == name) result->push_back(each.first.substr(name.size() + 1));
    }
    result->push_back(".");
    return Status::OK();
  }
  Status RemoveFile(const std::string& name) override {
    const Guard guard(disk.mutex);
    return disk.files.erase(name) > 0 ? Status::OK() : Status::IOError(name, "no such thing");
  }
  Status CreateDir(const std::string& name) override {
    const Guard guard(disk.mutex);
    return disk.directories.insert(name).second ? Status::OK() : Status::IOError(name, "is there");
  }
  Status RemoveDir(const std::string& name) override {
    const Guard guard(disk.mutex);
    return disk.directories.erase(name) > 0 ? Status::OK() : Status::IOError(name, "is not there");
  }
  Status GetFileSize(const std::string& name, uint64_t* size) override {
    *size = 0;
    const Guard guard(disk.mutex);
    const auto found = disk.files.find(name);
    if (found == disk.files.end()) return Status::IOError(name, "no such thing");
    *size = found->second->bytes.size();
    return Status::OK();
  }
  Status RenameFile(const std::string& from, const std::string& to) override {
    const Guard guard(disk.mutex);
    const auto found = disk.files.find(from);
    if (found == disk.files.end()) return Status::IOError(from, "no such thing");
    const Status status = disk.Write();
    if (!status.ok()) return status;
    disk.files[to] = found->second;
    disk.files.erase(from);
    return Status::OK();
  }
  Status LockFile(const std::string& name, leveldb::FileLock** lock) override {
    *lock = nullptr;
    const Guard guard(disk.mutex);
    if (!disk.locks.insert(name).second) return Status::IOError("my own lock", "is taken");
    Lock* taken = new Lock;
    taken->name = name;
    *lock = taken;
    return Status::OK();
  }
  Status UnlockFile(leveldb::FileLock* lock) override {
    const std::unique_ptr<Lock> taken(static_cast<Lock*>(lock));
    const Guard guard(disk.mutex);
    disk.locks.erase(taken->name);
    return Status::OK();
  }
  void Schedule(void (*function)(void*), void* argument) override {
    Env::Default()->Schedule(function, argument);
  }
  void StartThread(void (*function)(void*), void* argument) override {
    Env::Default()->StartThread(function, argument);
  }
  Status GetTestDirectory(std::string* path) override {
    *path = "test";
    return Status::OK();
  }
  Status NewLogger(const std::string& name, leveldb::Logger** result) override {
    *result = nullptr;
    return Status::NotSupported(name);
  }
  uint64_t NowMicros() override { return Env::Default()->NowMicros(); }
  void SleepForMicroseconds(int micros) override { Env::Default()->SleepForMicroseconds(micros); }

 private:
  static std::string Above(const std::string& name) {
    const size_t slash = name.rfind('/');
    return slash == std::string::npos ? "" : name.substr(0, slash);
  }

  template <typename Type, typename Interface>
  Status Open(const std::string& name, Interface** result) {
    *result = nullptr;
    const Guard guard(disk.mutex);
    const auto found = disk.files.find(name);
    if (found == disk.files.end()) return Status::IOError(name, "no such thing");
    *result = new Type(&disk, found->second);
    return Status::OK();
  }
};

// ---- What is done with databases

using Database = std::unique_ptr<leveldb::DB>;

leveldb::Options Creating(leveldb::Env* env) {
  leveldb::Options options;
  options.env = env;
  options.create_if_missing = true;
  options.write_buffer_size = 64 << 10;
  return options;
}

Database Open(const leveldb::Options& options, const std::string& name, Status* status) {
  leveldb::DB* db = nullptr;
  *status = leveldb::DB::Open(options, name, &db);
  return Database(db);
}

Database Open(leveldb::Env* env, const std::string& name) {
  Status status;
  Database db = Open(Creating(env), name, &status);
  Say("open", status.ToString());
  return db;
}

std::string Key(int i) { return "key" + std::to_string(100000 + i); }

void Fill(leveldb::DB* db, int count) {
  leveldb::WriteOptions synced;
  synced.sync = true;
  for (int i = 0; i < count; i++) {
    const int n = i * 37 % count;
    const std::string value(100, static_cast<char>('a' + n % 26));
    const Status status = db->Put(i % 50 == 0 ? synced : leveldb::WriteOptions(), Key(n), value);
    if (!status.ok()) return Say("put", status.ToString());
  }
  Say("delete", db->Delete({}, Key(1)).ToString());
}

void Digest(leveldb::DB* db) {
  unsigned long sum = 0, entries = 0;
  const std::unique_ptr<leveldb::Iterator> it(db->NewIterator({}));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    for (const char c : it->key().ToString() + it->value().ToString()) sum = sum * 31 + c;
    entries++;
  }
  Say("entries", std::to_string(entries) + ", " + std::to_string(sum & 0xffffffff) + ", " +
                     it->status().ToString());
}

void InMemory(const std::string& root) {
  Memory env;
  const std::string name = root + "/in memory";
  Status status;
  leveldb::Options options = Creating(&env);
  options.create_if_missing = false;
  Say("missing", Open(options, name, &status) == nullptr ? Kind(status) : "open");
  Database db = Open(&env, name);
  Say("twice", Open(Creating(&env), name, &status) == nullptr ? status.ToString() : "open");
  Fill(db.get(), 5000);
  Digest(db.get());
  db->CompactRange(nullptr, nullptr);
  std::string value;
  Say("get", db->Get({}, Key(77), &value).ToString() + ", " + value);
  Say("get", Kind(db->Get({}, Key(1), &value)));
  db.reset();
  Say("open files", std::to_string(env.disk.open));
  Say("locks", std::to_string(env.disk.locks.size()));
  options.error_if_exists = true;
  Say("exists", Open(options, name, &status) == nullptr ? Kind(status) : "open");

  // What was not synced is kept unless power is lost.
  db = Open(&env, name);
  Say("put", db->Put({}, Key(2), "not synced").ToString());
  {
    Memory killed;
    env.CopyTo(&killed);
    Digest(Open(&killed, name).get());
  }
  db.reset();
  db = Open(&env, name);
  Digest(db.get());
  leveldb::WriteOptions synced;
  synced.sync = true;
  Say("put", db->Put(synced, Key(3), "synced").ToString());
  db.reset();
  env.Crash();
  db = Open(&env, name);
  Digest(db.get());

  // Reads that fail say so in the environment's words.
  db->CompactRange(nullptr, nullptr);
  db.reset();
  db = Open(&env, name);
  for (const Status& failure : {Status::IOError("my own", "failure"), Status::Corruption("rot")}) {
    env.disk.of_reads = failure;
    Say("get", db->Get({}, Key(500), &value).ToString());
    std::unique_ptr<leveldb::Iterator> it(db->NewIterator({}));
    it->SeekToFirst();
    Say("walk", std::string(it->Valid() ? "valid" : "not valid") + ", " + it->status().ToString());
    env.disk.of_reads = Status::OK();
  }
  Digest(db.get());
  db.reset();
  Say("destroy", leveldb::DestroyDB(name, Creating(&env)).ToString());
  Say("files left", std::to_string(env.disk.files.size()));
  Say("directories left", std::to_string(env.disk.directories.size()));
  Say("destroy again", leveldb::DestroyDB(name, Creating(&env)).ToString());
  Say("outside", leveldb::Env::Default()->FileExists(name) ? "something" : "nothing");
}

void Repaired(const std::string& root) {
  Memory env;
  const std::string name = root + "/repaired";
  Database db = Open(&env, name);
  Fill(db.get(), 3000);
  db.reset();
  env.RemoveFile(name + "/CURRENT");
  Say("repair", leveldb::RepairDB(name, Creating(&env)).ToString());
  db = Open(&env, name);
  Digest(db.get());
  db.reset();
  Say("open files", std::to_string(env.disk.open));
  Say("outside", leveldb::Env::Default()->FileExists(name) ? "something" : "nothing");
}

// Everything that is acknowledged stays; the failure is told as the environment has it.
void Failing(const std::string& root) {
  for (const bool loses_power : {false, true}) {
    for (const int calls : {0, 1, 2, 3, 10, 77, 500, 1000}) {
      Memory env;
      const std::string name = root + "/failing";
      Database db = Open(&env, name);
      env.disk.writes_left = calls;
      leveldb::WriteOptions synced;
      synced.sync = true;
      int written = 0;
      Status status;
      while (written < 3000) {
        status = db->Put(synced, Key(written), std::string(100, 'x'));
        if (!status.ok()) break;
        written++;
      }
      Say("after " + std::to_string(calls), status.ToString());
      Say("once more", Kind(db->Put(synced, "more", "more")));
      db.reset();
      // LevelDB writes when it opens; ours may have nothing to write before it is asked to.
      Status reopened;
      db = Open(Creating(&env), name, &reopened);
      Say("closed", (db == nullptr ? reopened : db->Put(synced, "full", "disk")).ToString());
      db.reset();
      env.disk.writes_left = -1;
      if (loses_power) env.Crash();
      db = Open(&env, name);
      int kept = 0;
      std::string value;
      for (int i = 0; i < written; i++) kept += db->Get({}, Key(i), &value).ok();
      Say("lost", std::to_string(written - kept));
      Say("put", db->Put(synced, "again", "yes").ToString());
    }
  }
}

// ---- The system's environment behind a wrapper

class Watching : public leveldb::EnvWrapper {
 public:
  explicit Watching(std::string root) : EnvWrapper(Env::Default()), root_(std::move(root)) {}

  Status NewWritableFile(const std::string& name, leveldb::WritableFile** result) override {
    return May(name) ? EnvWrapper::NewWritableFile(name, result) : Forbidden(result);
  }
  Status NewRandomAccessFile(const std::string& name, leveldb::RandomAccessFile** result) override {
    return May(name) ? EnvWrapper::NewRandomAccessFile(name, result) : Forbidden(result);
  }
  Status NewLogger(const std::string&, leveldb::Logger** result) override { return Forbidden(result); }

  std::atomic<int> inside{0};
  std::atomic<int> outside{0};

 private:
  bool May(const std::string& name) {
    const bool may = name.compare(0, root_.size(), root_) == 0;
    (may ? inside : outside)++;
    return may;
  }
  template <typename Interface>
  static Status Forbidden(Interface** result) {
    *result = nullptr;
    return Status::IOError("forbidden");
  }

  const std::string root_;
};

void Wrapped(const std::string& root) {
  const std::string name = root + "/wrapped";
  Watching env(name + "/");
  Database db = Open(&env, name);
  Fill(db.get(), 4000);
  db->CompactRange(nullptr, nullptr);
  Digest(db.get());
  db.reset();
  Status status;
  db = Open(&env, name);
  Say("past it", Kind(Open(Creating(leveldb::Env::Default()), name, &status) ? Status() : status));
  Say("destroy", Kind(leveldb::DestroyDB(name, Creating(leveldb::Env::Default()))));
  Digest(db.get());
  db.reset();
  Say("goes through it", env.inside > 3 ? "yes" : "no");
  Say("outside", std::to_string(env.outside));
  // The files are the same by either way.
  const int before = env.inside;
  db = Open(leveldb::Env::Default(), name);
  Digest(db.get());
  Fill(db.get(), 100);
  Say("goes past it", env.inside == before ? "yes" : "no");
  Say("through it", Kind(Open(Creating(&env), name, &status) ? Status() : status));
  db.reset();
  db = Open(&env, name);
  Digest(db.get());
  db.reset();
  Say("destroy", leveldb::DestroyDB(name, Creating(&env)).ToString());
  Say("left", env.FileExists(name) ? "something" : "nothing");
}

// The library's own environment in memory, whose locks keep nobody out.
void InLibrarysMemory(const std::string& root) {
  const std::unique_ptr<leveldb::Env> env(leveldb::NewMemEnv(leveldb::Env::Default()));
  const std::string name = root + "/librarys";
  for (int round = 0; round < 3; round++) {
    const Database db = Open(env.get(), name);
    Fill(db.get(), 2000);
    db->CompactRange(nullptr, nullptr);
    Digest(db.get());
  }
  Say("on disk", leveldb::Env::Default()->FileExists(name) ? "something" : "nothing");
  Say("destroy", Kind(leveldb::DestroyDB(name, Creating(env.get()))));
}

// LevelDB itself would end here: what an environment throws is an error.
void Throwing(const std::string& root) {
  Memory env;
  Database db = Open(&env, root + "/throwing");
  env.disk.may_throw = true;
  env.disk.writes_left = 5;
  Status status;
  for (int i = 0; i < 100 && status.ok(); i++) status = db->Put({}, Key(i), "value");
  Say("put", status.ToString());
  db.reset();
  env.disk.writes_left = -1;
  db = Open(&env, root + "/throwing");
  std::string value;
  Say("get", db->Get({}, Key(0), &value).ToString());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[2]) == "throw") {
    Throwing(argv[1]);
    return 0;
  }
  if (argc != 2) return 2;
  const std::string root = argv[1];
  InMemory(root);
  Repaired(root);
  Failing(root);
  Wrapped(root);
  InLibrarysMemory(root);
  return 0;
}
