// A database: an ordered map that lives on disk, for any number of threads.

#ifndef STORAGE_LEVELDB_INCLUDE_DB_H_
#define STORAGE_LEVELDB_INCLUDE_DB_H_

#include <cstdint>
#include <cstdio>

#include "leveldb/export.h"
#include "leveldb/iterator.h"
#include "leveldb/options.h"

namespace leveldb {

// The version whose interface this is.
static const int kMajorVersion = 1;
static const int kMinorVersion = 23;

struct Options;
struct ReadOptions;
struct WriteOptions;
class WriteBatch;

// A state of the database that stays readable.
class LEVELDB_EXPORT Snapshot {
 protected:
  virtual ~Snapshot();
};

// From `start`, inclusive, to `limit`, exclusive.
struct LEVELDB_EXPORT Range {
  Range() = default;
  Range(const Slice& s, const Slice& l) : start(s), limit(l) {}

  Slice start;
  Slice limit;
};

class LEVELDB_EXPORT DB {
 public:
  // *dbptr is to be deleted, and null if it did not work.
  static Status Open(const Options& options, const std::string& name, DB** dbptr);

  DB() = default;
  DB(const DB&) = delete;
  DB& operator=(const DB&) = delete;
  virtual ~DB();

  virtual Status Put(const WriteOptions& options, const Slice& key, const Slice& value) = 0;
  // No error if there is no such key.
  virtual Status Delete(const WriteOptions& options, const Slice& key) = 0;
  virtual Status Write(const WriteOptions& options, WriteBatch* updates) = 0;
  // NotFound if there is no such key.
  virtual Status Get(const ReadOptions& options, const Slice& key, std::string* value) = 0;
  // To be deleted before the database; it has no position yet.
  virtual Iterator* NewIterator(const ReadOptions& options) = 0;
  // To be released.
  virtual const Snapshot* GetSnapshot() = 0;
  virtual void ReleaseSnapshot(const Snapshot* snapshot) = 0;
  // False for a name that it does not know.
  virtual bool GetProperty(const Slice& property, std::string* value) = 0;
  // Bytes on disk for each of n ranges, roughly.
  virtual void GetApproximateSizes(const Range* range, int n, uint64_t* sizes) = 0;
  // Both ends inclusive; null: open. Waits until it is done.
  virtual void CompactRange(const Slice* begin, const Slice* end) = 0;
};

// Removes the database. No error if there is none.
LEVELDB_EXPORT Status DestroyDB(const std::string& name, const Options& options);
// Saves what can be read of a damaged one.
LEVELDB_EXPORT Status RepairDB(const std::string& dbname, const Options& options);

}  // namespace leveldb

#endif
