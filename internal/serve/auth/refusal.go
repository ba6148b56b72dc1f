package auth

import (
	"errors"
	"net/http"
	"time"
)

// A refusal is the answer to a caller that is not let in.
type refusal struct {
	status    int
	code      string
	detail    string // for a program
	say       string // for a person; empty: they have not tried
	challenge string
	wait      time.Duration
}

const where = "; send Authorization: Bearer TOKEN with a token of this server: for an agent one of ken token add NAME, for yourself the one in state/token of Ken's folder (~/.ken or KEN_HOME); serve.auth: off needs none, on this machine only"

// answer makes the refusal for a reason, counts it as a failure, and logs it if
// there are not too many.
func (g *guard) answer(r *http.Request, err error) refusal {
	within := g.limits.failed(r)
	if down, ok := errors.AsType[*downError](err); ok {
		if within {
			g.Log.Warn("the issuer of serve.oidc does not answer", "why", down.cause, "from", r.RemoteAddr)
		}
		return refusal{
			status: http.StatusServiceUnavailable, code: "issuer-unavailable", wait: retryIssuer,
			detail: "the issuer that serve.oidc names does not answer, so its tokens cannot be checked; the log says why",
			say:    "The sign-in service does not answer. Try again in a few seconds.",
		}
	}
	if errors.Is(err, errBehind) {
		return refusal{
			status: http.StatusServiceUnavailable, code: "unavailable", wait: time.Second,
			detail: "this server cannot reach the store that it shares with others, so it cannot know whether this sign-in was revoked; try again",
			say:    "Ken cannot reach its store. Try again in a few seconds.",
		}
	}
	if errors.Is(err, errNotAdmitted) {
		if within {
			g.Log.Warn("sign-in not admitted", "from", r.RemoteAddr)
		}
		return refusal{
			status: http.StatusForbidden, code: "not-admitted",
			detail: "the issuer knows them, but they have none of the roles in serve.oidc.admit",
			say:    "The sign-in service knows you, but you have none of the roles that may use this server (serve.oidc.admit). Ask the operator.",
		}
	}
	if !within || errors.Is(err, errTooMany) {
		return refusal{
			status: http.StatusTooManyRequests, code: "too-many-attempts", wait: refill,
			detail: "too many attempts without the right token; the right one is let in at any time",
			say:    "Too many attempts. Wait a few seconds.",
		}
	}
	g.Log.Warn("a request without the right token", "why", err, "from", r.RemoteAddr)
	// What exactly is wrong with a token is for the log.
	a := refusal{status: http.StatusUnauthorized, code: "unauthorized", detail: errNoToken.Error() + where, challenge: challenge}
	switch {
	case errors.Is(err, errNoToken):
	case errors.Is(err, errExpired):
		a.code, a.detail, a.say = "expired-token", errExpired.Error()+where, "Your sign-in has expired. Sign in again."
		a.challenge += `, error="invalid_token"`
	case errors.Is(err, errAgentToken):
		a.detail, a.say = errAgentToken.Error()+"; open the link that ken serve prints, or use the file token in Ken's state folder", "This token is for agents. Open the link that ken serve prints, or paste the token in the file token in Ken's state folder."
		a.challenge += `, error="invalid_token"`
	default:
		a.detail, a.say = errWrongToken.Error()+where, "This token is not valid."
		a.challenge += `, error="invalid_token"`
	}
	return a
}
