package wire

import (
	"net/http"

	"ken/internal/serve/auth"
	"ken/internal/serve/problem"
)

// A Problem is why there is no success.
type Problem = problem.Problem

// Bad is the problem of a request that cannot be understood.
func Bad(detail string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Code: "invalid", Detail: detail}
}

// Missing is the problem of something that does not exist, or is not for the caller who
// asks.
func Missing(what string) *Problem {
	return &Problem{Status: http.StatusNotFound, Code: "not-found", Detail: what}
}

// ForPerson is the problem of something that a person decides, where the caller who
// asks decides nothing: what it is, and what to do instead.
func ForPerson(what, instead string) *Problem {
	return &Problem{
		Status: http.StatusForbidden, Code: "person-decides",
		Detail: what + ", and the token of this request cannot approve: it is an agent's, or an issuer's without the scope " + auth.DecideScope + "; " + instead,
	}
}

// NoSuchPath answers what is served nowhere.
func NoSuchPath(w http.ResponseWriter, r *http.Request) {
	(&Problem{
		Status: http.StatusNotFound, Code: "no-such-path",
		Detail: "nothing is served at " + r.URL.Path + "; GET /api/v1/openapi.json describes what is",
	}).Write(w)
}
