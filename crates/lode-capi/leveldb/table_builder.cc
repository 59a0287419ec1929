// TableBuilder: the caller's file, order and filters around the engine's writer of
// LevelDB's tables.

#include "leveldb/table_builder.h"

#include <algorithm>
#include <string>
#include <vector>

#include "format.h"
#include "internal.h"
#include "leveldb/comparator.h"
#include "leveldb/env.h"

namespace leveldb {

namespace {

lodestore_leveldb_layout LayoutOf(const Options& options) {
  lodestore_leveldb_layout layout;
  layout.block_bytes = options.block_size;
  layout.restart_interval = static_cast<size_t>(std::max(options.block_restart_interval, 1));
  layout.snappy = options.compression != kNoCompression;
  return layout;
}

}  // namespace

struct TableBuilder::Rep {
  Rep(const Options& options, WritableFile* file)
      : comparator(options.comparator), policy(options.filter_policy), file(file) {
    const lodestore_leveldb_keys keys = {this, Separator, Successor, Filter};
    const std::string name =
        policy == nullptr ? std::string() : std::string("filter.") + policy->Name();
    table = lodestore_leveldb_table_create(
        keys, policy == nullptr ? lodestore_bytes{nullptr, 0} : BytesOf(name), LayoutOf(options));
  }
  ~Rep() { lodestore_leveldb_table_free(table); }

  // Appends to the file what the engine has made by now.
  void Write() {
    const Slice made = SliceOf(lodestore_leveldb_table_take(table));
    if (!status.ok() || made.empty()) return;
    status = file->Append(made);
    if (status.ok()) bytes += made.size();
  }

  // Write(), and lets readers of the file see a block that ended.
  void WriteBlock() {
    const uint64_t before = bytes;
    Write();
    if (status.ok() && bytes > before) status = file->Flush();
  }

  static lodestore_bytes Separator(void* context, lodestore_bytes last, lodestore_bytes next) {
    Rep* rep = static_cast<Rep*>(context);
    rep->answer.assign(static_cast<const char*>(last.data), last.size);
    rep->comparator->FindShortestSeparator(&rep->answer, SliceOf(next));
    return BytesOf(rep->answer);
  }

  static lodestore_bytes Successor(void* context, lodestore_bytes last) {
    Rep* rep = static_cast<Rep*>(context);
    rep->answer.assign(static_cast<const char*>(last.data), last.size);
    rep->comparator->FindShortSuccessor(&rep->answer);
    return BytesOf(rep->answer);
  }

  static lodestore_bytes Filter(void* context, const lodestore_bytes* keys, size_t count) {
    Rep* rep = static_cast<Rep*>(context);
    std::vector<Slice> slices;
    slices.reserve(count);
    for (size_t i = 0; i < count; i++) slices.push_back(SliceOf(keys[i]));
    rep->answer.clear();
    rep->policy->CreateFilter(slices.data(), static_cast<int>(count), &rep->answer);
    return BytesOf(rep->answer);
  }

  const Comparator* const comparator;
  const FilterPolicy* const policy;
  WritableFile* const file;
  lodestore_leveldb_table* table;
  Status status;
  std::string last;
  uint64_t entries = 0;
  uint64_t bytes = 0;
  bool closed = false;
  std::string answer;  // what the engine was given last
};

TableBuilder::TableBuilder(const Options& options, WritableFile* file)
    : rep_(new Rep(options, file)) {}

TableBuilder::~TableBuilder() { delete rep_; }

Status TableBuilder::ChangeOptions(const Options& options) {
  if (options.comparator != rep_->comparator) {
    return Status::InvalidArgument("changing comparator while building table");
  }
  return StatusOf(lodestore_leveldb_table_set_layout(rep_->table, LayoutOf(options)));
}

void TableBuilder::Add(const Slice& key, const Slice& value) {
  if (!rep_->status.ok()) return;
  if (rep_->closed) {
    rep_->status = Status::InvalidArgument("a key is added to a finished table");
  } else if (key.size() > UINT32_MAX || value.size() > UINT32_MAX) {
    rep_->status = Status::InvalidArgument("a table takes no key or value of 4 GiB");
  } else if (rep_->entries > 0 && rep_->comparator->Compare(key, rep_->last) <= 0) {
    rep_->status = Status::InvalidArgument("a key is not after the one before it", key);
  } else {
    rep_->last.assign(key.data(), key.size());
    rep_->entries++;
    rep_->status =
        StatusOf(lodestore_leveldb_table_add(rep_->table, BytesOf(key), BytesOf(value)));
    rep_->WriteBlock();
  }
}

void TableBuilder::Flush() {
  if (!rep_->status.ok() || rep_->closed) return;
  rep_->status = StatusOf(lodestore_leveldb_table_end_block(rep_->table));
  rep_->WriteBlock();
}

Status TableBuilder::status() const { return rep_->status; }

Status TableBuilder::Finish() {
  Flush();
  if (rep_->closed) return rep_->status;
  rep_->closed = true;
  if (rep_->status.ok()) {
    rep_->status = StatusOf(lodestore_leveldb_table_finish(rep_->table));
    rep_->Write();
  }
  return rep_->status;
}

void TableBuilder::Abandon() { rep_->closed = true; }
uint64_t TableBuilder::NumEntries() const { return rep_->entries; }
uint64_t TableBuilder::FileSize() const { return rep_->bytes; }

}  // namespace leveldb
