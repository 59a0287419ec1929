// A file of sorted keys and values: what a TableBuilder has made, or a database.

#ifndef STORAGE_LEVELDB_INCLUDE_TABLE_H_
#define STORAGE_LEVELDB_INCLUDE_TABLE_H_

#include <cstdint>

#include "leveldb/export.h"
#include "leveldb/iterator.h"

namespace leveldb {

struct Options;
class RandomAccessFile;
struct ReadOptions;

// Never changes, and can be read by several threads at once.
class LEVELDB_EXPORT Table {
 public:
  // Opens the table of `file_size` bytes in `file`, which the caller keeps open, and
  // deletes, after the table. The table in *table is for the caller to delete; it is
  // null after an error. The keys are in the order of `options.comparator`.
  static Status Open(const Options& options, RandomAccessFile* file, uint64_t file_size,
                     Table** table);

  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table();

  // At no key yet; to be deleted before the table.
  Iterator* NewIterator(const ReadOptions&) const;

  // About where in the file `key` is, or would be; near its end for keys behind all.
  uint64_t ApproximateOffsetOf(const Slice& key) const;

 private:
  struct Rep;
  explicit Table(Rep* rep) : rep_(rep) {}

  Rep* const rep_;
};

}  // namespace leveldb

#endif
