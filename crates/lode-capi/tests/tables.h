// What the programs of scripts/dropin-test about tables share.

#ifndef LODESTORE_TESTS_TABLES_H_
#define LODESTORE_TESTS_TABLES_H_

#include <leveldb/comparator.h>
#include <leveldb/env.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/table.h>
#include <leveldb/table_builder.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

using leveldb::Iterator;
using leveldb::Options;
using leveldb::ReadOptions;
using leveldb::Slice;
using leveldb::Status;
using leveldb::Table;
using leveldb::TableBuilder;

// ---- What is printed

inline void Say(const std::string& what, const std::string& text) {
  std::printf("%s: %s\n", what.c_str(), text.c_str());
}

inline void Say(const std::string& what, uint64_t number) { Say(what, std::to_string(number)); }

inline std::string Kind(const Status& status) {
  return status.ok()                ? "fine"
         : status.IsNotFound()      ? "not found"
         : status.IsCorruption()    ? "corruption"
         : status.IsIOError()       ? "io"
         : status.IsInvalidArgument() ? "invalid"
                                      : "other";
}

inline uint64_t Digest(const std::string& bytes, uint64_t digest = 14695981039346656037u) {
  for (const char c : bytes) digest = (digest ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return digest;
}

// ---- Files of the program's own

// Keeps what it is given; fails from the given number of bytes on.
class Sink : public leveldb::WritableFile {
 public:
  explicit Sink(uint64_t room = UINT64_MAX) : room_(room) {}
  Status Append(const Slice& data) override {
    if (bytes.size() + data.size() > room_) return Status::IOError("the sink", "is full");
    bytes.append(data.data(), data.size());
    return Status::OK();
  }
  Status Close() override { return Status::OK(); }
  Status Flush() override {
    flushes++;
    return Status::OK();
  }
  Status Sync() override { return Status::OK(); }

  std::string bytes;
  int flushes = 0;

 private:
  const uint64_t room_;
};

// Lends its own bytes, and does not use the caller's room.
class Source : public leveldb::RandomAccessFile {
 public:
  explicit Source(std::string bytes) : bytes_(std::move(bytes)) {}
  Status Read(uint64_t offset, size_t n, Slice* result, char*) const override {
    reads++;
    if (offset > bytes_.size()) return Status::IOError("the source", "ends before");
    *result = Slice(bytes_.data() + offset, std::min<uint64_t>(n, bytes_.size() - offset));
    return Status::OK();
  }
  uint64_t size() const { return bytes_.size(); }

  mutable int reads = 0;

 private:
  const std::string bytes_;
};

// One line, or more, for each call.
class Dump : public leveldb::WritableFile {
 public:
  Status Append(const Slice& data) override {
    calls++;
    text += data.ToString() + "|";
    return calls > calls_max ? Status::IOError("enough") : Status::OK();
  }
  Status Close() override { return Status::OK(); }
  Status Flush() override { return Status::OK(); }
  Status Sync() override { return Status::OK(); }

  int calls = 0;
  int calls_max = 1 << 30;
  std::string text;
};

// ---- Entries

using Entries = std::vector<std::pair<std::string, std::string>>;

inline Entries Some(int count, size_t value_bytes, const leveldb::Comparator* comparator) {
  Entries entries = {{"", "the empty key"}, {std::string("\0zero", 5), ""}, {"\xff\xff", "high"}};
  uint32_t random = 17;
  for (int i = 0; i < count; i++) {
    random = random * 1664525 + 1013904223;
    const std::string key = "key" + std::to_string(random % 1000000) + std::string(i % 5, 'x');
    entries.emplace_back(key, std::string(random % (value_bytes + 1), 'a' + i % 26) + key);
  }
  const auto before = [&](const auto& a, const auto& b) {
    return comparator->Compare(a.first, b.first) < 0;
  };
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  std::sort(entries.begin(), entries.end(), before);
  entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
  return entries;
}

inline std::string Built(const Options& options, const Entries& entries) {
  Sink sink;
  TableBuilder builder(options, &sink);
  for (const auto& entry : entries) builder.Add(entry.first, entry.second);
  const Status status = builder.Finish();
  if (!status.ok() || builder.FileSize() != sink.bytes.size()) Say("building", status.ToString());
  return sink.bytes;
}

#endif
