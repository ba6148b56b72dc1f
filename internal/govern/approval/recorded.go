package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"ken/capability"
	"ken/internal/govern/audit"
)

// SettleRecorded is [Desk.Settle] for a person, with a record in the audit log.
// The record is written before the answer takes effect, so that no effect is older
// than its approval; an answer that cannot be recorded does not take effect. If
// another answer came first, a second record says so.
func (d *Desk) SettleRecorded(ctx context.Context, log *audit.Log, id string, a Answer) (Ticket, error) {
	var rec audit.Record
	recorded := false
	t, err := d.SettleAfter(ctx, id, a, func(t Ticket) error {
		if recorded {
			return nil
		}
		rec = answerRecord(t, a)
		_, err := log.Append(ctx, rec)
		recorded = err == nil
		return err
	})
	if err != nil && recorded {
		rec.Metadata.Notes["void"] = "the answer was not valid: " + err.Error()
		_, failed := log.Append(context.WithoutCancel(ctx), rec)
		err = errors.Join(err, failed)
	}
	return t, err
}

func answerRecord(t Ticket, a Answer) audit.Record {
	rec := audit.ForCall(t.Question.Call)
	rec.Event, rec.Rule, rec.UserID, rec.Origin = audit.Approval, t.Question.Rule, a.By.ID, string(capability.ByPerson)
	rec.Metadata.Notes = map[string]string{"ticket": t.ID, "answer": string(a.Effect), "scope": string(a.Scope), "note": a.Note}
	if a.Via != "" {
		rec.Metadata.Notes["via"] = a.Via
	}
	if !a.Until.IsZero() {
		rec.Metadata.Notes["until"] = a.Until.UTC().Format("2006-01-02T15:04:05Z")
	}
	return rec
}

// RevokeRecorded is [Desk.Revoke] with a record in the audit log.
func (d *Desk) RevokeRecorded(ctx context.Context, log *audit.Log, id string, by capability.Principal, why string) error {
	if err := d.Revoke(ctx, id, by, why); err != nil {
		return err
	}
	rec := audit.Record{Event: audit.Approval, UserID: by.ID, Tenant: by.Tenant, Origin: string(capability.ByPerson)}
	rec.Metadata.Notes = map[string]string{"ticket": id, "answer": "revoke", "note": why}
	_, err := log.Append(ctx, rec)
	return err
}

// Recorded is a desk together with the audit log that its answers are recorded
// in. Both are opened when they are first needed.
type Recorded struct {
	Desk func() (*Desk, error)
	Log  func() (*audit.Log, error)
}

// Settle is [Desk.SettleRecorded].
func (r Recorded) Settle(ctx context.Context, id string, a Answer) (Ticket, error) {
	desk, log, err := r.open()
	if err != nil {
		return Ticket{}, err
	}
	return desk.SettleRecorded(ctx, log, id, a)
}

// LeftOpen records that an MCP client declined an approval request by itself,
// took after it was asked. The request stays open for a person.
func (r Recorded) LeftOpen(ctx context.Context, id, client string, took time.Duration) error {
	desk, log, err := r.open()
	if err != nil {
		return err
	}
	t, err := desk.Get(ctx, id)
	if err != nil {
		return err
	}
	rec := audit.ForCall(t.Question.Call)
	rec.Event, rec.Status, rec.Rule = audit.Asked, audit.Pending, t.Question.Rule
	rec.Error = new(fmt.Sprintf("the client %s declined by itself after %d ms; the approval request %s stays open", cmp.Or(client, "without a name"), max(took, 0).Milliseconds(), t.ID))
	rec.Metadata.Notes = map[string]string{"ticket": t.ID, "answered_by": "client", "via": client}
	_, err = log.Append(ctx, rec)
	return err
}

// Revoke is [Desk.RevokeRecorded].
func (r Recorded) Revoke(ctx context.Context, id string, by capability.Principal, why string) error {
	desk, log, err := r.open()
	if err != nil {
		return err
	}
	return desk.RevokeRecorded(ctx, log, id, by, why)
}

func (r Recorded) open() (*Desk, *audit.Log, error) {
	desk, err := r.Desk()
	if err != nil {
		return nil, nil, err
	}
	log, err := r.Log()
	return desk, log, err
}
