// What the parts of the shim share.

#ifndef LODESTORE_LEVELDB_INTERNAL_H_
#define LODESTORE_LEVELDB_INTERNAL_H_

#include <string>

#include "leveldb/cache.h"
#include "leveldb/filter_policy.h"
#include "leveldb/options.h"
#include "leveldb/slice.h"
#include "leveldb/status.h"
#include "leveldb/write_batch.h"
#include "lodestore.h"

namespace leveldb {

// Which objects the library itself has made: callers may be compiled without the
// type information that dynamic_cast needs.
class OwnObjects {
 public:
  static void Add(const void* object);
  static void Remove(const void* object);
  static bool Has(const void* object);
};

// The policy that NewBloomFilterPolicy makes; the engine's own filters get as many
// bits.
class BloomFilter : public FilterPolicy {
 public:
  explicit BloomFilter(int bits_per_key) : bits_per_key_(bits_per_key) { OwnObjects::Add(this); }
  ~BloomFilter() override { OwnObjects::Remove(this); }
  const char* Name() const override;
  void CreateFilter(const Slice* keys, int n, std::string* dst) const override;
  bool KeyMayMatch(const Slice& key, const Slice& filter) const override;
  int bits_per_key() const { return bits_per_key_; }

 private:
  const int bits_per_key_;
};

// Batches as logs have them.
class WriteBatchInternal {
 public:
  // Sequence number and count.
  static const size_t kHeaderBytes = 12;
  // Of a record that is at least so long.
  static WriteBatch Of(const Slice& record);
  static uint64_t Sequence(const Slice& record);
};

inline lodestore_bytes BytesOf(const Slice& slice) { return {slice.data(), slice.size()}; }

inline Slice SliceOf(lodestore_bytes bytes) {
  return bytes.data == nullptr ? Slice() : Slice(static_cast<const char*>(bytes.data), bytes.size);
}

// The status that says what `error` does, which is freed. What an environment of the
// caller's has said comes back as it was.
Status StatusOf(lodestore_error* error);

// The status that an environment has given, of its words for it.
Status StatusOfReason(const char* reason);

// True for an environment of the caller's, which must have all files then; with the
// default one the engine goes its own, faster way.
bool IsCallers(Env* env);

// A database that is opened in an environment of the caller's is locked by that. This is
// for the others: while the engine has `dbname` by its own way, the default environment,
// which may be reached through a wrapper, locks it for nobody else, and neither does the
// engine take what the environment has locked. Other processes see the locks of files.
class EngineLock {
 public:
  EngineLock(const std::string& dbname, Env* env);
  ~EngineLock();
  EngineLock(const EngineLock&) = delete;
  EngineLock& operator=(const EngineLock&) = delete;

  // IOError if it is not to be had.
  const Status& status() const { return status_; }

 private:
  // Empty: nothing is held.
  std::string name_;
  Status status_;
};

// The engine's file system over `env`, which must last as long.
lodestore_file_system FileSystemOf(Env* env);

// The engine's cache that stands for one that NewLRUCache made, or null if `cache`
// is the caller's own. It belongs to `cache`.
const lodestore_cache* EngineCacheOf(const Cache* cache);

// The bits of a policy that NewBloomFilterPolicy made; -1 for the caller's own.
int BloomBitsOf(const FilterPolicy* policy);

// What the engine calls a database's options. LevelDB clips values that are too
// small or too large without a word, and so is it here.
class EngineOptions {
 public:
  explicit EngineOptions(const Options& options);
  ~EngineOptions() { lodestore_options_free(options_); }
  EngineOptions(const EngineOptions&) = delete;
  EngineOptions& operator=(const EngineOptions&) = delete;

  const lodestore_options* get() const { return options_; }
  const Status& status() const { return status_; }

 private:
  void Set(const char* name, const std::string& value);
  void Set(const char* name, uint64_t value);
  void SetFamily(const char* name, const std::string& value);
  void SetFamily(const char* name, uint64_t value);
  // Keeps the first failure.
  void Keep(lodestore_error* error);

  lodestore_options* options_;
  Status status_;
};

}  // namespace leveldb

#endif
