// An environment of the caller's as the engine's file system: files that are only
// appended to, names, and a lock. The rest of it is not asked.
//
// engine -> lodestore_file_system -> here -> Env
//
// A failure goes back as a number and the status in words; StatusOfReason makes the
// caller's own status of these.

#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "internal.h"
#include "leveldb/env.h"

namespace leveldb {
namespace {

Env* EnvOf(void* context) { return static_cast<Env*>(context); }

int Answer(const Status& status, int code, lodestore_result* why) {
  if (status.ok()) return 0;
  const std::string text = status.ToString();
  lodestore_result_set(why, BytesOf(text));
  return code;
}

// What `work` came to. Nothing that the caller throws reaches the engine.
template <typename Work>
Status Caught(Work work) {
  try {
    return work();
  } catch (const std::exception& thrown) {
    return Status::IOError("the environment threw", thrown.what());
  } catch (...) {
    return Status::IOError("the environment threw something");
  }
}

template <typename Work>
int Done(lodestore_result* why, Work work) {
  return Answer(Caught(work), EIO, why);
}

// The same for what may not be there, which the engine goes by. Many environments
// have one kind of failure only, and LevelDB asks them so, too.
template <typename Work>
int Found(Env* env, const char* path, lodestore_result* why, Work work) {
  const Status status = Caught(work);
  if (status.ok()) return 0;
  bool is_there = !status.IsNotFound();
  if (is_there) {
    const Status asked = Caught([&] {
      is_there = env->FileExists(path);
      return Status::OK();
    });
    if (!asked.ok()) is_there = true;
  }
  return Answer(status, is_there ? EIO : ENOENT, why);
}

// ---- Files to read

struct Readable {
  std::unique_ptr<RandomAccessFile> file;
  std::string path;
  // As far as it is known: some environments fail where a read goes beyond.
  std::atomic<uint64_t> size{0};
};

int Open(void* context, const char* path, void** file, lodestore_result* why) {
  Env* const env = EnvOf(context);
  return Found(env, path, why, [&] {
    std::unique_ptr<Readable> readable(new Readable);
    readable->path = path;
    RandomAccessFile* opened = nullptr;
    const Status status = env->NewRandomAccessFile(path, &opened);
    if (status.ok()) {
      readable->file.reset(opened);
      *file = readable.release();
    }
    return status;
  });
}

int Read(void* context, void* file, uint64_t offset, void* buffer, size_t size, size_t* count,
         lodestore_result* why) {
  Readable* const readable = static_cast<Readable*>(file);
  return Done(why, [&] {
    uint64_t end = readable->size.load(std::memory_order_relaxed);
    if (offset + size > end) {
      const Status status = EnvOf(context)->GetFileSize(readable->path, &end);
      if (!status.ok()) return status;
      readable->size.store(end, std::memory_order_relaxed);
    }
    if (offset >= end) return Status::OK();
    const size_t wanted = end - offset < size ? static_cast<size_t>(end - offset) : size;
    char* const scratch = static_cast<char*>(buffer);
    Slice read;
    const Status status = readable->file->Read(offset, wanted, &read, scratch);
    if (!status.ok()) return status;
    if (read.size() > wanted) return Status::Corruption(readable->path, "reads give too much");
    // It may have the bytes elsewhere.
    if (read.size() > 0 && read.data() != scratch) std::memmove(scratch, read.data(), read.size());
    *count = read.size();
    return status;
  });
}

void CloseReadable(void*, void* file) {
  Caught([&] {
    delete static_cast<Readable*>(file);
    return Status::OK();
  });
}

// ---- Files to write

int Create(void* context, const char* path, void** file, lodestore_result* why) {
  return Done(why, [&] {
    WritableFile* created = nullptr;
    const Status status = EnvOf(context)->NewWritableFile(path, &created);
    *file = created;
    return status;
  });
}

// What is only in the environment's buffer would be lost with the process.
int Append(void*, void* file, lodestore_bytes bytes, lodestore_result* why) {
  return Done(why, [&] {
    WritableFile* const writable = static_cast<WritableFile*>(file);
    const Status status = writable->Append(SliceOf(bytes));
    return status.ok() ? writable->Flush() : status;
  });
}

int Sync(void*, void* file, lodestore_result* why) {
  return Done(why, [&] { return static_cast<WritableFile*>(file)->Sync(); });
}

int CloseWritable(void*, void* file, lodestore_result* why) {
  return Done(why, [&] {
    const std::unique_ptr<WritableFile> writable(static_cast<WritableFile*>(file));
    return writable->Close();
  });
}

// ---- Names

int Length(void* context, const char* path, uint64_t* bytes, lodestore_result* why) {
  Env* const env = EnvOf(context);
  return Found(env, path, why, [&] { return env->GetFileSize(path, bytes); });
}

int List(void* context, const char* path, lodestore_names* names, lodestore_result* why) {
  Env* const env = EnvOf(context);
  return Found(env, path, why, [&] {
    std::vector<std::string> children;
    const Status status = env->GetChildren(path, &children);
    if (!status.ok()) return status;
    for (const std::string& child : children) lodestore_names_add(names, child.c_str());
    return status;
  });
}

int Remove(void* context, const char* path, lodestore_result* why) {
  Env* const env = EnvOf(context);
  return Found(env, path, why, [&] { return env->RemoveFile(path); });
}

int Rename(void* context, const char* from, const char* to, lodestore_result* why) {
  return Done(why, [&] { return EnvOf(context)->RenameFile(from, to); });
}

// LevelDB passes over every failure here; so does this one if files can be listed.
int CreateDirectory(void* context, const char* path, lodestore_result* why) {
  Env* const env = EnvOf(context);
  return Found(env, path, why, [&] {
    const Status status = env->CreateDir(path);
    std::vector<std::string> children;
    return status.ok() || !env->GetChildren(path, &children).ok() ? status : Status::OK();
  });
}

int RemoveDirectory(void* context, const char* path, lodestore_result* why) {
  return Done(why, [&] { return EnvOf(context)->RemoveDir(path); });
}

// An environment has no such call: it sees to names itself, when it syncs a file or
// renames one.
int SyncDirectory(void*, const char*, lodestore_result*) { return 0; }

int Lock(void* context, const char* path, void** lock, lodestore_result* why) {
  return Done(why, [&] {
    FileLock* taken = nullptr;
    const Status status = EnvOf(context)->LockFile(path, &taken);
    *lock = taken;
    return status;
  });
}

void Unlock(void* context, void* lock) {
  Caught([&] { return EnvOf(context)->UnlockFile(static_cast<FileLock*>(lock)); });
}

}  // namespace

lodestore_file_system FileSystemOf(Env* env) {
  lodestore_file_system functions;
  std::memset(&functions, 0, sizeof functions);
  functions.size = sizeof functions;
  functions.context = env;
  functions.open = Open;
  functions.read = Read;
  functions.close_readable = CloseReadable;
  functions.create = Create;
  functions.append = Append;
  functions.sync = Sync;
  functions.close_writable = CloseWritable;
  functions.length = Length;
  functions.list = List;
  functions.remove = Remove;
  functions.rename = Rename;
  functions.create_directory = CreateDirectory;
  functions.remove_directory = RemoveDirectory;
  functions.sync_directory = SyncDirectory;
  functions.lock = Lock;
  functions.unlock = Unlock;
  return functions;
}

Status StatusOfReason(const char* reason) {
  const struct {
    const char* kind;
    Status (*make)(const Slice&, const Slice&);
  } kinds[] = {
      {"Corruption: ", Status::Corruption},
      {"Not implemented: ", Status::NotSupported},
      {"Invalid argument: ", Status::InvalidArgument},
      {"IO error: ", Status::IOError},
      // To a caller it would say that there is no such key.
      {"NotFound: ", Status::IOError},
  };
  for (const auto& each : kinds) {
    const size_t length = std::strlen(each.kind);
    if (std::strncmp(reason, each.kind, length) == 0) return each.make(reason + length, Slice());
  }
  return Status::IOError(reason);
}

}  // namespace leveldb
