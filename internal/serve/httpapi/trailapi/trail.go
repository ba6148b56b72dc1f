package trailapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"ken/capability"
	"ken/internal/govern/audit"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
)

// A record is a line of the trail as it is kept, with its id in front.
type record = json.RawMessage

func recordOf(e *audit.Entry) record {
	out := make([]byte, 0, len(e.Line)+len(e.ID)+16)
	out = fmt.Appendf(out, `{"id":%q,`, e.ID) // of digits, letters and dashes
	return append(out, bytes.TrimSpace(e.Line)[1:]...)
}

// sees reports whether a caller may see a record: operators all, others their
// own.
func sees(who auth.Identity, r *audit.Record) bool {
	return who.Operator || r.IsOf(who.Principal)
}

type trailPage struct {
	Records  []record     `json:"records"`
	Older    audit.Cursor `json:"older,omitempty"` // where the next page begins
	Problems []string     `json:"problems,omitempty"`
}

func trailParams() []wire.Param {
	return []wire.Param{
		{Name: "event", About: "only these events", Many: true, Words: audit.EventNames()},
		{Name: "ext", About: "only this extension"},
		{Name: "target", About: "only calls of this capability id"},
		{Name: "session"},
		{Name: "user", About: "only calls of this user"},
		{Name: "status", Words: []string{"STARTED", "COMPLETED", "FAILED", "TIMEOUT", "DENIED", "CANCELLED", "PENDING", "UNKNOWN"}},
		{Name: "level", Words: []string{"DEBUG", "INFO", "WARNING", "ERROR"}},
		{Name: "decision", Words: []string{"allow", "ask", "deny"}},
		{Name: "since", Type: wire.Instant},
		{Name: "until", Type: wire.Instant},
		{Name: "text", About: "only records with this text in the command line, the target or the error"},
		{Name: "older", About: "the member older of the previous page"},
		{Name: "all", About: "for operators: also the records of the chains themselves", Type: wire.Yes},
	}
}

func (a *api) trail(r *wire.Request) (any, error) {
	s := audit.Search{
		Filter: audit.Filter{
			Extension: r.Text("ext"), Session: r.Text("session"), Since: r.Instant("since"), Until: r.Instant("until"),
		},
		Target: r.Text("target"), User: r.Text("user"), Status: audit.Status(r.Text("status")), Level: r.Text("level"),
		Decision: r.Text("decision"), Text: r.Text("text"), Chains: r.Who.Operator && r.Yes("all"),
	}
	if r.Has("event") {
		s.Events = r.Texts("event")
	}
	if !r.Who.Operator {
		if r.Who.Principal.ID == "" {
			return trailPage{Records: []record{}}, nil
		}
		s.Of = &r.Who.Principal
	}
	// What is rare in a long trail is searched for in steps.
	ctx, cancel := context.WithTimeout(r.Context(), a.searchFor)
	defer cancel()
	dir, missing := a.dir(ctx)
	page, err := audit.Newest(ctx, dir, s, audit.Cursor(r.Text("older")), listed(r))
	if err != nil {
		return nil, err
	}
	out := trailPage{Records: make([]record, 0, len(page.Entries)), Older: page.Older}
	for i := range page.Entries {
		out.Records = append(out.Records, recordOf(&page.Entries[i]))
	}
	if missing != nil {
		page.Problems = append(page.Problems, fmt.Errorf("the records of other replicas cannot be read: %w", missing))
	}
	out.Problems = faults(r, page.Problems)
	return out, nil
}

// dir returns the folder with the chains of all machines. Where those of others cannot be
// read it is that of this machine, and the error says why.
func (c Config) dir(ctx context.Context) (string, error) {
	if c.View == nil {
		return c.AuditDir, nil
	}
	dir, err := c.View(ctx)
	if err != nil {
		return c.AuditDir, err
	}
	return dir, nil
}

// faults tells what could not be read. Files and places are the operator's.
func faults(r *wire.Request, list []error) []string {
	const most = 20
	var out []string
	switch {
	case len(list) == 0:
	case !r.Who.Operator:
		out = []string{"part of the audit log cannot be read; the operator sees more with ken audit verify"}
	default:
		for _, err := range list[:min(most, len(list))] {
			out = append(out, err.Error())
		}
		if n := len(list) - most; n > 0 {
			out = append(out, fmt.Sprintf("and %d more; ken audit verify names them all", n))
		}
	}
	return out
}

// find returns a record that the caller may see.
func (a *api) find(r *wire.Request) (audit.Entry, error) {
	dir, _ := a.dir(r.Context())
	e, err := audit.Find(dir, audit.ID(r.PathValue("id")))
	switch {
	case err != nil && capability.KindOf(err) != capability.NotFound && r.Who.Operator:
		return e, &wire.Problem{Status: http.StatusInternalServerError, Code: "unreadable", Detail: err.Error()}
	case err != nil || !sees(r.Who, &e.Record):
		return audit.Entry{}, wire.Missing("there is no such record; GET /api/v1/audit lists those that you may see")
	}
	return e, nil
}

// A proof convinces a reader who has nothing else of the audit log.
type proof struct {
	audit.Proof
	PublicKey string `json:"publicKey"`
}

func (a *api) proof(r *wire.Request) (any, error) {
	e, err := a.find(r)
	if err != nil {
		return nil, err
	}
	select { // it reads a whole chain: one at a time, as verify
	case a.proving <- struct{}{}:
		defer func() { <-a.proving }()
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	p, key, err := a.Prove(e.ID)
	switch {
	case err == nil:
		return proof{p, key}, nil
	case r.Who.Operator:
		return nil, &wire.Problem{Status: http.StatusConflict, Code: "unproven", Detail: err.Error()}
	}
	return nil, &wire.Problem{
		Status: http.StatusConflict, Code: "unproven",
		Detail: "no signature covers this record now; try again in a moment; if that does not help, ask the operator to run ken audit verify",
	}
}

type verified struct {
	OK     bool                `json:"ok"`
	Chains []audit.ChainReport `json:"chains"`
	Strays []string            `json:"strays,omitempty"`
	TookMS int64               `json:"tookMS"`
}

// verify checks the trail. That takes the disk for itself, so one at a time.
func (a *api) verify(r *wire.Request) (any, error) {
	if err := r.Decode(&struct{}{}); err != nil {
		return nil, err
	}
	select {
	case a.verifying <- struct{}{}:
	default:
		return nil, &wire.Problem{Status: http.StatusConflict, Code: "busy", Detail: "the audit log is being verified already; wait until that has ended"}
	}
	type outcome struct {
		rep audit.Report
		err error
	}
	began, done := time.Now(), make(chan outcome, 1)
	go func() {
		rep, err := a.Verify(r.Context())
		<-a.verifying // before the answer: who has it may ask again
		done <- outcome{rep, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return nil, &wire.Problem{Status: http.StatusInternalServerError, Code: "unreadable", Detail: o.err.Error()}
		}
		out := verified{OK: o.rep.OK(), Chains: o.rep.Chains, Strays: o.rep.Strays, TookMS: time.Since(began).Milliseconds()}
		if out.Chains == nil {
			out.Chains = []audit.ChainReport{}
		}
		return out, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}
