// The default environment, for programs that use it themselves or wrap it: the engine
// has its own way to files.

#include "leveldb/env.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "internal.h"
#include "leveldb/slice.h"

namespace leveldb {

Env::Env() = default;
Env::~Env() = default;
SequentialFile::~SequentialFile() = default;
RandomAccessFile::~RandomAccessFile() = default;
WritableFile::~WritableFile() = default;
Logger::~Logger() = default;
FileLock::~FileLock() = default;
EnvWrapper::~EnvWrapper() = default;

Status Env::NewAppendableFile(const std::string& fname, WritableFile**) {
  return Status::NotSupported("NewAppendableFile", fname);
}
Status Env::RemoveFile(const std::string& fname) { return DeleteFile(fname); }
Status Env::DeleteFile(const std::string& fname) { return RemoveFile(fname); }
Status Env::RemoveDir(const std::string& dirname) { return DeleteDir(dirname); }
Status Env::DeleteDir(const std::string& dirname) { return RemoveDir(dirname); }

void Log(Logger* info_log, const char* format, ...) {
  if (info_log == nullptr) return;
  std::va_list arguments;
  va_start(arguments, format);
  info_log->Logv(format, arguments);
  va_end(arguments);
}

namespace {

Status Failure(const std::string& name, int error) {
  return error == ENOENT ? Status::NotFound(name, std::strerror(error))
                         : Status::IOError(name, std::strerror(error));
}

// Closes what it holds.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  int take() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// Names survive power loss then. Who reaches these files through an environment has
// no call for that: it happens when a file is first synced, and when it gets a name.
Status SyncDirectoryOf(const std::string& name) {
  const size_t slash = name.rfind('/');
  std::string directory = ".";
  if (slash != std::string::npos) directory = slash == 0 ? "/" : name.substr(0, slash);
  const Descriptor file(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool synced = file.get() >= 0 && ::fsync(file.get()) == 0;
  return synced ? Status::OK() : Failure(directory, errno);
}

class PosixSequentialFile : public SequentialFile {
 public:
  PosixSequentialFile(std::string name, int number) : name_(std::move(name)), file_(number) {}

  Status Read(size_t n, Slice* result, char* scratch) override {
    ssize_t count;
    do {
      count = ::read(file_.get(), scratch, n);
    } while (count < 0 && errno == EINTR);
    if (count < 0) return Failure(name_, errno);
    *result = Slice(scratch, static_cast<size_t>(count));
    return Status::OK();
  }

  Status Skip(uint64_t n) override {
    const bool moved = ::lseek(file_.get(), static_cast<off_t>(n), SEEK_CUR) >= 0;
    return moved ? Status::OK() : Failure(name_, errno);
  }

 private:
  const std::string name_;
  const Descriptor file_;
};

class PosixRandomAccessFile : public RandomAccessFile {
 public:
  PosixRandomAccessFile(std::string name, int number) : name_(std::move(name)), file_(number) {}

  Status Read(uint64_t offset, size_t n, Slice* result, char* scratch) const override {
    const ssize_t count = ::pread(file_.get(), scratch, n, static_cast<off_t>(offset));
    *result = Slice(scratch, count < 0 ? 0 : static_cast<size_t>(count));
    return count < 0 ? Failure(name_, errno) : Status::OK();
  }

 private:
  const std::string name_;
  const Descriptor file_;
};

class PosixWritableFile : public WritableFile {
 public:
  PosixWritableFile(std::string name, int number) : name_(std::move(name)), file_(number) {}
  ~PosixWritableFile() override { Close(); }

  Status Append(const Slice& data) override {
    buffer_.append(data.data(), data.size());
    return buffer_.size() < kBufferBytes ? Status::OK() : Flush();
  }

  Status Flush() override {
    const char* at = buffer_.data();
    for (size_t left = buffer_.size(); left > 0;) {
      const ssize_t count = ::write(file_.get(), at, left);
      if (count < 0) {
        if (errno == EINTR) continue;
        // How much of it is there is not known: it must not be written again.
        buffer_.clear();
        return Failure(name_, errno);
      }
      at += count;
      left -= static_cast<size_t>(count);
    }
    buffer_.clear();
    return Status::OK();
  }

  Status Sync() override {
    Status status = Flush();
    if (status.ok() && ::fdatasync(file_.get()) != 0) status = Failure(name_, errno);
    if (status.ok() && !has_durable_name_) {
      status = SyncDirectoryOf(name_);
      has_durable_name_ = status.ok();
    }
    return status;
  }

  Status Close() override {
    if (file_.get() < 0) return Status::OK();
    Status status = Flush();
    if (::close(file_.take()) != 0 && status.ok()) status = Failure(name_, errno);
    return status;
  }

 private:
  static const size_t kBufferBytes = 64 << 10;
  const std::string name_;
  Descriptor file_;
  std::string buffer_;
  bool has_durable_name_ = false;
};

class PosixFileLock : public FileLock {
 public:
  PosixFileLock(std::string name, int number) : name(std::move(name)), file(number) {}
  const std::string name;
  const Descriptor file;
};

class PosixLogger : public Logger {
 public:
  explicit PosixLogger(std::FILE* file) : file_(file) {}
  ~PosixLogger() override { std::fclose(file_); }

  void Logv(const char* format, std::va_list arguments) override {
    timeval now;
    ::gettimeofday(&now, nullptr);
    std::tm time;
    ::localtime_r(&now.tv_sec, &time);
    char head[64], line[4096];
    std::snprintf(head, sizeof head, "%04d/%02d/%02d-%02d:%02d:%02d.%06d ", time.tm_year + 1900,
                  time.tm_mon + 1, time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec,
                  static_cast<int>(now.tv_usec));
    std::vsnprintf(line, sizeof line, format, arguments);
    const size_t length = std::strlen(line);
    const bool ends = length > 0 && line[length - 1] == '\n';
    std::fprintf(file_, "%s%s%s", head, line, ends ? "" : "\n");
    std::fflush(file_);
  }

 private:
  std::FILE* const file_;
};

class PosixEnv : public Env {
 public:
  Status NewSequentialFile(const std::string& fname, SequentialFile** result) override {
    return Open<PosixSequentialFile>(fname, O_RDONLY, result);
  }
  Status NewRandomAccessFile(const std::string& fname, RandomAccessFile** result) override {
    return Open<PosixRandomAccessFile>(fname, O_RDONLY, result);
  }
  Status NewWritableFile(const std::string& fname, WritableFile** result) override {
    return Open<PosixWritableFile>(fname, O_WRONLY | O_CREAT | O_TRUNC, result);
  }
  Status NewAppendableFile(const std::string& fname, WritableFile** result) override {
    return Open<PosixWritableFile>(fname, O_WRONLY | O_CREAT | O_APPEND, result);
  }
  bool FileExists(const std::string& fname) override { return ::access(fname.c_str(), F_OK) == 0; }

  Status GetChildren(const std::string& dir, std::vector<std::string>* result) override {
    result->clear();
    DIR* directory = ::opendir(dir.c_str());
    if (directory == nullptr) return Failure(dir, errno);
    while (const dirent* entry = ::readdir(directory)) result->emplace_back(entry->d_name);
    ::closedir(directory);
    return Status::OK();
  }

  Status RemoveFile(const std::string& fname) override { return Done(::unlink(fname.c_str()), fname); }
  Status CreateDir(const std::string& dir) override {
    const Status status = Done(::mkdir(dir.c_str(), 0755), dir);
    return status.ok() ? SyncDirectoryOf(dir) : status;
  }
  Status RemoveDir(const std::string& dir) override { return Done(::rmdir(dir.c_str()), dir); }
  Status RenameFile(const std::string& src, const std::string& target) override {
    const Status status = Done(std::rename(src.c_str(), target.c_str()), src);
    return status.ok() ? SyncDirectoryOf(target) : status;
  }

  Status GetFileSize(const std::string& fname, uint64_t* size) override {
    struct stat found;
    const int outcome = ::stat(fname.c_str(), &found);
    *size = outcome == 0 ? static_cast<uint64_t>(found.st_size) : 0;
    return Done(outcome, fname);
  }

  Status LockFile(const std::string& fname, FileLock** lock) override {
    *lock = nullptr;
    const std::lock_guard<std::mutex> guard(mutex_);
    // Before it is opened: closing it again would end the lock that this process has.
    if (locked_.count(fname) > 0) return AlreadyHeld(fname);
    Descriptor file(::open(fname.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (file.get() < 0) return Failure(fname, errno);
    if (SetLock(file.get(), F_WRLCK) != 0) return Failure("lock " + fname, errno);
    locked_.insert(fname);
    *lock = new PosixFileLock(fname, file.take());
    return Status::OK();
  }

  Status UnlockFile(FileLock* lock) override {
    PosixFileLock* held = static_cast<PosixFileLock*>(lock);
    const std::lock_guard<std::mutex> guard(mutex_);
    const int outcome = SetLock(held->file.get(), F_UNLCK);
    const Status status = Done(outcome, "unlock " + held->name);
    locked_.erase(held->name);
    delete held;
    return status;
  }

  // For who locks the file in another way.
  Status Reserve(const std::string& fname) {
    const std::lock_guard<std::mutex> guard(mutex_);
    return locked_.insert(fname).second ? Status::OK() : AlreadyHeld(fname);
  }
  void Release(const std::string& fname) {
    const std::lock_guard<std::mutex> guard(mutex_);
    locked_.erase(fname);
  }

  void Schedule(void (*function)(void* arg), void* arg) override {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (!has_worker_) {
      has_worker_ = true;
      std::thread([this] { Work(); }).detach();
    }
    work_.emplace_back(function, arg);
    arrived_.notify_one();
  }

  void StartThread(void (*function)(void* arg), void* arg) override {
    std::thread(function, arg).detach();
  }

  Status GetTestDirectory(std::string* path) override {
    const char* given = std::getenv("TEST_TMPDIR");
    *path = given != nullptr && *given != '\0'
                ? given
                : "/tmp/leveldbtest-" + std::to_string(static_cast<int>(::geteuid()));
    ::mkdir(path->c_str(), 0755);
    return Status::OK();
  }

  Status NewLogger(const std::string& fname, Logger** result) override {
    std::FILE* file = std::fopen(fname.c_str(), "ae");
    *result = file == nullptr ? nullptr : new PosixLogger(file);
    return file == nullptr ? Failure(fname, errno) : Status::OK();
  }

  uint64_t NowMicros() override {
    timeval now;
    ::gettimeofday(&now, nullptr);
    return static_cast<uint64_t>(now.tv_sec) * 1000000 + static_cast<uint64_t>(now.tv_usec);
  }

  void SleepForMicroseconds(int micros) override {
    std::this_thread::sleep_for(std::chrono::microseconds(micros));
  }

 private:
  template <typename File, typename Interface>
  static Status Open(const std::string& name, int flags, Interface** result) {
    const int number = ::open(name.c_str(), flags | O_CLOEXEC, 0644);
    *result = number < 0 ? nullptr : new File(name, number);
    return number < 0 ? Failure(name, errno) : Status::OK();
  }

  static Status Done(int outcome, const std::string& name) {
    return outcome == 0 ? Status::OK() : Failure(name, errno);
  }

  static Status AlreadyHeld(const std::string& fname) {
    return Status::IOError("lock " + fname, "already held by process");
  }

  static int SetLock(int number, short type) {
    struct flock lock;
    std::memset(&lock, 0, sizeof lock);
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    return ::fcntl(number, F_SETLK, &lock);
  }

  void Work() {
    for (;;) {
      std::unique_lock<std::mutex> guard(mutex_);
      arrived_.wait(guard, [this] { return !work_.empty(); });
      const auto next = work_.front();
      work_.pop_front();
      guard.unlock();
      next.first(next.second);
    }
  }

  std::mutex mutex_;
  std::set<std::string> locked_;
  std::condition_variable arrived_;
  std::deque<std::pair<void (*)(void*), void*>> work_;
  bool has_worker_ = false;
};

PosixEnv* TheEnv() {
  // Never destroyed: its thread may be at work when the program ends.
  static PosixEnv* const env = new PosixEnv;
  return env;
}

Status Write(Env* env, const Slice& data, const std::string& fname) {
  WritableFile* file = nullptr;
  Status status = env->NewWritableFile(fname, &file);
  if (!status.ok()) return status;
  status = file->Append(data);
  if (status.ok()) status = file->Close();
  delete file;
  if (!status.ok()) env->RemoveFile(fname);
  return status;
}

}  // namespace

Env* Env::Default() { return TheEnv(); }

EngineLock::EngineLock(const std::string& dbname, Env* env) {
  if (IsCallers(env)) return;
  const std::string name = dbname + "/LOCK";
  status_ = TheEnv()->Reserve(name);
  if (status_.ok()) name_ = name;
}

EngineLock::~EngineLock() {
  if (!name_.empty()) TheEnv()->Release(name_);
}

Status WriteStringToFile(Env* env, const Slice& data, const std::string& fname) {
  return Write(env, data, fname);
}

Status ReadFileToString(Env* env, const std::string& fname, std::string* data) {
  data->clear();
  SequentialFile* file = nullptr;
  Status status = env->NewSequentialFile(fname, &file);
  if (!status.ok()) return status;
  std::string scratch(8192, '\0');
  for (;;) {
    Slice part;
    status = file->Read(scratch.size(), &part, &scratch[0]);
    if (!status.ok() || part.empty()) break;
    data->append(part.data(), part.size());
  }
  delete file;
  return status;
}

}  // namespace leveldb
