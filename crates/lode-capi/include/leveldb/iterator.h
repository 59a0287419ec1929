// A walk over keys and values.

#ifndef STORAGE_LEVELDB_INCLUDE_ITERATOR_H_
#define STORAGE_LEVELDB_INCLUDE_ITERATOR_H_

#include "leveldb/export.h"
#include "leveldb/slice.h"
#include "leveldb/status.h"

namespace leveldb {

class LEVELDB_EXPORT Iterator {
 public:
  Iterator();
  Iterator(const Iterator&) = delete;
  Iterator& operator=(const Iterator&) = delete;
  virtual ~Iterator();

  // False where there is no key: status() says whether that is an error.
  virtual bool Valid() const = 0;
  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  // To the first key that is not before `target`.
  virtual void Seek(const Slice& target) = 0;
  // Valid() before these four.
  virtual void Next() = 0;
  virtual void Prev() = 0;
  virtual Slice key() const = 0;
  virtual Slice value() const = 0;
  virtual Status status() const = 0;

  // `function` is called with both arguments when the iterator goes.
  using CleanupFunction = void (*)(void* arg1, void* arg2);
  void RegisterCleanup(CleanupFunction function, void* arg1, void* arg2);

 private:
  struct CleanupNode {
    bool IsEmpty() const { return function == nullptr; }
    void Run() { (*function)(arg1, arg2); }

    CleanupFunction function;
    void* arg1;
    void* arg2;
    CleanupNode* next;
  };
  // The first one is within, the others are in a list.
  CleanupNode cleanup_head_;
};

// Without keys; the second one has an error.
LEVELDB_EXPORT Iterator* NewEmptyIterator();
LEVELDB_EXPORT Iterator* NewErrorIterator(const Status& status);

}  // namespace leveldb

#endif
