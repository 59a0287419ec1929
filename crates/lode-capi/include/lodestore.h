/* Lodestore: an ordered, embedded key-value store.
 *
 * What holds everywhere:
 *
 * - A call that can fail gives a lodestore_error, which its caller frees, or
 *   NULL if it did not fail. A place for a result gets NULL or 0 first, so that
 *   it holds something after a failure too.
 * - NULL where something must be is an error (LODESTORE_INVALID_ARGUMENT), or
 *   does nothing and gives 0 or NULL where a call cannot fail. NULL for options stands for the
 *   defaults. Every ..._free takes NULL.
 * - Bytes and texts that go in are read until the call returns and copied if
 *   they are needed longer. Bytes that come out belong to what they came from:
 *   to a value until it is freed, to a cursor until it moves.
 * - Texts are UTF-8 and end with a zero byte. Paths may be any bytes.
 * - Databases, families, snapshots, caches and options that nobody changes can
 *   be used from any number of threads at once. A cursor, a batch, updates and a
 *   table writer are for one thread at a time.
 * - A database stays open until it, the families got from it, its cursors and
 *   its updates are freed, in any order.
 * - No call throws, and none unwinds into its caller. Functions of yours that it
 *   calls must not either.
 */

#ifndef LODESTORE_H
#define LODESTORE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lodestore_error lodestore_error;
typedef struct lodestore_value lodestore_value;
typedef struct lodestore_options lodestore_options;
typedef struct lodestore_read_options lodestore_read_options;
typedef struct lodestore_cache lodestore_cache;
typedef struct lodestore_db lodestore_db;
typedef struct lodestore_family lodestore_family;
typedef struct lodestore_snapshot lodestore_snapshot;
typedef struct lodestore_batch lodestore_batch;
typedef struct lodestore_cursor lodestore_cursor;
typedef struct lodestore_table_writer lodestore_table_writer;
typedef struct lodestore_updates lodestore_updates;
typedef struct lodestore_log_pin lodestore_log_pin;
typedef struct lodestore_result lodestore_result;

/* So many bytes at an address. Where a call says so, address NULL is "none". */
typedef struct {
  const void* data;
  size_t size;
} lodestore_bytes;

/* ---- Errors ------------------------------------------------------------- */

enum {
  LODESTORE_OK = 0,
  LODESTORE_IO = 1,               /* the system refused; trying again may help */
  LODESTORE_CORRUPTION = 2,       /* bytes contradict the format; it never helps */
  LODESTORE_INCOMPATIBLE = 3,     /* another version's or another store's: see the message */
  LODESTORE_INVALID_ARGUMENT = 4, /* can never work; nothing was changed */
  LODESTORE_BUSY = 5,             /* somebody else has the database open */
  LODESTORE_STALLED = 6,          /* the write would have waited longer than it may */
  LODESTORE_MISSING = 7,          /* no database, family or file of this name */
  LODESTORE_MERGE_FAILED = 8,     /* the merge operator made nothing of a key */
  LODESTORE_READ_ONLY = 9,        /* a write failed earlier: lodestore_resume */
  LODESTORE_INTERNAL = 10         /* a bug of ours */
};

/* One of the above; LODESTORE_OK for NULL. */
int lodestore_error_code(const lodestore_error* error);
/* What happened, with file and offset where there is one; "OK" for NULL. It lasts
 * until the error is freed. */
const char* lodestore_error_message(const lodestore_error* error);
/* What a file system of yours said of it (lodestore_file_system), alone; NULL if it said
 * nothing, or was not asked. */
const char* lodestore_error_reason(const lodestore_error* error);
void lodestore_error_free(lodestore_error* error);

/* ---- Values ------------------------------------------------------------- */

/* A value is not copied when it is read: it keeps the block around it in memory
 * until it is freed. A text (a property, a list of names) has a zero byte behind
 * it that its size does not count. */
lodestore_bytes lodestore_value_bytes(const lodestore_value* value);
void lodestore_value_free(lodestore_value* value);

/* ---- Options ------------------------------------------------------------ */

/* Names, values and units are those of docs/guide/options.md. */
lodestore_options* lodestore_options_create(void);
void lodestore_options_free(lodestore_options* options);
/* An option of the database, as in "create_if_missing", "true". */
lodestore_error* lodestore_options_set(lodestore_options* options, const char* name,
                                       const char* value);
/* An option of a family, as in "compression", "zstd:3". Here and below, family NULL
 * stands for every family that has no options of its own; a name gives it some,
 * which begin with those. */
lodestore_error* lodestore_options_set_family(lodestore_options* options, const char* family,
                                              const char* name, const char* value);
/* Lines "name = value" below "[database]", "[family]" or "[family \"name\"]": all of
 * them, or none. */
lodestore_error* lodestore_options_apply_text(lodestore_options* options, const char* text);
/* All options as such a text. */
lodestore_value* lodestore_options_text(const lodestore_options* options);

/* An order of keys. `compare` gives a number below, equal to or above 0, and is called
 * by any thread, several at once. `destroy`, which may be NULL, is called with
 * `context` once nothing uses it any more. */
typedef struct {
  void* context;
  void (*destroy)(void* context);
  const char* name; /* stored: the database opens only under the same one */
  int (*compare)(void* context, lodestore_bytes a, lodestore_bytes b);
  uint8_t equal_means_identical; /* not 0: equal keys have equal bytes; allows filters */
} lodestore_comparator;

lodestore_error* lodestore_options_set_comparator(lodestore_options* options, const char* family,
                                                  const lodestore_comparator* comparator);

/* How operands become a value. Each function calls lodestore_result_set with what it
 * made, or not at all if it can make nothing (bytes at address NULL count as that): a
 * reader gets LODESTORE_MERGE_FAILED then, and nothing that is stored is lost. `existing.data` is NULL if there was no
 * value. `partial_merge`, which may be NULL, makes one operand of two. Called by any
 * thread, several at once. */
typedef struct {
  void* context;
  void (*destroy)(void* context);
  const char* name; /* stored, as a comparator's */
  void (*full_merge)(void* context, lodestore_bytes key, lodestore_bytes existing,
                     const lodestore_bytes* operands, size_t count, lodestore_result* result);
  void (*partial_merge)(void* context, lodestore_bytes key, lodestore_bytes older,
                        lodestore_bytes newer, lodestore_result* result);
} lodestore_merge_operator;

void lodestore_result_set(lodestore_result* result, lodestore_bytes bytes);
lodestore_error* lodestore_options_set_merge_operator(lodestore_options* options,
                                                      const char* family,
                                                      const lodestore_merge_operator* merge);
/* One that is built in: "add_u64" (eight bytes, lowest first), or "append", which
 * puts `delimiter` between two. A database is opened with the same delimiter again. */
lodestore_error* lodestore_options_use_merge_operator(lodestore_options* options,
                                                      const char* family, const char* name,
                                                      lodestore_bytes delimiter);

/* What happened, as a listener is told it. */
enum {
  LODESTORE_EVENT_OPENED = 1,
  LODESTORE_EVENT_FLUSHED = 2,
  LODESTORE_EVENT_COMPACTED = 3,
  LODESTORE_EVENT_MOVED = 4,               /* tables, to a deeper level as they are */
  LODESTORE_EVENT_WAITED = 5,              /* a writer, for 100 ms or longer */
  LODESTORE_EVENT_RETRIED = 6,             /* background work, after a failure */
  LODESTORE_EVENT_COMPACTIONS_STOPPED = 7, /* until lodestore_resume */
  LODESTORE_EVENT_BECAME_READ_ONLY = 8,    /* until lodestore_resume */
  LODESTORE_EVENT_RESUMED = 9,
  LODESTORE_EVENT_CLOSED = 10
};

/* Is told what the engine does on its own: one of the above, or a number that a later
 * version adds, and a line about it, without an end of line. `tell` is called in the
 * thread concerned, which waits for it and may hold locks: it must be quick, and
 * must not call the database. `destroy` is as for a comparator. */
typedef struct {
  void* context;
  void (*destroy)(void* context);
  void (*tell)(void* context, int event, lodestore_bytes line);
} lodestore_listener;

lodestore_error* lodestore_options_set_listener(lodestore_options* options,
                                                const lodestore_listener* listener);

/* A block cache that several databases can share. It lives as long as they do. */
lodestore_cache* lodestore_cache_create(size_t capacity_bytes);
size_t lodestore_cache_used_bytes(const lodestore_cache* cache);
void lodestore_cache_free(lodestore_cache* cache);
lodestore_error* lodestore_options_set_cache(lodestore_options* options,
                                             const lodestore_cache* cache);

/* Zeros are the defaults. */
typedef struct {
  uint8_t sync;             /* not 0: return when it survives power loss */
  uint8_t no_slowdown;      /* not 0: LODESTORE_STALLED instead of being held back */
  uint64_t deadline_micros; /* not 0: LODESTORE_STALLED after so long */
} lodestore_write_options;

lodestore_read_options* lodestore_read_options_create(void);
void lodestore_read_options_free(lodestore_read_options* options);
/* NULL: the newest state. The options keep the snapshot. */
lodestore_error* lodestore_read_options_set_snapshot(lodestore_read_options* options,
                                                     const lodestore_snapshot* snapshot);
lodestore_error* lodestore_read_options_set_fill_cache(lodestore_read_options* options,
                                                       uint8_t fill_cache);
/* Cursors see keys from `lower`, inclusive, to `upper`, exclusive; data NULL: open. */
lodestore_error* lodestore_read_options_set_bounds(lodestore_read_options* options,
                                                   lodestore_bytes lower, lodestore_bytes upper);
/* Cursors see keys that begin so; data NULL: all. */
lodestore_error* lodestore_read_options_set_prefix(lodestore_read_options* options,
                                                   lodestore_bytes prefix);

/* ---- A file system of yours --------------------------------------------- */

/* Where a database's files are, in place of the system's. Set with
 * lodestore_options_set_file_system, it serves every call that takes these options, and
 * no file is touched but through it.
 *
 * - Functions give 0, or a number of errno.h. `why` may be given the failure's text by
 *   lodestore_result_set; the system's words for the number stand there otherwise. These
 *   numbers mean something to the engine: ENOENT (it goes by it), EEXIST (fine for
 *   create_directory), EBUSY and EAGAIN (of lock: somebody has it), EINTR (of read: once
 *   more), EMFILE and ENFILE (it closes files that it reads, and tries again), ENOSPC and
 *   EDQUOT (it waits for room).
 * - They are called by any thread, several at once, and with different files; a file
 *   that is written is used by one thread at a time.
 * - `file` and `lock` are what `open`, `create`, `overwrite` and `lock` have put there;
 *   each is closed or unlocked once.
 * - Paths are those that you give to the engine, with names of its own behind a slash;
 *   "." is where relative ones begin.
 * - Of the last four, which may be NULL, each allows something: links instead of copies;
 *   logs that are used again; cutting off what a failed append has left; room for a log
 *   before it is written. */
typedef struct lodestore_names lodestore_names;

typedef struct {
  size_t size; /* sizeof(lodestore_file_system) */
  void* context;
  /* May be NULL; called once nothing uses the file system any more. */
  void (*destroy)(void* context);

  /* To read. Whoever has a file open, or a lock, keeps it when the name is removed. */
  int (*open)(void* context, const char* path, void** file, lodestore_result* why);
  /* Up to `size` bytes from `offset` on; *count, which is 0, gets how many: fewer at the
   * end of the file only. */
  int (*read)(void* context, void* file, uint64_t offset, void* buffer, size_t size,
              size_t* count, lodestore_result* why);
  void (*close_readable)(void* context, void* file);

  /* To write from front to back. A file that is there is emptied. */
  int (*create)(void* context, const char* path, void** file, lodestore_result* why);
  /* All of it. It can be read at once, and is not lost when the process is killed. */
  int (*append)(void* context, void* file, lodestore_bytes bytes, lodestore_result* why);
  /* What was appended survives power loss then. */
  int (*sync)(void* context, void* file, lodestore_result* why);
  /* The file is gone after a failure, too. */
  int (*close_writable)(void* context, void* file, lodestore_result* why);

  /* Bytes in a file, also in one that is still written. */
  int (*length)(void* context, const char* path, uint64_t* bytes, lodestore_result* why);
  /* Calls lodestore_names_add with each name in a directory. */
  int (*list)(void* context, const char* path, lodestore_names* names, lodestore_result* why);
  int (*remove)(void* context, const char* path, lodestore_result* why);
  /* In one step; what is at `to` is replaced. */
  int (*rename)(void* context, const char* from, const char* to, lodestore_result* why);
  /* ENOENT if the directory above is not there: that one is made first then. */
  int (*create_directory)(void* context, const char* path, lodestore_result* why);
  /* Only if it is empty. */
  int (*remove_directory)(void* context, const char* path, lodestore_result* why);
  /* The names in it survive power loss then. */
  int (*sync_directory)(void* context, const char* path, lodestore_result* why);
  /* Never waits. Excludes all who may open the same files. */
  int (*lock)(void* context, const char* path, void** lock, lodestore_result* why);
  void (*unlock)(void* context, void* lock);

  /* A second name for a file. */
  int (*hard_link)(void* context, const char* from, const char* to, lodestore_result* why);
  /* To write over, from front to back; the rest stays. */
  int (*overwrite)(void* context, const char* path, void** file, lodestore_result* why);
  /* Cuts the file, and goes on there. */
  int (*truncate)(void* context, void* file, uint64_t length, lodestore_result* why);
  /* So many bytes will be written. The length stays as it is. */
  int (*preallocate)(void* context, void* file, uint64_t length, lodestore_result* why);
} lodestore_file_system;

/* The name alone. "." and "..", and names with a slash, are passed over. */
void lodestore_names_add(lodestore_names* names, const char* name);
/* The functions are copied. If this fails, `destroy` is not called. */
lodestore_error* lodestore_options_set_file_system(lodestore_options* options,
                                                   const lodestore_file_system* file_system);

/* ---- Databases and families --------------------------------------------- */

lodestore_error* lodestore_open(const char* path, const lodestore_options* options,
                                lodestore_db** db);
/* The same; a LevelDB database is adopted first: see lodestore_adopt. */
lodestore_error* lodestore_open_or_adopt(const char* path, const lodestore_options* options,
                                         lodestore_db** db);
/* Takes no lock, changes nothing, and shows the state of this moment. */
lodestore_error* lodestore_open_read_only(const char* path, const lodestore_options* options,
                                          lodestore_db** db);
void lodestore_close(lodestore_db* db);

/* It belongs to the database's handle: not to be freed, nor used once that is closed. */
const lodestore_family* lodestore_default_family(const lodestore_db* db);
/* NULL if there is none of this name. Free what these four give. */
lodestore_error* lodestore_family_open(const lodestore_db* db, const char* name,
                                       lodestore_family** family);
lodestore_error* lodestore_family_open_or_create(const lodestore_db* db, const char* name,
                                                 lodestore_family** family);
/* Options NULL: those that the database was opened with for this name. */
lodestore_error* lodestore_family_create(const lodestore_db* db, const char* name,
                                         const lodestore_options* options,
                                         lodestore_family** family);
/* One name a line, the default family's first. */
lodestore_value* lodestore_family_names(const lodestore_db* db);
/* With all that it holds. */
lodestore_error* lodestore_family_drop(const lodestore_db* db, const char* name);
/* The number that stands for it in the records of a batch. */
uint32_t lodestore_family_id(const lodestore_family* family);
void lodestore_family_free(lodestore_family* family);

/* ---- Reading and writing ------------------------------------------------ */

lodestore_error* lodestore_put(const lodestore_family* family,
                               const lodestore_write_options* options, lodestore_bytes key,
                               lodestore_bytes value);
/* No error if there is no such key. */
lodestore_error* lodestore_delete(const lodestore_family* family,
                                  const lodestore_write_options* options, lodestore_bytes key);
/* For a key that was put at most once since it was last deleted. */
lodestore_error* lodestore_single_delete(const lodestore_family* family,
                                         const lodestore_write_options* options,
                                         lodestore_bytes key);
/* From `begin`, inclusive, to `end`, exclusive. */
lodestore_error* lodestore_delete_range(const lodestore_family* family,
                                        const lodestore_write_options* options,
                                        lodestore_bytes begin, lodestore_bytes end);
lodestore_error* lodestore_merge(const lodestore_family* family,
                                 const lodestore_write_options* options, lodestore_bytes key,
                                 lodestore_bytes operand);

/* NULL if there is no such key. */
lodestore_error* lodestore_get(const lodestore_family* family,
                               const lodestore_read_options* options, lodestore_bytes key,
                               lodestore_value** value);
/* Copies up to `capacity` bytes to `buffer`, which may be NULL; `size` is the whole
 * length, `found` 0 or 1. */
lodestore_error* lodestore_get_into(const lodestore_family* family,
                                    const lodestore_read_options* options, lodestore_bytes key,
                                    void* buffer, size_t capacity, size_t* size, uint8_t* found);
/* All of one state: `values` gets `count` values, NULL where there is none. `errors`
 * gets one for each key, to be freed, or is NULL: then the first one is returned. */
lodestore_error* lodestore_multi_get(const lodestore_family* family,
                                     const lodestore_read_options* options,
                                     const lodestore_bytes* keys, size_t count,
                                     lodestore_value** values, lodestore_error** errors);

/* The state of all families at this moment; what it sees is kept until it is freed. */
lodestore_snapshot* lodestore_snapshot_create(const lodestore_db* db);
uint64_t lodestore_snapshot_sequence(const lodestore_snapshot* snapshot);
void lodestore_snapshot_free(lodestore_snapshot* snapshot);

/* ---- Batches ------------------------------------------------------------ */

lodestore_batch* lodestore_batch_create(void);
void lodestore_batch_free(lodestore_batch* batch);
/* Family NULL: the default one. What is over the limits is told when it is written. */
lodestore_error* lodestore_batch_put(lodestore_batch* batch, const lodestore_family* family,
                                     lodestore_bytes key, lodestore_bytes value);
lodestore_error* lodestore_batch_delete(lodestore_batch* batch, const lodestore_family* family,
                                        lodestore_bytes key);
lodestore_error* lodestore_batch_single_delete(lodestore_batch* batch,
                                               const lodestore_family* family,
                                               lodestore_bytes key);
lodestore_error* lodestore_batch_delete_range(lodestore_batch* batch,
                                              const lodestore_family* family,
                                              lodestore_bytes begin, lodestore_bytes end);
lodestore_error* lodestore_batch_merge(lodestore_batch* batch, const lodestore_family* family,
                                       lodestore_bytes key, lodestore_bytes operand);
/* Bytes that the log keeps and the database ignores. */
lodestore_error* lodestore_batch_log_only(lodestore_batch* batch, lodestore_bytes bytes);
lodestore_error* lodestore_batch_append(lodestore_batch* batch, const lodestore_batch* other);
void lodestore_batch_clear(lodestore_batch* batch);
size_t lodestore_batch_count(const lodestore_batch* batch);
/* Bytes that it takes in the log. */
size_t lodestore_batch_size(const lodestore_batch* batch);

enum {
  LODESTORE_PUT = 1,
  LODESTORE_DELETE = 2,
  LODESTORE_SINGLE_DELETE = 3,
  LODESTORE_DELETE_RANGE = 4, /* the value is the end */
  LODESTORE_MERGE = 5,        /* the value is the operand */
  LODESTORE_LOG_ONLY = 6      /* the value is the bytes */
};

typedef struct {
  uint32_t kind;
  uint32_t family;
  lodestore_bytes key;
  lodestore_bytes value;
} lodestore_record;

/* Calls `visit` with each record, in order. */
lodestore_error* lodestore_batch_iterate(const lodestore_batch* batch, void* context,
                                         void (*visit)(void* context,
                                                       const lodestore_record* record));
/* All records or none. The batch stays, and can be cleared and used again. `sequence`,
 * which may be NULL, gets the number of the last record. */
lodestore_error* lodestore_write(const lodestore_db* db, const lodestore_write_options* options,
                                 lodestore_batch* batch, uint64_t* sequence);

/* ---- Cursors ------------------------------------------------------------ */

/* Over the state at this moment; it has no position yet. */
lodestore_error* lodestore_cursor_create(const lodestore_family* family,
                                         const lodestore_read_options* options,
                                         lodestore_cursor** cursor);
void lodestore_cursor_free(lodestore_cursor* cursor);
/* Each of these gives 1 if the cursor is at a key, and 0 if not: then
 * lodestore_cursor_status tells whether that is the end or a failure. A key to seek
 * that is no bytes (some of them at address NULL) is such a failure: the cursor is
 * nowhere until it is placed anew. */
uint8_t lodestore_cursor_valid(const lodestore_cursor* cursor);
uint8_t lodestore_cursor_first(lodestore_cursor* cursor);
uint8_t lodestore_cursor_last(lodestore_cursor* cursor);
/* To the first key that is not before `key`. */
uint8_t lodestore_cursor_seek(lodestore_cursor* cursor, lodestore_bytes key);
/* To the last key that is not after `key`. */
uint8_t lodestore_cursor_seek_for_prev(lodestore_cursor* cursor, lodestore_bytes key);
uint8_t lodestore_cursor_next(lodestore_cursor* cursor);
uint8_t lodestore_cursor_prev(lodestore_cursor* cursor);
/* Data NULL if the cursor is at no key. */
lodestore_bytes lodestore_cursor_key(const lodestore_cursor* cursor);
lodestore_bytes lodestore_cursor_value(const lodestore_cursor* cursor);
lodestore_error* lodestore_cursor_status(const lodestore_cursor* cursor);

/* ---- Upkeep ------------------------------------------------------------- */

lodestore_error* lodestore_flush(const lodestore_family* family);
lodestore_error* lodestore_flush_all(const lodestore_db* db);
/* Everything written up to now survives power loss then. */
lodestore_error* lodestore_sync_log(const lodestore_db* db);
lodestore_error* lodestore_wait_for_background(const lodestore_db* db);
/* Lets writing go on after LODESTORE_READ_ONLY. */
lodestore_error* lodestore_resume(const lodestore_db* db);
/* Both ends inclusive; data NULL: open. */
lodestore_error* lodestore_compact_range(const lodestore_family* family, lodestore_bytes from,
                                         lodestore_bytes to);
/* Tables that have nothing to drop are written anew too, with the options of now. */
lodestore_error* lodestore_rewrite_range(const lodestore_family* family, lodestore_bytes from,
                                         lodestore_bytes to);
/* Drops tables that lie wholly from `begin`, inclusive, to `end`, exclusive. */
lodestore_error* lodestore_delete_files_in_range(const lodestore_family* family,
                                                 lodestore_bytes begin, lodestore_bytes end,
                                                 uint64_t* tables);

typedef struct {
  lodestore_bytes begin; /* inclusive */
  lodestore_bytes end;   /* exclusive */
} lodestore_range;

/* Bytes of tables for each range, roughly. */
lodestore_error* lodestore_approximate_sizes(const lodestore_family* family,
                                             const lodestore_range* ranges, size_t count,
                                             uint64_t* sizes);
/* NULL for a name that it does not know, or that is none. */
lodestore_value* lodestore_property(const lodestore_family* family, const char* name);
/* One name a line. */
lodestore_value* lodestore_property_names(void);
/* A counter by its name, as in "cache.hits". */
lodestore_error* lodestore_counter(const lodestore_db* db, const char* name, uint64_t* value);
/* Options that can change while the database is open: all of them, or none. */
lodestore_error* lodestore_set_options(const lodestore_db* db, const char* const* names,
                                       const char* const* values, size_t count);
lodestore_error* lodestore_set_family_options(const lodestore_family* family,
                                              const char* const* names,
                                              const char* const* values, size_t count);
/* Reads every byte of every table. */
lodestore_error* lodestore_verify(const lodestore_db* db);
/* A copy that opens as a database of its own, in the new directory `path`. */
lodestore_error* lodestore_checkpoint(const lodestore_db* db, const char* path);
uint64_t lodestore_latest_sequence(const lodestore_db* db);

/* ---- Tables written elsewhere ------------------------------------------- */

typedef struct {
  uint8_t move_files; /* not 0: link the files and remove their old names */
  uint8_t trust;      /* not 0: do not read all of them first */
} lodestore_ingest_options;

lodestore_error* lodestore_table_writer_create(const char* path, const lodestore_options* options,
                                               const char* family,
                                               lodestore_table_writer** writer);
/* Keys ascend. */
lodestore_error* lodestore_table_writer_put(lodestore_table_writer* writer, lodestore_bytes key,
                                            lodestore_bytes value);
lodestore_error* lodestore_table_writer_delete(lodestore_table_writer* writer,
                                               lodestore_bytes key);
lodestore_error* lodestore_table_writer_merge(lodestore_table_writer* writer, lodestore_bytes key,
                                              lodestore_bytes operand);
lodestore_error* lodestore_table_writer_delete_range(lodestore_table_writer* writer,
                                                     lodestore_bytes begin, lodestore_bytes end);
/* Durable then. Without this there is no table. */
lodestore_error* lodestore_table_writer_finish(lodestore_table_writer* writer);
void lodestore_table_writer_free(lodestore_table_writer* writer);
/* All of them in one step, or none. */
lodestore_error* lodestore_ingest(const lodestore_family* family, const char* const* paths,
                                  size_t count, const lodestore_ingest_options* options);

/* ---- The log as a source ------------------------------------------------ */

/* LODESTORE_MISSING if the log no longer goes back so far: a pin keeps it. */
lodestore_error* lodestore_updates_since(const lodestore_db* db, uint64_t sequence,
                                         lodestore_updates** updates);
/* The next batch, to be freed, and the number of its first record; NULL at the end. */
lodestore_error* lodestore_updates_next(lodestore_updates* updates, uint64_t* first,
                                        lodestore_batch** batch);
void lodestore_updates_free(lodestore_updates* updates);
/* Writes under given numbers, as a replica does. */
lodestore_error* lodestore_apply_at(const lodestore_db* db, uint64_t first,
                                    lodestore_batch* batch);
lodestore_log_pin* lodestore_log_pin_create(const lodestore_db* db, uint64_t sequence);
void lodestore_log_pin_free(lodestore_log_pin* pin);

/* ---- Directories that are not open -------------------------------------- */

/* Removes a database; files that are not its own stay. */
lodestore_error* lodestore_destroy(const char* path, const lodestore_options* options);
lodestore_error* lodestore_list_families(const char* path, const lodestore_options* options,
                                         lodestore_value** names);
/* A new database in `target` of all that can still be read; `path` stays as it is.
 * `losses`, which may be NULL, gets a line for each thing that cannot be read: a file,
 * and what is wrong with it. */
lodestore_error* lodestore_repair(const char* path, const char* target,
                                  const lodestore_options* options, lodestore_value** losses);
/* A LevelDB database becomes one of ours, in place (docs/guide/leveldb.md); gives its
 * files up for good; makes it LevelDB's again, byte for byte. */
lodestore_error* lodestore_adopt(const char* path, const lodestore_options* options);
lodestore_error* lodestore_adopt_commit(const char* path, const lodestore_options* options);
lodestore_error* lodestore_adopt_roll_back(const char* path, const lodestore_options* options);

#ifdef __cplusplus
}
#endif

#endif
