// A range of bytes that somebody else owns: it must live as long as the slice is used.

#ifndef STORAGE_LEVELDB_INCLUDE_SLICE_H_
#define STORAGE_LEVELDB_INCLUDE_SLICE_H_

#include <cassert>
#include <cstddef>
#include <cstring>
#include <string>

#include "leveldb/export.h"

namespace leveldb {

class LEVELDB_EXPORT Slice {
 public:
  Slice() : data_(""), size_(0) {}
  Slice(const char* d, size_t n) : data_(d), size_(n) {}
  Slice(const std::string& s) : data_(s.data()), size_(s.size()) {}
  // A text that ends with a zero byte.
  Slice(const char* s) : data_(s), size_(std::strlen(s)) {}
  Slice(const Slice&) = default;
  Slice& operator=(const Slice&) = default;

  const char* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  char operator[](size_t n) const {
    assert(n < size_);
    return data_[n];
  }
  void clear() {
    data_ = "";
    size_ = 0;
  }
  // Drops the first `n` bytes; there must be so many.
  void remove_prefix(size_t n) {
    assert(n <= size_);
    data_ += n;
    size_ -= n;
  }
  std::string ToString() const { return std::string(data_, size_); }
  // Below, equal to or above 0, as *this comes before, is, or comes after `b`.
  int compare(const Slice& b) const;
  bool starts_with(const Slice& x) const {
    return size_ >= x.size_ && std::memcmp(data_, x.data_, x.size_) == 0;
  }

 private:
  const char* data_;
  size_t size_;
};

inline bool operator==(const Slice& x, const Slice& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size()) == 0;
}

inline bool operator!=(const Slice& x, const Slice& y) { return !(x == y); }

inline int Slice::compare(const Slice& b) const {
  const size_t shared = size_ < b.size_ ? size_ : b.size_;
  const int order = std::memcmp(data_, b.data_, shared);
  if (order != 0 || size_ == b.size_) return order;
  return size_ < b.size_ ? -1 : +1;
}

}  // namespace leveldb

#endif
