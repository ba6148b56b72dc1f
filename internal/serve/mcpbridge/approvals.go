// Package mcpbridge connects the server for MCP clients with the rest of Ken:
// with approvals, with the MCP servers behind Ken, and with HTTP.
package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/govern/approval"
	"ken/internal/serve/mcpserver"
	"ken/internal/untrusted"
)

// Approvals asks people through their MCP clients.
type Approvals struct{ approval.Recorded }

// Ask returns what a person must answer before the call that failed with err can
// go on; nil if there is nothing to answer.
func (a Approvals) Ask(ctx context.Context, err error) (*mcpserver.Question, error) {
	q, ok := errors.AsType[*door.Question](err)
	if !ok {
		return nil, nil
	}
	out := &mcpserver.Question{Name: q.Name, Text: q.Text}
	switch q.Name {
	case door.AnswerAgain:
		out.Answer, err = json.Marshal(q.Effect)
		return out, err
	case door.AnswerConsent:
		desk, err := a.Desk()
		if err != nil {
			return nil, err
		}
		t, err := desk.Get(ctx, q.Ticket)
		if err != nil {
			return nil, err
		}
		out.Ticket, out.Wide = t.ID, t.Question.Widest == approval.Session
		for _, l := range t.ConsentLines() {
			out.Lines = append(out.Lines, mcpserver.Line{Name: l.Name, Text: l.Text})
		}
		for _, o := range t.Offers {
			switch {
			case o.Scope == approval.Always && o.Covers == approval.CoverPrefix:
				out.Prefix = o.Text
			case o.Scope == approval.Always && o.Covers == approval.CoverCall:
				out.Always = o.Text
			}
		}
		out.Answer, err = json.Marshal(t.ID)
		return out, err
	}
	return nil, fmt.Errorf("ask the client: unknown question %q", q.Name)
}

// Answer settles a ticket with the answer that a person gave in a client. A
// client that declined by itself settles nothing: the audit log says that it did.
func (a Approvals) Answer(ctx context.Context, who capability.Principal, r mcpserver.Reply) error {
	said := approval.Answer{By: who, Effect: approval.Yes, Scope: approval.Once, Via: untrusted.Line(r.Client, 80)}
	switch r.Decision {
	case mcpserver.Unasked:
		return a.LeftOpen(ctx, r.Ticket, said.Via, r.Took)
	case mcpserver.AllowOnce:
	case mcpserver.AllowSession:
		said.Scope, said.Covers = approval.Session, approval.CoverTool
	case mcpserver.AllowAlways:
		said.Scope, said.Covers = approval.Always, approval.CoverCall
	case mcpserver.AllowPrefix:
		said.Scope, said.Covers = approval.Always, approval.CoverPrefix
	default:
		said.Effect = approval.No
	}
	_, err := a.Settle(ctx, r.Ticket, said)
	if errors.Is(err, approval.ErrSettled) && said.Effect == approval.Yes {
		// A client whose answer was lost sends it again. The desk decides in any
		// case whether the call may run.
		return nil
	}
	return err
}
