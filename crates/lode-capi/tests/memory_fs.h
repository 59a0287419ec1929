/* A file system in memory, as a user of lodestore.h may write one: for promises.c.
 *
 * It is one list of names. A name stands for a file, which lives as long as it has a
 * name or somebody has it open. Everything happens under one lock. */

#include <errno.h>
#include <pthread.h>

#include "lodestore.h"

typedef struct {
  char* bytes;
  size_t size, capacity;
  int references; /* names and openers */
} memory_file;

typedef struct memory_name {
  struct memory_name* next;
  char* path;
  memory_file* file; /* NULL: a directory */
} memory_name;

typedef struct {
  memory_file* file;
  size_t position;
} memory_writer;

typedef struct {
  pthread_mutex_t mutex;
  memory_name* names;
  int open;      /* files and locks that somebody has */
  int locks;     /* locks among them */
  int destroyed; /* how often the engine let go of all */
  int calls;     /* that wrote something */
  int fail_from; /* the call that fails, and all after it; 0: none does */
  int fail_with; /* a number of errno.h */
  const char* fail_text;
} memory_fs;

static int memory_done(memory_fs* fs, int code) {
  pthread_mutex_unlock(&fs->mutex);
  return code;
}

static memory_fs* memory_enter(void* context) {
  memory_fs* fs = (memory_fs*)context;
  pthread_mutex_lock(&fs->mutex);
  return fs;
}

/* Whether a call that writes fails, and with what. */
static int memory_fault(memory_fs* fs, lodestore_result* why) {
  lodestore_bytes text;
  fs->calls++;
  if (fs->fail_from == 0 || fs->calls < fs->fail_from) return 0;
  if (fs->fail_text != NULL) {
    text.data = fs->fail_text;
    text.size = strlen(fs->fail_text);
    lodestore_result_set(why, text);
  }
  return fs->fail_with;
}

static memory_name** memory_find(memory_fs* fs, const char* path) {
  memory_name** at = &fs->names;
  while (*at != NULL && strcmp((*at)->path, path) != 0) at = &(*at)->next;
  return at;
}

static void memory_release(memory_file* file) {
  if (file == NULL || --file->references > 0) return;
  free(file->bytes);
  free(file);
}

static void memory_unlink(memory_name** at) {
  memory_name* name = *at;
  *at = name->next;
  memory_release(name->file);
  free(name->path);
  free(name);
}

static void memory_link(memory_fs* fs, const char* path, memory_file* file) {
  memory_name* name = (memory_name*)malloc(sizeof *name);
  name->path = (char*)malloc(strlen(path) + 1);
  strcpy(name->path, path);
  name->file = file;
  name->next = fs->names;
  fs->names = name;
  if (file != NULL) file->references++;
}

/* Whether the directory of `path` is there; the top one always is. */
static int memory_has_parent(memory_fs* fs, const char* path) {
  const char* slash = strrchr(path, '/');
  memory_name* name;
  if (slash == NULL || slash == path) return 1;
  for (name = fs->names; name != NULL; name = name->next) {
    if (strlen(name->path) == (size_t)(slash - path) &&
        strncmp(name->path, path, (size_t)(slash - path)) == 0) {
      return name->file == NULL;
    }
  }
  return 0;
}

/* The name behind the directory, or NULL if `path` is elsewhere. */
static const char* memory_child(const char* directory, const char* path) {
  const size_t length = strlen(directory);
  if (strcmp(directory, ".") == 0) return strchr(path, '/') == NULL ? path : NULL;
  if (strncmp(directory, path, length) != 0 || path[length] != '/') return NULL;
  return strchr(path + length + 1, '/') == NULL ? path + length + 1 : NULL;
}

static int memory_open(void* context, const char* path, void** file, lodestore_result* why) {
  memory_fs* fs = memory_enter(context);
  memory_name* name = *memory_find(fs, path);
  (void)why;
  if (name == NULL) return memory_done(fs, ENOENT);
  if (name->file == NULL) return memory_done(fs, EISDIR);
  name->file->references++;
  fs->open++;
  *file = name->file;
  return memory_done(fs, 0);
}

static int memory_read(void* context, void* opened, uint64_t offset, void* buffer, size_t size,
                       size_t* count, lodestore_result* why) {
  memory_fs* fs = memory_enter(context);
  memory_file* file = (memory_file*)opened;
  (void)why;
  if (offset < file->size) {
    *count = file->size - (size_t)offset < size ? file->size - (size_t)offset : size;
    memcpy(buffer, file->bytes + offset, *count);
  }
  return memory_done(fs, 0);
}

static void memory_close_readable(void* context, void* opened) {
  memory_fs* fs = memory_enter(context);
  memory_release((memory_file*)opened);
  fs->open--;
  memory_done(fs, 0);
}

static void* memory_writer_of(memory_fs* fs, memory_file* file) {
  memory_writer* writer = (memory_writer*)malloc(sizeof *writer);
  writer->file = file;
  writer->position = 0;
  file->references++;
  fs->open++;
  return writer;
}

static int memory_create(void* context, const char* path, void** file, lodestore_result* why) {
  memory_fs* fs = memory_enter(context);
  const int fault = memory_fault(fs, why);
  memory_name* name = *memory_find(fs, path);
  if (fault != 0) return memory_done(fs, fault);
  if (!memory_has_parent(fs, path)) return memory_done(fs, ENOENT);
  if (name == NULL) {
    memory_link(fs, path, (memory_file*)calloc(1, sizeof(memory_file)));
    name = fs->names;
  }
  if (name->file == NULL) return memory_done(fs, EISDIR);
  name->file->size = 0;
  *file = memory_writer_of(fs, name->file);
  return memory_done(fs, 0);
}

static int memory_overwrite(void* context, const char* path, void** file, lodestore_result* why) {
  memory_fs* fs = memory_enter(context);
  memory_name* name = *memory_find(fs, path);
  (void)why;
  if (name == NULL || name->file == NULL) return memory_done(fs, ENOENT);
  *file = memory_writer_of(fs, name->file);
  return memory_done(fs, 0);
}

static int memory_append(void* context, void* opened, lodestore_bytes bytes,
                         lodestore_result* why) {
  memory_fs* fs = memory_enter(context);
  memory_writer* writer = (memory_writer*)opened;
  memory_file* file = writer->file;
  const size_t end = writer->position + bytes.size;
  const int fault = memory_fault(fs, why);
  if (fault != 0) return memory_done(fs, fault);
  if (end > file->capacity) {
    file->capacity = end < 1024 ? 1024 : 2 * end;
    file->bytes = (char*)realloc(file->bytes, file->capacity);
  }
  if (bytes.size > 0) memcpy(file->bytes + writer->position, bytes.data, bytes.size);
  writer->position = end;
  if (end > file->size) file->size = end;
  return memory_done(fs, 0);
}

static int memory_sync(void* context, void* opened, lodestore_result* why) {
  memory_fs* fs = memory_enter(context);
  (void)opened;
  return memory_done(fs, memory_fault(fs, why));
}

static int memory_truncate(void* context, void* opened, uint64_t length, lodestore_result* why) {
  memory_fs* fs = memory_enter(context);
  memory_writer* writer = (memory_writer*)opened;
  const int fault = memory_fault(fs, why);
  if (fault != 0) return memory_done(fs, fault);
  if (length < writer->file->size) writer->file->size = (size_t)length;
  writer->position = (size_t)length;
  return memory_done(fs, 0);
}

static int memory_preallocate(void* context, void* opened, uint64_t length,
                              lodestore_result* why) {
  (void)context, (void)opened, (void)length, (void)why;
  return 0;
}

static int memory_close_writable(void* context, void* opened, lodestore_result* why) {
  memory_fs* fs = memory_enter(context);
  memory_writer* writer = (memory_writer*)opened;
  (void)why;
  memory_release(writer->file);
  free(writer);
  fs->open--;
  return memory_done(fs, 0);
}

static int memory_length(void* context, const char* path, uint64_t* bytes,
                         lodestore_result* why) {
  memory_fs* fs = memory_enter(context);
  memory_name* name = *memory_find(fs, path);
  (void)why;
  if (name == NULL || name->file == NULL) return memory_done(fs, ENOENT);
  *bytes = name->file->size;
  return memory_done(fs, 0);
}

static int memory_list(void* context, const char* path, lodestore_names* names,
                       lodestore_result* why) {
  memory_fs* fs = memory_enter(context);
  memory_name* name;
  (void)why;
  if (strcmp(path, ".") != 0 && *memory_find(fs, path) == NULL) return memory_done(fs, ENOENT);
  for (name = fs->names; name != NULL; name = name->next) {
    const char* child = memory_child(path, name->path);
    if (child != NULL) lodestore_names_add(names, child);
  }
  /* As readdir lists them. */
  lodestore_names_add(names, ".");
  lodestore_names_add(names, "..");
  lodestore_names_add(names, NULL);
  return memory_done(fs, 0);
}

static int memory_remove(void* context, const char* path, lodestore_result* why) {
  memory_fs* fs = memory_enter(context);
  memory_name** at = memory_find(fs, path);
  const int fault = memory_fault(fs, why);
  if (fault != 0) return memory_done(fs, fault);
  if (*at == NULL || (*at)->file == NULL) return memory_done(fs, ENOENT);
  memory_unlink(at);
  return memory_done(fs, 0);
}

static int memory_rename(void* context, const char* from, const char* to, lodestore_result* why) {
  memory_fs* fs = memory_enter(context);
  memory_name** at = memory_find(fs, from);
  memory_name** there = memory_find(fs, to);
  const int fault = memory_fault(fs, why);
  if (fault != 0) return memory_done(fs, fault);
  if (*at == NULL || (*at)->file == NULL) return memory_done(fs, ENOENT);
  if (*there != NULL) memory_unlink(there);
  memory_link(fs, to, (*memory_find(fs, from))->file);
  memory_unlink(memory_find(fs, from));
  return memory_done(fs, 0);
}

static int memory_hard_link(void* context, const char* from, const char* to,
                            lodestore_result* why) {
  memory_fs* fs = memory_enter(context);
  memory_name* name = *memory_find(fs, from);
  const int fault = memory_fault(fs, why);
  if (fault != 0) return memory_done(fs, fault);
  if (name == NULL || name->file == NULL) return memory_done(fs, ENOENT);
  if (*memory_find(fs, to) != NULL) return memory_done(fs, EEXIST);
  memory_link(fs, to, name->file);
  return memory_done(fs, 0);
}

static int memory_create_directory(void* context, const char* path, lodestore_result* why) {
  memory_fs* fs = memory_enter(context);
  const int fault = memory_fault(fs, why);
  if (fault != 0) return memory_done(fs, fault);
  if (*memory_find(fs, path) != NULL) return memory_done(fs, EEXIST);
  if (!memory_has_parent(fs, path)) return memory_done(fs, ENOENT);
  memory_link(fs, path, NULL);
  return memory_done(fs, 0);
}

static int memory_remove_directory(void* context, const char* path, lodestore_result* why) {
  memory_fs* fs = memory_enter(context);
  memory_name** at = memory_find(fs, path);
  memory_name* name;
  (void)why;
  if (*at == NULL) return memory_done(fs, ENOENT);
  for (name = fs->names; name != NULL; name = name->next) {
    if (memory_child(path, name->path) != NULL) return memory_done(fs, ENOTEMPTY);
  }
  memory_unlink(at);
  return memory_done(fs, 0);
}

static int memory_sync_directory(void* context, const char* path, lodestore_result* why) {
  memory_fs* fs = memory_enter(context);
  (void)path;
  return memory_done(fs, memory_fault(fs, why));
}

/* One lock for all: the tests open one database at a time. */
static int memory_lock(void* context, const char* path, void** lock, lodestore_result* why) {
  memory_fs* fs = memory_enter(context);
  (void)why;
  if (fs->locks > 0) return memory_done(fs, EBUSY);
  if (*memory_find(fs, path) == NULL) {
    memory_link(fs, path, (memory_file*)calloc(1, sizeof(memory_file)));
  }
  fs->locks++;
  fs->open++;
  *lock = NULL;
  return memory_done(fs, 0);
}

static void memory_unlock(void* context, void* lock) {
  memory_fs* fs = memory_enter(context);
  (void)lock;
  fs->locks--;
  fs->open--;
  memory_done(fs, 0);
}

static void memory_destroy(void* context) {
  memory_fs* fs = memory_enter(context);
  fs->destroyed++;
  memory_done(fs, 0);
}

/* What must be there, and nothing else. */
static lodestore_file_system memory_functions(memory_fs* fs) {
  lodestore_file_system functions;
  memset(&functions, 0, sizeof functions);
  functions.size = sizeof functions;
  functions.context = fs;
  functions.destroy = memory_destroy;
  functions.open = memory_open;
  functions.read = memory_read;
  functions.close_readable = memory_close_readable;
  functions.create = memory_create;
  functions.append = memory_append;
  functions.sync = memory_sync;
  functions.close_writable = memory_close_writable;
  functions.length = memory_length;
  functions.list = memory_list;
  functions.remove = memory_remove;
  functions.rename = memory_rename;
  functions.create_directory = memory_create_directory;
  functions.remove_directory = memory_remove_directory;
  functions.sync_directory = memory_sync_directory;
  functions.lock = memory_lock;
  functions.unlock = memory_unlock;
  return functions;
}

/* What may be there besides. */
static void memory_more_functions(lodestore_file_system* functions) {
  functions->hard_link = memory_hard_link;
  functions->overwrite = memory_overwrite;
  functions->truncate = memory_truncate;
  functions->preallocate = memory_preallocate;
}

static void memory_begin(memory_fs* fs) {
  memset(fs, 0, sizeof *fs);
  pthread_mutex_init(&fs->mutex, NULL);
}

/* Frees what is still there; how many files that was. */
static int memory_end(memory_fs* fs) {
  int files = 0;
  while (fs->names != NULL) {
    files += fs->names->file != NULL;
    memory_unlink(&fs->names);
  }
  pthread_mutex_destroy(&fs->mutex);
  return files;
}
