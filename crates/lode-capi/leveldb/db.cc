// Databases, iterators and snapshots over the engine.

#include "leveldb/db.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "internal.h"
#include "leveldb/env.h"
#include "leveldb/write_batch.h"

namespace leveldb {

Snapshot::~Snapshot() = default;
DB::~DB() = default;

// For databases of the caller's own making, which may call these of their base.
Status DB::Put(const WriteOptions& options, const Slice& key, const Slice& value) {
  WriteBatch batch;
  batch.Put(key, value);
  return Write(options, &batch);
}

Status DB::Delete(const WriteOptions& options, const Slice& key) {
  WriteBatch batch;
  batch.Delete(key);
  return Write(options, &batch);
}

Status StatusOf(lodestore_error* error) {
  if (error == nullptr) return Status::OK();
  if (const char* reason = lodestore_error_reason(error)) {
    const Status given = StatusOfReason(reason);
    lodestore_error_free(error);
    return given;
  }
  // The engine's text begins with the kind, as LevelDB's does.
  const char* text = lodestore_error_message(error);
  const char* colon = std::strstr(text, ": ");
  const Slice message(colon == nullptr ? text : colon + 2);
  Status status;
  switch (lodestore_error_code(error)) {
    case LODESTORE_CORRUPTION:
    case LODESTORE_MERGE_FAILED:
      status = Status::Corruption(message);
      break;
    case LODESTORE_MISSING:
    case LODESTORE_INVALID_ARGUMENT:
    case LODESTORE_INCOMPATIBLE:
      status = Status::InvalidArgument(message);
      break;
    default:
      status = Status::IOError(message);
  }
  lodestore_error_free(error);
  return status;
}

namespace {

class SnapshotImpl : public Snapshot {
 public:
  explicit SnapshotImpl(const lodestore_db* db) : snapshot_(lodestore_snapshot_create(db)) {}
  ~SnapshotImpl() override { lodestore_snapshot_free(snapshot_); }
  const lodestore_snapshot* get() const { return snapshot_; }

 private:
  lodestore_snapshot* snapshot_;
};

// The engine's options of a read; none are made for the defaults.
class Reading {
 public:
  explicit Reading(const ReadOptions& options) : options_(nullptr) {
    if (options.snapshot == nullptr && options.fill_cache) return;
    options_ = lodestore_read_options_create();
    lodestore_error_free(lodestore_read_options_set_fill_cache(options_, options.fill_cache));
    if (options.snapshot != nullptr) {
      const auto* snapshot = static_cast<const SnapshotImpl*>(options.snapshot);
      lodestore_error_free(lodestore_read_options_set_snapshot(options_, snapshot->get()));
    }
  }
  ~Reading() { lodestore_read_options_free(options_); }
  const lodestore_read_options* get() const { return options_; }

 private:
  lodestore_read_options* options_;
};

class Cursor : public Iterator {
 public:
  explicit Cursor(lodestore_cursor* cursor) : cursor_(cursor) {}
  ~Cursor() override { lodestore_cursor_free(cursor_); }

  bool Valid() const override { return valid_; }
  void SeekToFirst() override { Moved(lodestore_cursor_first(cursor_)); }
  void SeekToLast() override { Moved(lodestore_cursor_last(cursor_)); }
  void Seek(const Slice& target) override { Moved(lodestore_cursor_seek(cursor_, BytesOf(target))); }
  void Next() override { Moved(lodestore_cursor_next(cursor_)); }
  void Prev() override { Moved(lodestore_cursor_prev(cursor_)); }
  Slice key() const override { return key_; }
  Slice value() const override { return SliceOf(lodestore_cursor_value(cursor_)); }
  Status status() const override { return StatusOf(lodestore_cursor_status(cursor_)); }

 private:
  void Moved(uint8_t valid) {
    valid_ = valid != 0;
    if (valid_) key_ = SliceOf(lodestore_cursor_key(cursor_));
  }

  lodestore_cursor* cursor_;
  bool valid_ = false;
  Slice key_;
};

// A place for a batch of the engine's between writes, so that not each of them makes
// one. Of threads that write at once one gets it.
class BatchPlace {
 public:
  ~BatchPlace() { lodestore_batch_free(kept_.load()); }
  lodestore_batch* Take() {
    lodestore_batch* batch = kept_.exchange(nullptr);
    return batch != nullptr ? batch : lodestore_batch_create();
  }
  // Large ones are not kept: their memory would be, too.
  void GiveBack(lodestore_batch* batch) {
    if (lodestore_batch_size(batch) <= kBytesMax) {
      lodestore_batch_clear(batch);
      batch = kept_.exchange(batch);
    }
    lodestore_batch_free(batch);
  }

 private:
  static constexpr size_t kBytesMax = 64 << 10;
  std::atomic<lodestore_batch*> kept_{nullptr};
};

// Puts a batch of LevelDB's into one of the engine's.
class Converter : public WriteBatch::Handler {
 public:
  explicit Converter(lodestore_batch* batch) : batch_(batch) {}
  void Put(const Slice& key, const Slice& value) override {
    Fail(lodestore_batch_put(batch_, nullptr, BytesOf(key), BytesOf(value)));
  }
  void Delete(const Slice& key) override {
    Fail(lodestore_batch_delete(batch_, nullptr, BytesOf(key)));
  }
  const Status& status() const { return status_; }

 private:
  void Fail(lodestore_error* error) {
    Status status = StatusOf(error);
    if (status_.ok()) status_ = status;
  }

  lodestore_batch* batch_;
  Status status_;
};

class Database : public DB {
 public:
  Database(lodestore_db* db, std::unique_ptr<EngineLock> lock)
      : lock_(std::move(lock)), db_(db), family_(lodestore_default_family(db)) {}
  ~Database() override { lodestore_close(db_); }

  Status Put(const WriteOptions& options, const Slice& key, const Slice& value) override {
    const lodestore_write_options how = How(options);
    return StatusOf(lodestore_put(family_, &how, BytesOf(key), BytesOf(value)));
  }

  Status Delete(const WriteOptions& options, const Slice& key) override {
    const lodestore_write_options how = How(options);
    return StatusOf(lodestore_delete(family_, &how, BytesOf(key)));
  }

  Status Write(const WriteOptions& options, WriteBatch* updates) override {
    const lodestore_write_options how = How(options);
    // Null asks for what is in memory to be written, and waits for that.
    if (updates == nullptr) return StatusOf(lodestore_flush(family_));
    lodestore_batch* batch = batches_.Take();
    Converter converter(batch);
    Status status = updates->Iterate(&converter);
    if (status.ok()) status = converter.status();
    if (status.ok()) status = StatusOf(lodestore_write(db_, &how, batch, nullptr));
    batches_.GiveBack(batch);
    return status;
  }

  Status Get(const ReadOptions& options, const Slice& key, std::string* value) override {
    const Reading reading(options);
    lodestore_value* found = nullptr;
    Status status = StatusOf(lodestore_get(family_, reading.get(), BytesOf(key), &found));
    if (!status.ok()) return status;
    if (found == nullptr) return Status::NotFound(Slice());
    const Slice bytes = SliceOf(lodestore_value_bytes(found));
    value->assign(bytes.data(), bytes.size());
    lodestore_value_free(found);
    return status;
  }

  Iterator* NewIterator(const ReadOptions& options) override {
    const Reading reading(options);
    lodestore_cursor* cursor = nullptr;
    const Status status = StatusOf(lodestore_cursor_create(family_, reading.get(), &cursor));
    if (!status.ok()) return NewErrorIterator(status);
    return new Cursor(cursor);
  }

  const Snapshot* GetSnapshot() override { return new SnapshotImpl(db_); }
  void ReleaseSnapshot(const Snapshot* snapshot) override {
    delete static_cast<const SnapshotImpl*>(snapshot);
  }

  bool GetProperty(const Slice& property, std::string* value) override {
    value->clear();
    lodestore_value* found = lodestore_property(family_, property.ToString().c_str());
    if (found == nullptr) return false;
    const Slice text = SliceOf(lodestore_value_bytes(found));
    value->assign(text.data(), text.size());
    lodestore_value_free(found);
    return true;
  }

  void GetApproximateSizes(const Range* range, int n, uint64_t* sizes) override {
    for (int i = 0; i < n; i++) {
      const lodestore_range bounds = {BytesOf(range[i].start), BytesOf(range[i].limit)};
      sizes[i] = 0;
      lodestore_error_free(lodestore_approximate_sizes(family_, &bounds, 1, &sizes[i]));
    }
  }

  void CompactRange(const Slice* begin, const Slice* end) override {
    const lodestore_bytes open = {nullptr, 0};
    lodestore_error_free(lodestore_compact_range(family_, begin == nullptr ? open : BytesOf(*begin),
                                                 end == nullptr ? open : BytesOf(*end)));
  }

 private:
  static lodestore_write_options How(const WriteOptions& options) {
    return {static_cast<uint8_t>(options.sync), 0, 0};
  }

  // Released once the database is closed.
  const std::unique_ptr<EngineLock> lock_;
  lodestore_db* db_;
  const lodestore_family* family_;
  BatchPlace batches_;
};

// What becomes of a directory of LevelDB's when it is opened: LODESTORE_LEVELDB says it.
enum class Policy {
  kAdopt,   // its tables are read as they are, and rewritten over time
  kNative,  // they are rewritten before the database is open
  kRefuse,
};

Status PolicyOf(Policy* policy) {
  const char* given = std::getenv("LODESTORE_LEVELDB");
  const std::string name = given == nullptr ? "adopt" : given;
  if (name == "adopt") {
    *policy = Policy::kAdopt;
  } else if (name == "native") {
    *policy = Policy::kNative;
  } else if (name == "refuse") {
    *policy = Policy::kRefuse;
  } else {
    return Status::InvalidArgument("LODESTORE_LEVELDB is adopt, native or refuse, not", name);
  }
  return Status::OK();
}

// Rewrites what is in LevelDB's tables still, also what a crash kept an earlier call
// from.
Status MakeNative(const lodestore_family* family) {
  lodestore_value* tables = lodestore_property(family, "lodestore.foreign-tables");
  const bool is_native = SliceOf(lodestore_value_bytes(tables)) == Slice("0");
  lodestore_value_free(tables);
  const lodestore_bytes open = {nullptr, 0};
  return is_native ? Status::OK() : StatusOf(lodestore_rewrite_range(family, open, open));
}

}  // namespace

Status DB::Open(const Options& options, const std::string& name, DB** dbptr) {
  *dbptr = nullptr;
  Policy policy = Policy::kAdopt;
  Status status = PolicyOf(&policy);
  if (!status.ok()) return status;
  const EngineOptions engine(options);
  if (!engine.status().ok()) return engine.status();
  std::unique_ptr<EngineLock> lock(new EngineLock(name, options.env));
  if (!lock->status().ok()) return lock->status();
  lodestore_db* db = nullptr;
  const auto open = policy == Policy::kRefuse ? lodestore_open : lodestore_open_or_adopt;
  lodestore_error* error = open(name.c_str(), engine.get(), &db);
  if (lodestore_error_code(error) == LODESTORE_MISSING && !options.create_if_missing) {
    lodestore_error_free(error);
    // Programs show LevelDB's text, and some look for it.
    return Status::InvalidArgument(name, "does not exist (create_if_missing is false)");
  }
  status = StatusOf(error);
  if (!status.ok()) return status;
  if (policy == Policy::kNative) status = MakeNative(lodestore_default_family(db));
  if (status.ok()) {
    *dbptr = new Database(db, std::move(lock));
  } else {
    lodestore_close(db);
  }
  return status;
}

Status DestroyDB(const std::string& name, const Options& options) {
  const EngineOptions engine(options);
  if (!engine.status().ok()) return engine.status();
  const EngineLock lock(name, options.env);
  if (!lock.status().ok()) return lock.status();
  lodestore_error* error = lodestore_destroy(name.c_str(), engine.get());
  if (lodestore_error_code(error) == LODESTORE_MISSING) {
    lodestore_error_free(error);
    return Status::OK();
  }
  return StatusOf(error);
}

}  // namespace leveldb
