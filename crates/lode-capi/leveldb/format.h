/* LevelDB's formats, as the engine knows them (crates/lode-capi/src/leveldb.rs): for
 * the shim only, and in the static library only if it was built with the feature
 * leveldb-files. What lodestore.h says of errors, places and bytes holds here too;
 * bytes that contradict a format are LODESTORE_CORRUPTION. */

#ifndef LODESTORE_LEVELDB_FORMAT_H_
#define LODESTORE_LEVELDB_FORMAT_H_

#include "lodestore.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Tables that are written -------------------------------------------- */

typedef struct lodestore_leveldb_table lodestore_leveldb_table;

/* What the table's keys are to its writer. What these give lasts until one of them is
 * called again. */
typedef struct {
  void* context;
  /* A key that parts `last` from `next`, or the last of all: not before `last`. */
  lodestore_bytes (*separator)(void* context, lodestore_bytes last, lodestore_bytes next);
  lodestore_bytes (*successor)(void* context, lodestore_bytes last);
  /* The filter of these keys. */
  lodestore_bytes (*filter)(void* context, const lodestore_bytes* keys, size_t count);
} lodestore_leveldb_keys;

typedef struct {
  size_t block_bytes;      /* a block ends once it is so long */
  size_t restart_interval; /* every so many keys one stands whole */
  uint8_t snappy;          /* not 0: compressed, where that saves an eighth */
} lodestore_leveldb_layout;

/* `filter_name` is the meta index's name for the filters; data NULL: none. */
lodestore_leveldb_table* lodestore_leveldb_table_create(lodestore_leveldb_keys keys,
                                                        lodestore_bytes filter_name,
                                                        lodestore_leveldb_layout layout);
void lodestore_leveldb_table_free(lodestore_leveldb_table* table);
/* What is written from now on is laid out so. */
lodestore_error* lodestore_leveldb_table_set_layout(lodestore_leveldb_table* table,
                                                    lodestore_leveldb_layout layout);
/* Keys ascend. */
lodestore_error* lodestore_leveldb_table_add(lodestore_leveldb_table* table, lodestore_bytes key,
                                             lodestore_bytes value);
/* The next key begins a block. */
lodestore_error* lodestore_leveldb_table_end_block(lodestore_leveldb_table* table);
/* Makes the end of the table: nothing can be added behind it. */
lodestore_error* lodestore_leveldb_table_finish(lodestore_leveldb_table* table);
/* What was made since this was asked last; it lasts until it is asked again. */
lodestore_bytes lodestore_leveldb_table_take(lodestore_leveldb_table* table);

/* ---- Tables that are read ----------------------------------------------- */

enum { LODESTORE_LEVELDB_FOOTER_BYTES = 48 };

/* Where a block is, with all that is stored of it. */
typedef struct {
  uint64_t offset;
  uint64_t bytes;
} lodestore_leveldb_extent_of;

/* Where the indexes are, by the last bytes of a table of `file_bytes`. */
lodestore_error* lodestore_leveldb_footer(lodestore_bytes last, uint64_t file_bytes,
                                          lodestore_leveldb_extent_of* meta_index,
                                          lodestore_leveldb_extent_of* index);
/* The block that the value of an index entry leads to. */
lodestore_error* lodestore_leveldb_extent(lodestore_bytes value, uint64_t file_bytes,
                                          lodestore_leveldb_extent_of* place);

/* The entries of a block, decompressed, in order. */
typedef struct lodestore_leveldb_block lodestore_leveldb_block;

lodestore_error* lodestore_leveldb_block_open(lodestore_bytes stored, uint8_t verify,
                                              lodestore_leveldb_block** block);
void lodestore_leveldb_block_free(lodestore_leveldb_block* block);
size_t lodestore_leveldb_block_count(const lodestore_leveldb_block* block);
size_t lodestore_leveldb_block_memory(const lodestore_leveldb_block* block);
lodestore_bytes lodestore_leveldb_block_key(const lodestore_leveldb_block* block, size_t index);
lodestore_bytes lodestore_leveldb_block_value(const lodestore_leveldb_block* block, size_t index);
/* What is wrong behind the last entry; NULL if nothing is. */
lodestore_error* lodestore_leveldb_block_damage(const lodestore_leveldb_block* block);

/* ---- What a dump prints ------------------------------------------------- */

/* By a file's name, without its directory: 0 none of LevelDB's, 1 one without data, 2 a
 * log, 3 a manifest, 4 a table. */
uint8_t lodestore_leveldb_file_kind(const char* name);

/* Walks over the records of a log or manifest, all of which is in `file` and stays
 * there. */
typedef struct lodestore_leveldb_log lodestore_leveldb_log;

typedef struct {
  lodestore_bytes bytes; /* until the next one is asked for */
  uint64_t offset;
  /* 0, or what is damaged: 1 a checksum, 2 a length, 3 a record without end, 4 without
   * beginning, 5 a record because a part of it is, 6 a type. */
  uint8_t flaw;
  uint8_t fragment; /* the type that shows it */
  size_t dropped;   /* bytes that are left out */
} lodestore_leveldb_record;

lodestore_leveldb_log* lodestore_leveldb_log_open(lodestore_bytes file);
void lodestore_leveldb_log_free(lodestore_leveldb_log* log);
/* 0 at the end. */
uint8_t lodestore_leveldb_log_next(lodestore_leveldb_log* log, lodestore_leveldb_record* record);

/* What a record of a manifest says. */
lodestore_error* lodestore_leveldb_edit_text(lodestore_bytes record, lodestore_value** text);
/* Bytes that are not printable as \xNN. */
lodestore_value* lodestore_leveldb_escaped(lodestore_bytes bytes);

typedef struct {
  lodestore_bytes user_key;
  uint64_t sequence;
  uint8_t is_put; /* or a delete */
} lodestore_leveldb_key;

/* Divides a key as it is stored in a database's table; 0 if it is none. */
uint8_t lodestore_leveldb_key_parse(lodestore_bytes stored, lodestore_leveldb_key* key);

#ifdef __cplusplus
}
#endif

#endif
