/* SPDX-License-Identifier: MIT */
/* Who the caller is: what the key ring knows of its key. */
#include "core/handlers.h"
#include "core/scopes.h"

const struct rule principal_get_rules[] = {
	RULES_END,
};

enum status
principal_get(struct call *c, const PB(PrincipalGetRequest) *req, PB(Principal) *resp)
{
	(void)req;
	resp->organization_id = arena_text(c->arena, c->who.organization_id);
	resp->principal_id = arena_text(c->arena, c->who.principal_id);
	resp->has_principal_kind = true;
	resp->principal_kind = (PB(Principal__Kind))c->who.principal_kind;
	resp->key_id = arena_text(c->arena, c->who.key_id);
	resp->label = arena_text(c->arena, c->who.label);
	resp->scopes = scope_list(c->arena, c->who.scopes, &resp->n_scopes);
	return STATUS_OK;
}
