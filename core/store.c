/* SPDX-License-Identifier: MIT */
/* Opening a database: lock it, see that it is ours, make it when it is new. */
#include "core/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"

#define APPLICATION_ID 0x5454454e /* "TTEN" in the file's header: no other program's database */
#define PATH_BYTES_MAX 4096

extern const unsigned char titen_schema[];
extern const size_t titen_schema_bytes;

struct store {
	char *path;
	int lock;         /* descriptor of PATH.lock, held for the life of the store */
	struct stat file; /* as it was opened */
	struct db *writer;
};

struct db *
store_writer(struct store *store)
{
	return store->writer;
}

struct db *
store_open_reader(struct store *store)
{
	char error[256];
	struct db *db = db_open(store->path, false, error, sizeof(error));

	if (db == NULL)
		log_line(LOG_LEVEL_ERROR, "The database cannot be opened for reading: %s.", error);
	return db;
}

/* Tables and numbers of the file's header come in one transaction: a crash leaves all or nothing.
 */
static bool
schema_create(struct db *db)
{
	static const char format[] = "BEGIN IMMEDIATE; %s; PRAGMA application_id = %d;"
				     "PRAGMA user_version = %d; COMMIT";
	size_t bytes = sizeof(format) + titen_schema_bytes + 32;
	char *sql = malloc(bytes);
	bool made;

	if (sql == NULL)
		log_die("There is no memory for the schema.");
	snprintf(
	    sql, bytes, format, (const char *)titen_schema, APPLICATION_ID, STORE_SCHEMA_VERSION);
	made = db_script(db, sql);
	free(sql);
	return made;
}

/* Whether the file is ours and of this version; a new, empty one is made ours. */
static bool
schema_ready(struct db *db, const char *path, char *error, size_t error_bytes)
{
	int64_t application = db_number(db, "PRAGMA application_id");
	int64_t version = db_number(db, "PRAGMA user_version");
	int64_t tables = db_number(db, "SELECT count(*) FROM sqlite_schema");

	if (application == 0 && version == 0 && tables == 0) {
		if (schema_create(db))
			return true;
		snprintf(error, error_bytes, "%s cannot be made a database: %s", path,
		    db_error_text(db));
		return false;
	}
	if (application != APPLICATION_ID) {
		snprintf(error, error_bytes, "%s is not a Titen database", path);
		return false;
	}
	if (version != STORE_SCHEMA_VERSION) {
		snprintf(error, error_bytes,
		    "%s has schema version %" PRId64 ", this program knows only %d", path, version,
		    STORE_SCHEMA_VERSION);
		return false;
	}
	return true;
}

/* One process per database. The lock is a file of its own: closing any descriptor of the database
 * itself would drop the locks that SQLite holds on it (fcntl(2)). */
static int
lock_take(const char *path, char *error, size_t error_bytes)
{
	char name[PATH_BYTES_MAX];
	int fd;

	if (snprintf(name, sizeof(name), "%s.lock", path) >= (int)sizeof(name)) {
		snprintf(error, error_bytes, "the path of the database is too long");
		return -1;
	}
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0) {
		snprintf(error, error_bytes, "%s: %s", name, strerrordesc_np(errno));
		return -1;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno == EWOULDBLOCK)
			snprintf(error, error_bytes, "%s is in use by another titen process", path);
		else
			snprintf(error, error_bytes, "%s: %s", name, strerrordesc_np(errno));
		close(fd);
		return -1;
	}
	return fd;
}

static bool
store_open_writer(struct store *store, char *error, size_t error_bytes)
{
	store->writer = db_open(store->path, true, error, error_bytes);
	if (store->writer == NULL || !schema_ready(store->writer, store->path, error, error_bytes))
		return false;
	if (stat(store->path, &store->file) != 0 || store->file.st_nlink != 1) {
		/* Another name is another lock and another log, on the same file. */
		snprintf(error, error_bytes, "%s has more than one name (hard links)", store->path);
		return false;
	}
	if (db_use_wal(store->writer))
		return true;
	snprintf(error, error_bytes, "%s: %s", store->path, db_error_text(store->writer));
	return false;
}

bool
store_present(const struct store *store)
{
	struct stat now;

	return stat(store->path, &now) == 0 && now.st_ino == store->file.st_ino &&
	       now.st_dev == store->file.st_dev;
}

struct store *
store_open(const char *path, bool create, char *error, size_t error_bytes)
{
	struct store *store;
	struct stat file;

	if (!create && stat(path, &file) != 0) {
		snprintf(error, error_bytes, "%s: %s", path, strerrordesc_np(errno));
		return NULL;
	}
	store = calloc(1, sizeof(*store));
	if (store == NULL || (store->path = strdup(path)) == NULL)
		log_die("There is no memory for the store.");
	store->lock = lock_take(path, error, error_bytes);
	if (store->lock < 0 || !store_open_writer(store, error, error_bytes))
		store_close(&store);
	return store;
}

void
store_close(struct store **store)
{
	struct store *s = *store;

	db_close(&s->writer);
	if (s->lock >= 0)
		close(s->lock);
	free(s->path);
	free(s);
	*store = NULL;
}
