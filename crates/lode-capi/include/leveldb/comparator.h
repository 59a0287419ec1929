// An order of keys.

#ifndef STORAGE_LEVELDB_INCLUDE_COMPARATOR_H_
#define STORAGE_LEVELDB_INCLUDE_COMPARATOR_H_

#include <string>

#include "leveldb/export.h"

namespace leveldb {

class Slice;

// Any thread calls it, several at once.
class LEVELDB_EXPORT Comparator {
 public:
  virtual ~Comparator();
  // Below, equal to or above 0, as `a` comes before, is, or comes after `b`.
  virtual int Compare(const Slice& a, const Slice& b) const = 0;
  // Stored: a database opens only under the name that it was made with.
  virtual const char* Name() const = 0;
  // May replace *start by a shorter key in [*start, limit).
  virtual void FindShortestSeparator(std::string* start, const Slice& limit) const = 0;
  // May replace *key by a shorter key that is not before it.
  virtual void FindShortSuccessor(std::string* key) const = 0;
};

// By unsigned bytes. It belongs to the library.
LEVELDB_EXPORT const Comparator* BytewiseComparator();

}  // namespace leveldb

#endif
