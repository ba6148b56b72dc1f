package auth

import (
	"context"
	"net/http"
	"time"

	"ken/capability"
)

// An Identity is who asks, as far as a surface must know. The zero value is
// no one, who may do nothing.
type Identity struct {
	Principal capability.Principal

	// Name is what a person is called, for showing alone.
	Name string

	// Operator runs this Ken: they also see what is hidden from
	// models and what belongs to the instance as a whole.
	Operator bool

	// Owner started Ken, and proved it with the owner's token or with a cookie from
	// signing in with it. It is false for agents, for operators whom an issuer names,
	// and where serve.auth is off, because then Ken cannot know who asks.
	Owner bool

	// Local: only this machine reaches the server, by no other name than those of the
	// loopback.
	Local bool

	// Began is when the person signed in, if a browser's cookie let them in.
	Began time.Time

	// Decides: they may decide for the principal: agree to calls, answer what
	// is asked, review, set, and make calls as a person does, by a slash. It is
	// false for an agent, who works for the same principal and must not consent
	// to its own calls. See [Guard] for who has it.
	Decides bool

	// SignedIn: a browser's cookie let them in, which POST to [LogoutPath]
	// ends. A program's token cannot be signed out.
	SignedIn bool

	// Person: a person's browser asks, from a page of ours. A token says
	// nothing of who holds it: with one this is false, whosever it is.
	Person bool

	// Still reports whether what let them in still holds: a cookie until it
	// ends or is signed out, an issuer's token until it ends. Nil: always. It
	// may be called by many goroutines.
	Still func() bool
}

// lookAgain is how often a caller that stays is checked again.
const lookAgain = 2 * time.Second

// While returns a context that ends seconds after what let them in holds no
// more. It is for answers that stay open. The caller calls cancel.
func (who Identity) While(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	ctx, cancel = context.WithCancel(ctx)
	if who.Still == nil {
		return ctx, cancel
	}
	go func() {
		tick := time.NewTicker(lookAgain)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if !who.Still() {
					cancel()
					return
				}
			}
		}
	}()
	return ctx, cancel
}

// A Handler answers the requests of those who were let in.
type Handler interface {
	ServeAs(w http.ResponseWriter, r *http.Request, who Identity)
}

// A HandlerFunc is a function as a [Handler].
type HandlerFunc func(w http.ResponseWriter, r *http.Request, who Identity)

// ServeAs calls f.
func (f HandlerFunc) ServeAs(w http.ResponseWriter, r *http.Request, who Identity) { f(w, r, who) }

// Owner returns the identity of the user who started the program.
func Owner(p capability.Principal) Identity {
	return Identity{Principal: p, Name: p.ID, Operator: true, Decides: true}
}
