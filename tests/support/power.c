/* SPDX-License-Identifier: MIT */
/*
 * From the bottom up: the images, the cut, the steps that may fail, the methods of a file,
 * the VFS. One lock guards everything but the files underneath.
 */
#include "tests/support/power.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sqlite3.h>

#include "tests/support/image.h"

#define IMAGES_MAX 8 /* a database, its log and its journal, and some left from before */

struct power_file {
	sqlite3_file base;
	struct image *image; /* NULL: not one of those we follow */
	bool database;       /* neither its log nor its journal */
	bool syncs_names;    /* so does the system's VFS, at the first sync of a log or journal */
	sqlite3_file *under;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sqlite3_vfs *under_vfs;
static sqlite3_vfs power_vfs;
static struct image images[IMAGES_MAX];
static struct power_cut plan;
static bool planned, cut_done;
static int64_t space = -1;
static int counts[POWER_STEPS];
static struct {
	int n;
	int code;
} faults[POWER_STEPS];

/* --- images */

static struct image *
image_find(const char *path)
{
	for (size_t i = 0; i < IMAGES_MAX; i++)
		if (images[i].path != NULL && strcmp(images[i].path, path) == 0)
			return &images[i];
	return NULL;
}

/* The image of a file that has just been opened, which was durable until then. */
static struct image *
image_open(const char *path)
{
	struct image *image = image_find(path);

	if (image != NULL && image->deleted) {
		image_free(image);
		image = NULL;
	}
	for (size_t i = 0; image == NULL; i++) {
		assert(i < IMAGES_MAX);
		if (images[i].path != NULL)
			continue;
		image = &images[i];
		image_load(image, path);
	}
	image->open++;
	return image;
}

/* --- the cut */

/* Under the lock. */
static void
cut_now(void)
{
	size_t bytes = strlen(plan.database);
	uint64_t seed = plan.seed;
	char path[4096];

	planned = false;
	cut_done = true;
	if (plan.noticed != NULL)
		plan.noticed(plan.arg);
	for (size_t i = 0; i < IMAGES_MAX; i++) {
		if (images[i].path == NULL || strncmp(images[i].path, plan.database, bytes) != 0)
			continue;
		snprintf(path, sizeof path, "%s%s", plan.copy, images[i].path + bytes);
		image_survive(&images[i], path, &seed);
	}
}

void
power_cut_plan(const struct power_cut *cut)
{
	pthread_mutex_lock(&lock);
	plan = *cut;
	planned = true;
	cut_done = false;
	pthread_mutex_unlock(&lock);
}

bool
power_was_cut(void)
{
	bool was;

	pthread_mutex_lock(&lock);
	was = cut_done;
	pthread_mutex_unlock(&lock);
	return was;
}

/* --- the steps */

static int
step_count(enum power_step step)
{
	counts[step]++;
	if (planned && plan.step == step && --plan.n == 0)
		cut_now();
	return faults[step].n > 0 && --faults[step].n == 0 ? faults[step].code : SQLITE_OK;
}

/* Before a step on a file that we follow. What it must fail with, or SQLITE_OK. Under the lock. */
static int
step_begin(const struct power_file *f, enum power_step step)
{
	int any = step_count(POWER_ANY), code = step_count(step);
	int fold = f->database ? step_count(POWER_FOLD) : SQLITE_OK;

	if (code != SQLITE_OK)
		return code;
	return any != SQLITE_OK ? any : fold;
}

void
power_fail(enum power_step step, int n, int code)
{
	pthread_mutex_lock(&lock);
	faults[step].n = n;
	faults[step].code = code;
	pthread_mutex_unlock(&lock);
}

int
power_count(enum power_step step)
{
	int n;

	pthread_mutex_lock(&lock);
	n = counts[step];
	pthread_mutex_unlock(&lock);
	return n;
}

void
power_space(int64_t bytes)
{
	pthread_mutex_lock(&lock);
	space = bytes;
	pthread_mutex_unlock(&lock);
}

/* Under the lock. */
static int
space_take(sqlite3_file *under, int64_t end)
{
	sqlite3_int64 bytes = 0;

	if (space < 0)
		return SQLITE_OK;
	under->pMethods->xFileSize(under, &bytes);
	if (end - bytes > space)
		return SQLITE_FULL;
	space -= end > bytes ? end - bytes : 0;
	return SQLITE_OK;
}

/* --- the methods of a file */

static sqlite3_file *
under(sqlite3_file *file)
{
	return ((struct power_file *)file)->under;
}

static struct image *
image_of(sqlite3_file *file)
{
	return ((struct power_file *)file)->image;
}

static int
file_write(sqlite3_file *file, const void *data, int bytes, sqlite3_int64 offset)
{
	int code = SQLITE_OK;

	pthread_mutex_lock(&lock);
	if (image_of(file) != NULL &&
	    (code = step_begin((struct power_file *)file, POWER_WRITE)) == SQLITE_OK)
		code = space_take(under(file), offset + bytes);
	if (code == SQLITE_OK)
		code = under(file)->pMethods->xWrite(under(file), data, bytes, offset);
	if (code == SQLITE_OK && image_of(file) != NULL)
		image_change(image_of(file), offset, false, data, bytes);
	pthread_mutex_unlock(&lock);
	return code;
}

static int
file_truncate(sqlite3_file *file, sqlite3_int64 bytes)
{
	int code = SQLITE_OK;

	pthread_mutex_lock(&lock);
	if (image_of(file) != NULL)
		code = step_begin((struct power_file *)file, POWER_TRUNCATE);
	if (code == SQLITE_OK)
		code = under(file)->pMethods->xTruncate(under(file), bytes);
	if (code == SQLITE_OK && image_of(file) != NULL)
		image_change(image_of(file), bytes, true, NULL, 0);
	pthread_mutex_unlock(&lock);
	return code;
}

/* The directory is synced: names are there for good, or gone. */
static void
names_settle(void)
{
	for (size_t i = 0; i < IMAGES_MAX; i++) {
		if (images[i].deleted)
			image_free(&images[i]);
		images[i].named = images[i].path != NULL;
	}
}

static int
file_sync(sqlite3_file *file, int flags)
{
	struct power_file *f = (struct power_file *)file;
	int code = SQLITE_OK;

	(void)flags;
	pthread_mutex_lock(&lock);
	if (f->image != NULL && (code = step_begin(f, POWER_SYNC)) == SQLITE_OK) {
		image_settle(f->image);
		if (f->syncs_names)
			names_settle();
		f->syncs_names = false;
	}
	pthread_mutex_unlock(&lock);
	return code;
}

/* With the last file everything is over: a cut that was still to come comes now. */
static void
image_close(struct image *image)
{
	int open = 0;

	image->open--;
	for (size_t i = 0; i < IMAGES_MAX; i++)
		open += images[i].open;
	if (open > 0)
		return;
	if (planned)
		cut_now();
	for (size_t i = 0; i < IMAGES_MAX; i++)
		if (images[i].path != NULL)
			image_free(&images[i]);
}

static int
file_close(sqlite3_file *file)
{
	int code = under(file)->pMethods->xClose(under(file));

	pthread_mutex_lock(&lock);
	if (image_of(file) != NULL)
		image_close(image_of(file));
	pthread_mutex_unlock(&lock);
	return code;
}

/* What is not the shim's business is done by the file underneath. */

static int
file_read(sqlite3_file *file, void *data, int bytes, sqlite3_int64 offset)
{
	return under(file)->pMethods->xRead(under(file), data, bytes, offset);
}

static int
file_size(sqlite3_file *file, sqlite3_int64 *bytes)
{
	return under(file)->pMethods->xFileSize(under(file), bytes);
}

static int
file_lock(sqlite3_file *file, int level)
{
	return under(file)->pMethods->xLock(under(file), level);
}

static int
file_unlock(sqlite3_file *file, int level)
{
	return under(file)->pMethods->xUnlock(under(file), level);
}

static int
file_check_lock(sqlite3_file *file, int *locked)
{
	return under(file)->pMethods->xCheckReservedLock(under(file), locked);
}

static int
file_control(sqlite3_file *file, int op, void *arg)
{
	return under(file)->pMethods->xFileControl(under(file), op, arg);
}

static int
file_sector_size(sqlite3_file *file)
{
	return under(file)->pMethods->xSectorSize(under(file));
}

static int
file_characteristics(sqlite3_file *file)
{
	return under(file)->pMethods->xDeviceCharacteristics(under(file));
}

static int
file_shm_map(sqlite3_file *file, int region, int bytes, int extend, void volatile **memory)
{
	return under(file)->pMethods->xShmMap(under(file), region, bytes, extend, memory);
}

static int
file_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
	return under(file)->pMethods->xShmLock(under(file), offset, n, flags);
}

static void
file_shm_barrier(sqlite3_file *file)
{
	under(file)->pMethods->xShmBarrier(under(file));
}

static int
file_shm_unmap(sqlite3_file *file, int remove)
{
	return under(file)->pMethods->xShmUnmap(under(file), remove);
}

/* Version 2 has shared memory for the log, and no mapped reading and writing past these. */
static const sqlite3_io_methods file_methods = {
	.iVersion = 2,
	.xClose = file_close,
	.xRead = file_read,
	.xWrite = file_write,
	.xTruncate = file_truncate,
	.xSync = file_sync,
	.xFileSize = file_size,
	.xLock = file_lock,
	.xUnlock = file_unlock,
	.xCheckReservedLock = file_check_lock,
	.xFileControl = file_control,
	.xSectorSize = file_sector_size,
	.xDeviceCharacteristics = file_characteristics,
	.xShmMap = file_shm_map,
	.xShmLock = file_shm_lock,
	.xShmBarrier = file_shm_barrier,
	.xShmUnmap = file_shm_unmap,
};

/* --- the VFS */

static int
vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *flags_r)
{
	struct power_file *f = (struct power_file *)file;
	int followed = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL;
	int code;

	(void)vfs;
	*f = (struct power_file){ .under = (sqlite3_file *)(f + 1) };
	code = under_vfs->xOpen(under_vfs, name, f->under, flags, flags_r);
	if (f->under->pMethods == NULL)
		return code;
	f->base.pMethods = &file_methods;
	pthread_mutex_lock(&lock);
	if (code == SQLITE_OK && name != NULL && (flags & followed) != 0)
		f->image = image_open(name);
	f->database = (flags & SQLITE_OPEN_MAIN_DB) != 0;
	f->syncs_names = !f->database && (flags & SQLITE_OPEN_CREATE) != 0;
	pthread_mutex_unlock(&lock);
	return code;
}

static int
vfs_delete(sqlite3_vfs *vfs, const char *name, int sync_directory)
{
	int code = under_vfs->xDelete(under_vfs, name, sync_directory);
	struct image *image;

	(void)vfs;
	pthread_mutex_lock(&lock);
	image = code == SQLITE_OK ? image_find(name) : NULL;
	if (image != NULL && (sync_directory || !image->named))
		image_free(image);
	else if (image != NULL)
		image->deleted = true;
	pthread_mutex_unlock(&lock);
	return code;
}

/* All but opening and deleting is done by the system's, whose other functions do not look at what
 * they are called with. */
void
power_on(void)
{
	if (under_vfs == NULL) {
		under_vfs = sqlite3_vfs_find(NULL);
		power_vfs = *under_vfs;
		power_vfs.zName = "power";
		power_vfs.pNext = NULL;
		power_vfs.szOsFile += (int)sizeof(struct power_file);
		power_vfs.xOpen = vfs_open;
		power_vfs.xDelete = vfs_delete;
	}
	sqlite3_vfs_register(&power_vfs, 1);
}

void
power_off(void)
{
	sqlite3_vfs_register(under_vfs, 1);
}
