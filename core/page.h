/* SPDX-License-Identifier: MIT */
/*
 * Pages of a list: a page ends at its limit or when its rows hold PAGE_BYTES_MAX, whichever
 * comes first, and has at least one row while rows remain.
 *
 *	page_begin(&page, c->arena, limit);
 *	while (page_more(&page, q))
 *		page_add(&page, row, bytes);
 *	if (page.more)
 *		resp->cursor = ...the last row's id;
 */
#ifndef TITEN_CORE_PAGE_H
#define TITEN_CORE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/db.h"

/* An answer well below what clients take in one message. */
#define PAGE_BYTES_MAX ((size_t)512 << 10)
#define PAGE_ROW_BYTES 512 /* what a row costs besides its long texts */

struct page {
	void **rows;
	size_t rows_n;
	size_t rows_max;
	size_t bytes;
	bool more; /* the page is full and rows remain */
};

/* The caller's limit, made to fit. */
static inline int64_t
page_limit(bool given, int64_t limit, int64_t standard, int64_t most)
{
	if (!given)
		return standard;
	return limit > most ? most : limit;
}

static inline void
page_begin(struct page *page, struct arena *arena, int64_t limit)
{
	page->rows = arena_alloc(arena, (size_t)limit * sizeof(*page->rows));
	page->rows_n = 0;
	page->rows_max = (size_t)limit;
	page->bytes = 0;
	page->more = false;
}

/* Step to the next row that has room. */
static inline bool
page_more(struct page *page, struct query *q)
{
	if (!query_row(q))
		return false;
	page->more = page->rows_n == page->rows_max || page->bytes >= PAGE_BYTES_MAX;
	return !page->more;
}

static inline void
page_add(struct page *page, void *row, size_t bytes)
{
	page->rows[page->rows_n++] = row;
	page->bytes += bytes;
}

#endif
