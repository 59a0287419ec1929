// Status, comparators, iterators, batches: what needs no database.

#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>

#include "leveldb/comparator.h"
#include "leveldb/filter_policy.h"
#include "leveldb/iterator.h"
#include "leveldb/slice.h"
#include "leveldb/status.h"
#include "leveldb/write_batch.h"
#include "internal.h"

namespace leveldb {

// ---- Objects of our own

namespace {

struct Registry {
  std::mutex mutex;
  std::set<const void*> objects;
};

Registry& TheRegistry() {
  // Never destroyed: caches may be deleted by destructors that run later.
  static Registry* const registry = new Registry;
  return *registry;
}

}  // namespace

void OwnObjects::Add(const void* object) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> guard(registry.mutex);
  registry.objects.insert(object);
}

void OwnObjects::Remove(const void* object) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> guard(registry.mutex);
  registry.objects.erase(object);
}

bool OwnObjects::Has(const void* object) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> guard(registry.mutex);
  return registry.objects.count(object) > 0;
}

// ---- Status

const char* Status::CopyState(const char* state) {
  uint32_t size;
  std::memcpy(&size, state, sizeof size);
  char* copy = new char[size + 5];
  std::memcpy(copy, state, size + 5);
  return copy;
}

Status::Status(Code code, const Slice& msg, const Slice& msg2) {
  const size_t extra = msg2.empty() ? 0 : 2 + msg2.size();
  const uint32_t size = static_cast<uint32_t>(msg.size() + extra);
  char* state = new char[size + 5];
  std::memcpy(state, &size, sizeof size);
  state[4] = static_cast<char>(code);
  std::memcpy(state + 5, msg.data(), msg.size());
  if (!msg2.empty()) {
    std::memcpy(state + 5 + msg.size(), ": ", 2);
    std::memcpy(state + 7 + msg.size(), msg2.data(), msg2.size());
  }
  state_ = state;
}

std::string Status::ToString() const {
  if (state_ == nullptr) return "OK";
  std::string text;
  switch (code()) {
    case kNotFound: text = "NotFound: "; break;
    case kCorruption: text = "Corruption: "; break;
    case kNotSupported: text = "Not implemented: "; break;
    case kInvalidArgument: text = "Invalid argument: "; break;
    case kIOError: text = "IO error: "; break;
    default: text = "Unknown code(" + std::to_string(static_cast<int>(code())) + "): ";
  }
  uint32_t size;
  std::memcpy(&size, state_, sizeof size);
  return text.append(state_ + 5, size);
}

// ---- Comparators

Comparator::~Comparator() = default;

namespace {

class Bytewise : public Comparator {
 public:
  int Compare(const Slice& a, const Slice& b) const override { return a.compare(b); }
  const char* Name() const override { return "leveldb.BytewiseComparator"; }

  void FindShortestSeparator(std::string* start, const Slice& limit) const override {
    size_t shared = 0;
    const size_t length = start->size() < limit.size() ? start->size() : limit.size();
    while (shared < length && (*start)[shared] == limit[shared]) shared++;
    if (shared == length) return;
    const unsigned char byte = static_cast<unsigned char>((*start)[shared]);
    if (byte < 0xff && byte + 1 < static_cast<unsigned char>(limit[shared])) {
      (*start)[shared] = static_cast<char>(byte + 1);
      start->resize(shared + 1);
    }
  }

  void FindShortSuccessor(std::string* key) const override {
    for (size_t i = 0; i < key->size(); i++) {
      const unsigned char byte = static_cast<unsigned char>((*key)[i]);
      if (byte != 0xff) {
        (*key)[i] = static_cast<char>(byte + 1);
        key->resize(i + 1);
        return;
      }
    }
  }
};

}  // namespace

const Comparator* BytewiseComparator() {
  // Never destroyed: databases may be closed by destructors that run later.
  static const Comparator* const comparator = new Bytewise;
  return comparator;
}

// ---- Iterators

Iterator::Iterator() {
  cleanup_head_.function = nullptr;
  cleanup_head_.next = nullptr;
}

Iterator::~Iterator() {
  if (cleanup_head_.IsEmpty()) return;
  cleanup_head_.Run();
  for (CleanupNode* node = cleanup_head_.next; node != nullptr;) {
    node->Run();
    CleanupNode* next = node->next;
    delete node;
    node = next;
  }
}

void Iterator::RegisterCleanup(CleanupFunction function, void* arg1, void* arg2) {
  CleanupNode* node = &cleanup_head_;
  if (!cleanup_head_.IsEmpty()) {
    node = new CleanupNode;
    node->next = cleanup_head_.next;
    cleanup_head_.next = node;
  }
  node->function = function;
  node->arg1 = arg1;
  node->arg2 = arg2;
}

namespace {

class NoEntries : public Iterator {
 public:
  explicit NoEntries(const Status& status) : status_(status) {}
  bool Valid() const override { return false; }
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(const Slice&) override {}
  void Next() override {}
  void Prev() override {}
  Slice key() const override { return Slice(); }
  Slice value() const override { return Slice(); }
  Status status() const override { return status_; }

 private:
  const Status status_;
};

}  // namespace

Iterator* NewEmptyIterator() { return new NoEntries(Status::OK()); }
Iterator* NewErrorIterator(const Status& status) { return new NoEntries(status); }

// ---- Batches

namespace {

const size_t kHeaderBytes = WriteBatchInternal::kHeaderBytes;
const char kDelete = 0;
const char kPut = 1;

uint32_t Count(const std::string& rep) {
  const unsigned char* at = reinterpret_cast<const unsigned char*>(rep.data()) + 8;
  return at[0] | at[1] << 8 | at[2] << 16 | static_cast<uint32_t>(at[3]) << 24;
}

void SetCount(std::string* rep, uint32_t count) {
  for (int i = 0; i < 4; i++) (*rep)[8 + i] = static_cast<char>(count >> (8 * i));
}

// Room for a record at once, where appending its parts would grow a new batch thrice.
void MakeRoom(std::string* rep, size_t bytes) {
  const size_t kind_and_lengths = 1 + 2 * 5;
  const size_t wanted = rep->size() + kind_and_lengths + bytes;
  if (wanted > rep->capacity()) rep->reserve(wanted);
}

void PutBytes(std::string* rep, const Slice& bytes) {
  uint32_t length = static_cast<uint32_t>(bytes.size());
  for (; length >= 0x80; length >>= 7) rep->push_back(static_cast<char>(length | 0x80));
  rep->push_back(static_cast<char>(length));
  rep->append(bytes.data(), bytes.size());
}

// Takes a length and so many bytes from the front of *input.
bool TakeBytes(Slice* input, Slice* bytes) {
  uint64_t length = 0;
  for (int shift = 0; shift <= 28; shift += 7) {
    if (input->empty()) return false;
    const unsigned char byte = static_cast<unsigned char>((*input)[0]);
    input->remove_prefix(1);
    length |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      if (length > input->size()) return false;
      *bytes = Slice(input->data(), static_cast<size_t>(length));
      input->remove_prefix(static_cast<size_t>(length));
      return true;
    }
  }
  return false;
}

}  // namespace

WriteBatch::Handler::~Handler() = default;
WriteBatch::WriteBatch() { Clear(); }
WriteBatch::~WriteBatch() = default;

void WriteBatch::Clear() {
  rep_.clear();
  rep_.resize(kHeaderBytes);
}

size_t WriteBatch::ApproximateSize() const { return rep_.size(); }

void WriteBatch::Put(const Slice& key, const Slice& value) {
  MakeRoom(&rep_, key.size() + value.size());
  SetCount(&rep_, Count(rep_) + 1);
  rep_.push_back(kPut);
  PutBytes(&rep_, key);
  PutBytes(&rep_, value);
}

void WriteBatch::Delete(const Slice& key) {
  SetCount(&rep_, Count(rep_) + 1);
  rep_.push_back(kDelete);
  PutBytes(&rep_, key);
}

void WriteBatch::Append(const WriteBatch& source) {
  SetCount(&rep_, Count(rep_) + Count(source.rep_));
  rep_.append(source.rep_, kHeaderBytes, std::string::npos);
}

Status WriteBatch::Iterate(Handler* handler) const {
  if (rep_.size() < kHeaderBytes) return Status::Corruption("malformed WriteBatch (too small)");
  Slice input(rep_.data() + kHeaderBytes, rep_.size() - kHeaderBytes);
  uint32_t found = 0;
  while (!input.empty()) {
    found++;
    const char kind = input[0];
    input.remove_prefix(1);
    Slice key, value;
    switch (kind) {
      case kPut:
        if (!TakeBytes(&input, &key) || !TakeBytes(&input, &value)) {
          return Status::Corruption("bad WriteBatch Put");
        }
        handler->Put(key, value);
        break;
      case kDelete:
        if (!TakeBytes(&input, &key)) return Status::Corruption("bad WriteBatch Delete");
        handler->Delete(key);
        break;
      default:
        return Status::Corruption("unknown WriteBatch tag");
    }
  }
  if (found != Count(rep_)) return Status::Corruption("WriteBatch has wrong count");
  return Status::OK();
}

WriteBatch WriteBatchInternal::Of(const Slice& record) {
  WriteBatch batch;
  batch.rep_.assign(record.data(), record.size());
  return batch;
}

uint64_t WriteBatchInternal::Sequence(const Slice& record) {
  uint64_t sequence = 0;
  for (int i = 7; i >= 0; i--) sequence = sequence << 8 | static_cast<unsigned char>(record[i]);
  return sequence;
}

// ---- Filters

FilterPolicy::~FilterPolicy() = default;

namespace {

uint32_t Hash(const Slice& bytes) {
  const uint32_t multiplier = 0xc6a4a793;
  const unsigned char* at = reinterpret_cast<const unsigned char*>(bytes.data());
  const unsigned char* end = at + bytes.size();
  uint32_t hash = 0xbc9f1d34 ^ static_cast<uint32_t>(bytes.size() * multiplier);
  for (; end - at >= 4; at += 4) {
    hash += at[0] | at[1] << 8 | at[2] << 16 | static_cast<uint32_t>(at[3]) << 24;
    hash *= multiplier;
    hash ^= hash >> 16;
  }
  if (at == end) return hash;
  uint32_t last = 0;
  for (int i = static_cast<int>(end - at) - 1; i >= 0; i--) last = last << 8 | at[i];
  hash = (hash + last) * multiplier;
  return hash ^ hash >> 24;
}

}  // namespace

const char* BloomFilter::Name() const { return "leveldb.BuiltinBloomFilter2"; }

void BloomFilter::CreateFilter(const Slice* keys, int n, std::string* dst) const {
  size_t probes = static_cast<size_t>(bits_per_key_ * 0.69);
  probes = probes < 1 ? 1 : probes > 30 ? 30 : probes;
  size_t bits = static_cast<size_t>(n) * static_cast<size_t>(bits_per_key_);
  const size_t bytes = ((bits < 64 ? 64 : bits) + 7) / 8;
  bits = bytes * 8;
  const size_t begin = dst->size();
  dst->resize(begin + bytes, 0);
  dst->push_back(static_cast<char>(probes));
  char* array = &(*dst)[begin];
  for (int i = 0; i < n; i++) {
    uint32_t hash = Hash(keys[i]);
    const uint32_t step = hash >> 17 | hash << 15;
    for (size_t j = 0; j < probes; j++, hash += step) {
      array[hash % bits / 8] |= static_cast<char>(1 << (hash % bits % 8));
    }
  }
}

bool BloomFilter::KeyMayMatch(const Slice& key, const Slice& filter) const {
  if (filter.size() < 2) return false;
  const size_t bits = (filter.size() - 1) * 8;
  const size_t probes = static_cast<unsigned char>(filter[filter.size() - 1]);
  if (probes > 30) return true;  // another encoding
  uint32_t hash = Hash(key);
  const uint32_t step = hash >> 17 | hash << 15;
  for (size_t j = 0; j < probes; j++, hash += step) {
    if ((filter[hash % bits / 8] & 1 << (hash % bits % 8)) == 0) return false;
  }
  return true;
}

int BloomBitsOf(const FilterPolicy* policy) {
  if (policy == nullptr || !OwnObjects::Has(policy)) return -1;
  return static_cast<const BloomFilter*>(policy)->bits_per_key();
}

const FilterPolicy* NewBloomFilterPolicy(int bits_per_key) {
  return new BloomFilter(bits_per_key < 0 ? 0 : bits_per_key);
}

}  // namespace leveldb
