// A small summary of many keys that says which keys are certainly not among them.

#ifndef STORAGE_LEVELDB_INCLUDE_FILTER_POLICY_H_
#define STORAGE_LEVELDB_INCLUDE_FILTER_POLICY_H_

#include <string>

#include "leveldb/export.h"

namespace leveldb {

class Slice;

class LEVELDB_EXPORT FilterPolicy {
 public:
  virtual ~FilterPolicy();
  // Another encoding needs another name.
  virtual const char* Name() const = 0;
  // Appends a summary of keys[0, n-1] to *dst.
  virtual void CreateFilter(const Slice* keys, int n, std::string* dst) const = 0;
  // True if `key` was among them; false, mostly, if not.
  virtual bool KeyMayMatch(const Slice& key, const Slice& filter) const = 0;
};

// A Bloom filter; the caller deletes it after the databases that use it. Not for
// orders in which keys of different bytes are equal.
LEVELDB_EXPORT const FilterPolicy* NewBloomFilterPolicy(int bits_per_key);

}  // namespace leveldb

#endif
