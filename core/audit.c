/* SPDX-License-Identifier: MIT */
/* One row for each action. */
#include "core/audit.h"

#include "core/db.h"

enum status
audit_append(struct call *c, const char *action, const char *resource, const char *detail)
{
	struct id id = call_id(c);

	return db_run(c->db,
	    "INSERT INTO audit (public_id, organization, actor, action, resource, detail, "
	    "created_ms)"
	    " VALUES ($1, $2, $3, $4, $5, $6, $7)",
	    VALUES(as_id(&id), as_int(c->who.organization), as_int(c->who.principal),
		as_text(action), as_text(resource), as_text(detail), as_int(c->now_ms)));
}
