// NewLRUCache: a cache that works as LevelDB's does for whoever uses it himself,
// and stands for one of the engine's where it is given to a database.

#include "leveldb/cache.h"

#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include "internal.h"

namespace leveldb {

Cache::~Cache() = default;

namespace {

class LruCache : public Cache {
 public:
  explicit LruCache(size_t capacity) : capacity_(capacity) { OwnObjects::Add(this); }

  ~LruCache() override {
    OwnObjects::Remove(this);
    for (Entry* entry : order_) Unref(entry);
    lodestore_cache_free(engine_);
  }

  Handle* Insert(const Slice& key, void* value, size_t charge,
                 void (*deleter)(const Slice& key, void* value)) override {
    const std::lock_guard<std::mutex> guard(mutex_);
    Entry* entry = new Entry;
    entry->key = key.ToString();
    entry->value = value;
    entry->charge = charge;
    entry->deleter = deleter;
    entry->references = 1;
    Remove(entry->key);
    if (capacity_ > 0) {
      entry->references++;
      entry->place = order_.insert(order_.end(), entry);
      entries_[entry->key] = entry;
      used_ += charge;
      Shrink(capacity_);
    }
    return entry;
  }

  Handle* Lookup(const Slice& key) override {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = entries_.find(key.ToString());
    if (found == entries_.end()) return nullptr;
    Entry* entry = found->second;
    entry->references++;
    order_.splice(order_.end(), order_, entry->place);
    return entry;
  }

  void Release(Handle* handle) override {
    const std::lock_guard<std::mutex> guard(mutex_);
    Unref(static_cast<Entry*>(handle));
  }

  void* Value(Handle* handle) override { return static_cast<Entry*>(handle)->value; }

  void Erase(const Slice& key) override {
    const std::lock_guard<std::mutex> guard(mutex_);
    Remove(key.ToString());
  }

  uint64_t NewId() override {
    const std::lock_guard<std::mutex> guard(mutex_);
    return ++last_id_;
  }

  void Prune() override {
    const std::lock_guard<std::mutex> guard(mutex_);
    Shrink(0);
  }

  size_t TotalCharge() const override {
    const std::lock_guard<std::mutex> guard(mutex_);
    return used_ + lodestore_cache_used_bytes(engine_);
  }

  const lodestore_cache* engine() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (engine_ == nullptr) engine_ = lodestore_cache_create(capacity_);
    return engine_;
  }

 private:
  struct Entry : Handle {
    std::string key;
    void* value;
    size_t charge;
    void (*deleter)(const Slice& key, void* value);
    size_t references;
    std::list<Entry*>::iterator place;
  };

  void Unref(Entry* entry) {
    if (--entry->references > 0) return;
    entry->deleter(entry->key, entry->value);
    delete entry;
  }

  void Remove(const std::string& key) {
    const auto found = entries_.find(key);
    if (found != entries_.end()) Forget(found->second);
  }

  void Forget(Entry* entry) {
    used_ -= entry->charge;
    order_.erase(entry->place);
    entries_.erase(entry->key);
    Unref(entry);
  }

  // Forgets what nobody uses, the least recently used first.
  void Shrink(size_t capacity) {
    for (auto at = order_.begin(); used_ > capacity && at != order_.end();) {
      Entry* entry = *at++;
      if (entry->references == 1) Forget(entry);
    }
  }

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::list<Entry*> order_;
  std::unordered_map<std::string, Entry*> entries_;
  size_t used_ = 0;
  uint64_t last_id_ = 0;
  mutable lodestore_cache* engine_ = nullptr;
};

}  // namespace

Cache* NewLRUCache(size_t capacity) { return new LruCache(capacity); }

const lodestore_cache* EngineCacheOf(const Cache* cache) {
  if (cache == nullptr || !OwnObjects::Has(cache)) return nullptr;
  return static_cast<const LruCache*>(cache)->engine();
}

}  // namespace leveldb
