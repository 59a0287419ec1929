// NewMemEnv: an environment whose files are in memory.

#include "leveldb/helpers/memenv.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "leveldb/env.h"
#include "leveldb/slice.h"

namespace leveldb {

namespace {

// What a file holds; it lasts while it has a name or is open.
class Content {
 public:
  uint64_t size() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    return bytes_.size();
  }

  void Truncate() {
    const std::lock_guard<std::mutex> guard(mutex_);
    bytes_.clear();
  }

  void Append(const Slice& data) {
    const std::lock_guard<std::mutex> guard(mutex_);
    bytes_.append(data.data(), data.size());
  }

  Status Read(uint64_t offset, size_t n, Slice* result, char* scratch) const {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (offset > bytes_.size()) return Status::IOError("Offset greater than file size.");
    n = std::min(n, bytes_.size() - static_cast<size_t>(offset));
    if (n > 0) std::memcpy(scratch, bytes_.data() + offset, n);
    *result = Slice(scratch, n);
    return Status::OK();
  }

 private:
  mutable std::mutex mutex_;
  std::string bytes_;
};

using SharedContent = std::shared_ptr<Content>;

class MemSequentialFile : public SequentialFile {
 public:
  explicit MemSequentialFile(SharedContent content) : content_(std::move(content)) {}

  Status Read(size_t n, Slice* result, char* scratch) override {
    const Status status = content_->Read(at_, n, result, scratch);
    if (status.ok()) at_ += result->size();
    return status;
  }

  Status Skip(uint64_t n) override {
    const uint64_t size = content_->size();
    if (at_ > size) return Status::IOError("pos_ > file_->Size()");
    at_ += std::min(n, size - at_);
    return Status::OK();
  }

 private:
  const SharedContent content_;
  uint64_t at_ = 0;
};

class MemRandomAccessFile : public RandomAccessFile {
 public:
  explicit MemRandomAccessFile(SharedContent content) : content_(std::move(content)) {}
  Status Read(uint64_t offset, size_t n, Slice* result, char* scratch) const override {
    return content_->Read(offset, n, result, scratch);
  }

 private:
  const SharedContent content_;
};

class MemWritableFile : public WritableFile {
 public:
  explicit MemWritableFile(SharedContent content) : content_(std::move(content)) {}
  Status Append(const Slice& data) override {
    content_->Append(data);
    return Status::OK();
  }
  Status Close() override { return Status::OK(); }
  Status Flush() override { return Status::OK(); }
  Status Sync() override { return Status::OK(); }

 private:
  const SharedContent content_;
};

class SilentLogger : public Logger {
 public:
  void Logv(const char*, std::va_list) override {}
};

Status NotThere(const std::string& fname) { return Status::IOError(fname, "File not found"); }

class MemEnv : public EnvWrapper {
 public:
  explicit MemEnv(Env* base) : EnvWrapper(base) {}

  Status NewSequentialFile(const std::string& fname, SequentialFile** result) override {
    return Open<MemSequentialFile>(fname, result);
  }
  Status NewRandomAccessFile(const std::string& fname, RandomAccessFile** result) override {
    return Open<MemRandomAccessFile>(fname, result);
  }

  Status NewWritableFile(const std::string& fname, WritableFile** result) override {
    const SharedContent content = FindOrCreate(fname);
    content->Truncate();
    *result = new MemWritableFile(content);
    return Status::OK();
  }

  Status NewAppendableFile(const std::string& fname, WritableFile** result) override {
    *result = new MemWritableFile(FindOrCreate(fname));
    return Status::OK();
  }

  bool FileExists(const std::string& fname) override { return Find(fname) != nullptr; }

  // Of all depths: there are no directories, only names.
  Status GetChildren(const std::string& dir, std::vector<std::string>* result) override {
    const std::lock_guard<std::mutex> guard(mutex_);
    result->clear();
    const std::string prefix = dir + "/";
    for (auto at = files_.lower_bound(prefix); at != files_.end(); ++at) {
      if (at->first.compare(0, prefix.size(), prefix) != 0) break;
      result->push_back(at->first.substr(prefix.size()));
    }
    return Status::OK();
  }

  Status RemoveFile(const std::string& fname) override {
    const std::lock_guard<std::mutex> guard(mutex_);
    return files_.erase(fname) > 0 ? Status::OK() : NotThere(fname);
  }

  Status CreateDir(const std::string&) override { return Status::OK(); }
  Status RemoveDir(const std::string&) override { return Status::OK(); }

  Status GetFileSize(const std::string& fname, uint64_t* size) override {
    const SharedContent content = Find(fname);
    if (content == nullptr) return NotThere(fname);
    *size = content->size();
    return Status::OK();
  }

  Status RenameFile(const std::string& src, const std::string& target) override {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = files_.find(src);
    if (found == files_.end()) return NotThere(src);
    const SharedContent content = found->second;
    files_.erase(found);
    files_[target] = content;
    return Status::OK();
  }

  // Nobody is kept out, as with LevelDB's.
  Status LockFile(const std::string&, FileLock** lock) override {
    *lock = new FileLock;
    return Status::OK();
  }
  Status UnlockFile(FileLock* lock) override {
    delete lock;
    return Status::OK();
  }

  Status GetTestDirectory(std::string* path) override {
    *path = "/test";
    return Status::OK();
  }

  Status NewLogger(const std::string&, Logger** result) override {
    *result = new SilentLogger;
    return Status::OK();
  }

 private:
  SharedContent Find(const std::string& fname) {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = files_.find(fname);
    return found == files_.end() ? nullptr : found->second;
  }

  SharedContent FindOrCreate(const std::string& fname) {
    const std::lock_guard<std::mutex> guard(mutex_);
    SharedContent& content = files_[fname];
    if (content == nullptr) content = std::make_shared<Content>();
    return content;
  }

  template <typename File, typename Interface>
  Status Open(const std::string& fname, Interface** result) {
    const SharedContent content = Find(fname);
    *result = content == nullptr ? nullptr : new File(content);
    return content == nullptr ? NotThere(fname) : Status::OK();
  }

  std::mutex mutex_;
  std::map<std::string, SharedContent> files_;
};

}  // namespace

Env* NewMemEnv(Env* base_env) { return new MemEnv(base_env); }

}  // namespace leveldb
