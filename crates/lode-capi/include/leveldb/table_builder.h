// Writes a table: a file of sorted keys and values.
//
// Const functions may be called by several threads at once; whoever calls another one
// must be alone.

#ifndef STORAGE_LEVELDB_INCLUDE_TABLE_BUILDER_H_
#define STORAGE_LEVELDB_INCLUDE_TABLE_BUILDER_H_

#include <cstdint>

#include "leveldb/export.h"
#include "leveldb/options.h"
#include "leveldb/status.h"

namespace leveldb {

class WritableFile;

class LEVELDB_EXPORT TableBuilder {
 public:
  // Appends to `file`, which stays the caller's: to be closed after Finish().
  TableBuilder(const Options& options, WritableFile* file);

  TableBuilder(const TableBuilder&) = delete;
  TableBuilder& operator=(const TableBuilder&) = delete;
  // Finish() or Abandon() comes before.
  ~TableBuilder();

  // Sizes of blocks and compression count from the next block on, the restart interval
  // from the next key. An error, and no change, for another comparator. Filters stay
  // what they were.
  Status ChangeOptions(const Options& options);

  // `key` comes after all keys before it: otherwise status() is an error from here on.
  void Add(const Slice& key, const Slice& value);

  // The next key begins a block of its own.
  void Flush();

  // The first failure, if there was one: what is added then is left out.
  Status status() const;

  // Writes the rest. The file is not used any more, as after Abandon().
  Status Finish();
  void Abandon();

  // Keys that were added.
  uint64_t NumEntries() const;
  // Bytes that were appended so far, after Finish() all of them.
  uint64_t FileSize() const;

 private:
  struct Rep;
  Rep* rep_;
};

}  // namespace leveldb

#endif
