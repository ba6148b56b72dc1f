// Package trailapi is the part of the HTTP API that is about calls: making one,
// agreeing to one, and reading what became of them.
//
// Everybody works with what is his own, and with what the desk lets him answer.
// What belongs to another principal answers as what does not exist, in the same
// words.
package trailapi

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/govern/approval"
	"ken/internal/govern/audit"
	"ken/internal/run/queue"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
)

// Config is what the routes work with. All but Redact is required.
type Config struct {
	Door *door.Door

	// Route makes the call that a slash line stands for.
	Route func(ctx context.Context, who auth.Identity, line string) (capability.Call, error)

	Desk func() (*approval.Desk, error)

	// Settle answers a ticket and Revoke takes an answer back, each on the
	// record.
	Settle func(ctx context.Context, ticket string, a approval.Answer) (approval.Ticket, error)
	Revoke func(ctx context.Context, id string, by capability.Principal, why string) error

	// Lines are what a person needs in order to decide: first exactly what will
	// run.
	Lines func(approval.Ticket) []approval.Line

	// Jobs returns the queue of calls that run later, AddJob adds to it what may be
	// called, and RecordJob records what was done with a job.
	Jobs      func() (queue.Queue, error)
	AddJob    func(context.Context, queue.Job) (queue.Job, error)
	RecordJob func(ctx context.Context, event audit.Event, j queue.Job, by capability.Principal) error

	AuditDir string

	// View returns a folder with the chains of all machines, and Follow the new records
	// of all others. Nil: there are no others.
	View   func(ctx context.Context) (dir string, err error)
	Follow func(ctx context.Context, f audit.Filter) iter.Seq2[audit.Entry, error]

	Verify func(context.Context) (audit.Report, error)
	Prove  func(audit.ID) (proof audit.Proof, publicKey string, err error)

	// Read returns a piece of a result that is kept, from a character on, the
	// first being 1. A result that is not of this principal and session is
	// [capability.NotFound].
	Read func(ctx context.Context, who capability.Principal, session, handle string, from int64) (Piece, error)

	// Opens reports whether a conversation of theirs is open to a caller who does
	// not decide. One that is not there, or cannot be read, is not.
	Opens func(ctx context.Context, who auth.Identity, session string) bool

	// Waiting ends when the server stops; those who only wait are let go then.
	Waiting context.Context

	// Redact takes secrets out of what a call writes while it runs. Nil: it is
	// sent as it comes. Results are without them in any case.
	Redact func(string) string
}

// A Piece is a part of a result that is kept.
type Piece struct {
	Handle string    `json:"handle"`
	Target string    `json:"target,omitempty"`
	Made   time.Time `json:"made,omitzero"`
	Failed bool      `json:"failed,omitempty"`
	Binary bool      `json:"binary,omitempty"`
	Text   string    `json:"text"`
	From   int64     `json:"from"`           // the first character that Text holds, from 1
	Next   int64     `json:"next,omitempty"` // where to go on; 0: this was the end
	Chars  int64     `json:"chars"`          // that are kept
	Left   string    `json:"left,omitempty"` // what is not in Text, and how to get it
}

const (
	keepAlive = 20 * time.Second // between two signs of life in a stream

	usualList = 100
	longList  = 500
)

type api struct {
	Config
	hub       *hub
	verifying chan struct{} // has room for one
	proving   chan struct{} // likewise
	keepAlive time.Duration
	searchFor time.Duration // how long one request may look through the trail
}

// Routes returns the operations. They may be used by any number of goroutines, and
// hold nothing that needs closing: what follows the trail for the feeds ends
// with the last of them.
func Routes(cfg Config) []wire.Route {
	a := newAPI(cfg)
	return append(a.routes(), a.jobRoutes()...)
}

func newAPI(cfg Config) *api {
	return &api{Config: cfg, hub: newHub(cfg), verifying: make(chan struct{}, 1), proving: make(chan struct{}, 1), keepAlive: keepAlive, searchFor: 3 * time.Second}
}

func (a *api) routes() []wire.Route {
	limit := wire.Param{Name: "limit", About: "maximum number, up to 500; default: 100", Type: wire.Whole}
	return []wire.Route{
		{
			Method: http.MethodPost, Path: "/api/v1/invoke", Name: "invoke", Group: "calls", Summary: "Make one call; with Accept: text/event-stream the output is streamed",
			Body: invocation{}, Answer: invoked{}, Stream: a.invoke,
		}, {
			Method: http.MethodGet, Path: "/api/v1/results/{handle}", Name: "readResult", Group: "calls", Summary: "Read more of a stored result",
			Query: []wire.Param{
				{Name: "session", About: "the session of the call; default: api"},
				{Name: "from", About: "the first character to read; 1 is the beginning", Type: wire.Whole},
			},
			Answer: Piece{}, Serve: a.result,
		}, {
			Method: http.MethodGet, Path: "/api/v1/approvals", Name: "listApprovals", Group: "approvals", Summary: "Open and settled approval requests, newest first",
			Query:  []wire.Param{{Name: "state", About: "only requests in this state; default: pending", Words: []string{"pending", "granted", "denied", "expired", "all"}}, limit},
			Answer: tickets{}, Serve: a.approvals,
		}, {
			Method: http.MethodPost, Path: "/api/v1/approvals/{id}", Name: "settleApproval", Group: "approvals", Summary: "Grant or deny an approval request",
			Body: answer{}, Answer: ticket{}, Decision: "open the page, or run ken approve", Serve: a.settle,
		}, {
			Method: http.MethodGet, Path: "/api/v1/grants", Name: "listGrants", Group: "approvals", Summary: "Grants in force, newest first",
			Query: []wire.Param{limit}, Answer: grants{}, Serve: a.grants,
		}, {
			Method: http.MethodPost, Path: "/api/v1/grants/{id}/revoke", Name: "revokeGrant", Group: "approvals", Summary: "Revoke a grant",
			Body: revocation{}, Decision: "open the page, or run ken approve revoke", Serve: a.revoke,
		}, {
			Method: http.MethodGet, Path: "/api/v1/audit", Name: "readTrail", Group: "trail", Summary: "Records of the audit log, newest first",
			Query: append(trailParams(), limit), Answer: trailPage{}, Serve: a.trail,
		}, {
			Method: http.MethodGet, Path: "/api/v1/audit/{id}", Name: "readStory", Group: "trail", Summary: "All records of one call, oldest first",
			Answer: story{}, Serve: a.story,
		}, {
			Method: http.MethodGet, Path: "/api/v1/audit/{id}/proof", Name: "proveRecord", Group: "trail", Summary: "The proof that a record is in the signed audit log",
			Answer: proof{}, Serve: a.proof, Patience: 5 * time.Minute,
		}, {
			Method: http.MethodPost, Path: "/api/v1/audit/verify", Name: "verifyTrail", Group: "trail", Summary: "Verify every chain of the audit log against its signatures",
			Body: struct{}{}, Answer: verified{}, Serve: a.verify, Operator: true, Patience: 5 * time.Minute,
		}, {
			Method: http.MethodGet, Path: "/api/v1/feed", Name: "feed", Group: "trail", Summary: "Stream changes: catalog, open approval requests, new records",
			Stream: a.feed,
		},
	}
}

// listed returns how many a list may hold.
func listed(r *wire.Request) int { return max(1, min(r.Whole("limit", usualList), longList)) }

// isOpen reports whether the caller may read what was done in a session of
// their principal: a person in all, and an agent in its own.
func (a *api) isOpen(r *wire.Request, session string) bool {
	return r.Who.Decides || strings.HasPrefix(session, sessionsOf(r.Who)) || a.Opens(r.Context(), r.Who, session)
}

func (a *api) result(r *wire.Request) (any, error) {
	from := max(1, int64(r.Whole("from", 1)))
	session, named := sessionOf(r, r.Text("session")), r.Text("session")
	p, err := a.Read(r.Context(), r.Who.Principal, session, r.PathValue("handle"), from)
	if named != "" && named != session && capability.KindOf(err) == capability.NotFound && err != nil && a.isOpen(r, named) {
		// It is a conversation that an agent began, which has its plain name.
		p, err = a.Read(r.Context(), r.Who.Principal, named, r.PathValue("handle"), from)
	}
	if capability.KindOf(err) == capability.NotFound && err != nil {
		return nil, wire.Missing("result not found in this session; results are kept for a while (results.keep) and read only by their caller in the same session")
	}
	return p, err
}
