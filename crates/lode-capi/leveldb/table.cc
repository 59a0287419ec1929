// Table: reads LevelDB's tables through the caller's file, in his order of keys.

#include "leveldb/table.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "format.h"
#include "internal.h"
#include "leveldb/comparator.h"
#include "leveldb/env.h"

namespace leveldb {

namespace {

using Extent = lodestore_leveldb_extent_of;

// A block, and what keeps it: the caller's cache, or nobody else.
class Block {
 public:
  Block() = default;
  explicit Block(lodestore_leveldb_block* block) : block_(block) {}
  Block(Cache* cache, Cache::Handle* handle)
      : block_(static_cast<lodestore_leveldb_block*>(cache->Value(handle))),
        cache_(cache),
        handle_(handle) {}
  Block(Block&& other) noexcept { *this = std::move(other); }
  Block& operator=(Block&& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(cache_, other.cache_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Block() {
    if (cache_ != nullptr) {
      cache_->Release(handle_);
    } else {
      lodestore_leveldb_block_free(block_);
    }
  }

  size_t count() const { return lodestore_leveldb_block_count(block_); }
  Slice key(size_t index) const { return SliceOf(lodestore_leveldb_block_key(block_, index)); }
  Slice value(size_t index) const { return SliceOf(lodestore_leveldb_block_value(block_, index)); }
  Status damage() const { return StatusOf(lodestore_leveldb_block_damage(block_)); }

  // The first entry that is not before `target`; count() if all are.
  size_t Find(const Comparator* comparator, const Slice& target) const {
    size_t low = 0, high = count();
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      if (comparator->Compare(key(middle), target) < 0) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

 private:
  lodestore_leveldb_block* block_ = nullptr;
  Cache* cache_ = nullptr;
  Cache::Handle* handle_ = nullptr;
};

void FreeCached(const Slice&, void* block) {
  lodestore_leveldb_block_free(static_cast<lodestore_leveldb_block*>(block));
}

class TableFile {
 public:
  TableFile(const Options& options, RandomAccessFile* file, uint64_t bytes)
      : comparator_(options.comparator),
        cache_(options.block_cache),
        cache_id_(cache_ == nullptr ? 0 : cache_->NewId()),
        file_(file),
        bytes_(bytes) {}

  Status Open(bool verify) {
    const size_t footer_bytes = LODESTORE_LEVELDB_FOOTER_BYTES;
    if (bytes_ < footer_bytes) return Status::Corruption("file is too short to be an sstable");
    char scratch[LODESTORE_LEVELDB_FOOTER_BYTES];
    Slice footer;
    Status status = file_->Read(bytes_ - footer_bytes, footer_bytes, &footer, scratch);
    if (!status.ok()) return status;
    Extent index;
    status = StatusOf(lodestore_leveldb_footer(BytesOf(footer), bytes_, &meta_index_, &index));
    if (!status.ok()) return status;
    lodestore_leveldb_block* block = nullptr;
    status = Load(index, verify, &block);
    index_ = Block(block);
    return status.ok() ? index_.damage() : status;
  }

  const Block& index() const { return index_; }
  const Comparator* comparator() const { return comparator_; }

  // The block that an entry of the index leads to.
  Status Read(const ReadOptions& options, size_t entry, Block* block) const {
    Extent place;
    Status status = Place(entry, &place);
    if (!status.ok()) return status;
    char name[16];
    std::memcpy(name, &cache_id_, 8);
    std::memcpy(name + 8, &place.offset, 8);
    const Slice key(name, sizeof name);
    Cache::Handle* handle = cache_ == nullptr ? nullptr : cache_->Lookup(key);
    if (handle == nullptr) {
      lodestore_leveldb_block* loaded = nullptr;
      status = Load(place, options.verify_checksums, &loaded);
      if (!status.ok()) return status;
      if (cache_ == nullptr || !options.fill_cache) {
        *block = Block(loaded);
        return status;
      }
      handle = cache_->Insert(key, loaded, lodestore_leveldb_block_memory(loaded), FreeCached);
    }
    *block = Block(cache_, handle);
    return status;
  }

  uint64_t OffsetOf(const Slice& key) const {
    Extent place;
    const size_t entry = index_.Find(comparator_, key);
    const bool found = entry < index_.count() && Place(entry, &place).ok();
    // Behind all blocks comes the meta index.
    return found ? place.offset : meta_index_.offset;
  }

 private:
  Status Place(size_t entry, Extent* place) const {
    const uint64_t end = bytes_ - LODESTORE_LEVELDB_FOOTER_BYTES;
    return StatusOf(lodestore_leveldb_extent(BytesOf(index_.value(entry)), end, place));
  }

  Status Load(const Extent& place, bool verify, lodestore_leveldb_block** block) const {
    const size_t bytes = static_cast<size_t>(place.bytes);
    const std::unique_ptr<char[]> scratch(new char[bytes]);
    Slice stored;
    const Status status = file_->Read(place.offset, bytes, &stored, scratch.get());
    if (!status.ok()) return status;
    if (stored.size() != bytes) return Status::Corruption("truncated block read");
    return StatusOf(lodestore_leveldb_block_open(BytesOf(stored), verify, block));
  }

  const Comparator* const comparator_;
  Cache* const cache_;
  const uint64_t cache_id_;
  RandomAccessFile* const file_;
  const uint64_t bytes_;
  Extent meta_index_;
  Block index_;
};

// Goes on behind blocks that cannot be read, and says so in its status.
class TableIterator : public Iterator {
 public:
  TableIterator(const TableFile* table, const ReadOptions& options)
      : table_(table), options_(options) {}

  bool Valid() const override { return entry_ < block_.count(); }

  void Seek(const Slice& target) override {
    Enter(table_->index().Find(table_->comparator(), target));
    entry_ = block_.Find(table_->comparator(), target);
    SkipForwards();
  }

  void SeekToFirst() override {
    Enter(0);
    entry_ = 0;
    SkipForwards();
  }

  void SeekToLast() override {
    // One behind the last, or before the first, has no entries.
    Enter(table_->index().count() - 1);
    entry_ = block_.count() - 1;
    SkipBackwards();
  }

  void Next() override {
    entry_++;
    SkipForwards();
  }

  void Prev() override {
    entry_--;
    SkipBackwards();
  }

  Slice key() const override { return block_.key(entry_); }
  Slice value() const override { return block_.value(entry_); }
  Status status() const override { return status_; }

 private:
  // Numbers of blocks and entries wrap around below 0, and are then none.
  bool IsInside() const { return number_ < table_->index().count(); }

  // Takes the block of that number, or one without entries if there is none.
  void Enter(size_t number) {
    if (number == number_) return;
    number_ = number;
    block_ = Block();
    if (!IsInside()) return;
    const Status read = table_->Read(options_, number, &block_);
    Keep(read.ok() ? block_.damage() : read);
  }

  void SkipForwards() {
    while (!Valid() && IsInside()) {
      Enter(number_ + 1);
      entry_ = 0;
    }
  }

  void SkipBackwards() {
    while (!Valid() && IsInside()) {
      Enter(number_ - 1);
      entry_ = block_.count() - 1;
    }
  }

  void Keep(const Status& status) {
    if (status_.ok()) status_ = status;
  }

  const TableFile* const table_;
  const ReadOptions options_;
  Status status_;
  size_t number_ = SIZE_MAX;  // of the block, in the index
  Block block_;
  size_t entry_ = 0;
};

}  // namespace

struct Table::Rep {
  TableFile file;
};

Status Table::Open(const Options& options, RandomAccessFile* file, uint64_t size, Table** table) {
  *table = nullptr;
  std::unique_ptr<Rep> rep(new Rep{TableFile(options, file, size)});
  const Status status = rep->file.Open(options.paranoid_checks);
  if (status.ok()) *table = new Table(rep.release());
  return status;
}

Table::~Table() { delete rep_; }

Iterator* Table::NewIterator(const ReadOptions& options) const {
  return new TableIterator(&rep_->file, options);
}

uint64_t Table::ApproximateOffsetOf(const Slice& key) const { return rep_->file.OffsetOf(key); }

}  // namespace leveldb
