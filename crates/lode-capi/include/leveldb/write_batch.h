// Changes that are written together, or not at all.

#ifndef STORAGE_LEVELDB_INCLUDE_WRITE_BATCH_H_
#define STORAGE_LEVELDB_INCLUDE_WRITE_BATCH_H_

#include <string>

#include "leveldb/export.h"
#include "leveldb/status.h"

namespace leveldb {

class Slice;

class LEVELDB_EXPORT WriteBatch {
 public:
  class LEVELDB_EXPORT Handler {
   public:
    virtual ~Handler();
    virtual void Put(const Slice& key, const Slice& value) = 0;
    virtual void Delete(const Slice& key) = 0;
  };

  WriteBatch();
  WriteBatch(const WriteBatch&) = default;
  WriteBatch& operator=(const WriteBatch&) = default;
  ~WriteBatch();

  void Put(const Slice& key, const Slice& value);
  void Delete(const Slice& key);
  void Clear();
  // Bytes that it takes in the log.
  size_t ApproximateSize() const;
  // Adds what `source` has.
  void Append(const WriteBatch& source);
  // Calls `handler` for each change, in order.
  Status Iterate(Handler* handler) const;

 private:
  friend class WriteBatchInternal;

  // Sequence number (eight bytes), count (four), then for each change its kind,
  // its key and, of a put, its value, with their lengths: see docs/format/batch.md.
  std::string rep_;
};

}  // namespace leveldb

#endif
