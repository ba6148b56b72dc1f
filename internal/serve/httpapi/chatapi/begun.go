package chatapi

import (
	"cmp"
	"net/http"
	"strings"

	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/talk/session"
	"ken/internal/untrusted"
)

// longestName is how much is kept of the name of an agent, in characters.
const longestName = 60

// beginner is the name of the agent that begins a session: the one that it gives
// the session, or else the site or the program that asks. It is for people to
// read. All agents of a principal may have the same token, so it tells none of
// them from another. Of a person it is empty.
func beginner(r *wire.Request, given string) string {
	if r.Who.Decides {
		return ""
	}
	program, _, _ := strings.Cut(r.UserAgent(), "/")
	return cmp.Or(untrusted.Line(cmp.Or(given, r.Header.Get("Origin"), program), longestName), "agent")
}

// Opens reports whether a session of their principal is open to a caller: all
// are to a person, and to an agent those that agents began. It must not read, go
// on with or stop what a person began: what was said and agreed to there was not
// meant for it.
func Opens(who auth.Identity, head session.Head) bool { return who.Decides || head.BegunBy != "" }

// closed refuses a session that is not open to the caller.
func closed(who auth.Identity, head session.Head) error {
	if Opens(who, head) {
		return nil
	}
	return &wire.Problem{
		Status: http.StatusForbidden, Code: "person-began",
		Detail: "a person began this session, and the token of this request cannot approve: it is an agent's, or an issuer's without the scope " + auth.DecideScope +
			"; begin one with POST /api/v1/sessions, or have the person go on in theirs, on the page or with ken chat; GET /api/v1/sessions lists those that are open to you",
	}
}
