package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/govern/audit"
)

// Settle answers a ticket for a person. The answer is on the record before it
// holds, so that no effect is older than the consent to it; one that cannot be
// recorded does not hold. Where somebody else was faster the record is followed by
// one that says so.
func (a *App) Settle(ctx context.Context, ticket string, answer approval.Answer) (approval.Ticket, error) {
	desk, log, err := a.deskAndTrail()
	if err != nil {
		return approval.Ticket{}, err
	}
	var rec audit.Record
	recorded := false
	t, err := desk.SettleAfter(ctx, ticket, answer, func(t approval.Ticket) error {
		if recorded {
			return nil
		}
		rec = answerRecord(t, answer)
		_, err := log.Append(ctx, rec)
		recorded = err == nil
		return err
	})
	if err != nil && recorded {
		rec.Metadata.Notes["void"] = "the answer did not hold: " + err.Error()
		_, failed := log.Append(context.WithoutCancel(ctx), rec)
		err = errors.Join(err, failed)
	}
	return t, err
}

func answerRecord(t approval.Ticket, answer approval.Answer) audit.Record {
	rec := audit.ForCall(t.Question.Call)
	rec.Event, rec.Rule, rec.UserID, rec.Origin = audit.Approval, t.Question.Rule, answer.By.ID, string(capability.ByPerson)
	rec.Metadata.Notes = map[string]string{"ticket": t.ID, "answer": string(answer.Effect), "scope": string(answer.Scope), "note": answer.Note}
	if !answer.Until.IsZero() {
		rec.Metadata.Notes["until"] = answer.Until.UTC().Format("2006-01-02T15:04:05Z")
	}
	return rec
}

// Revoke takes an answer back, on the record.
func (a *App) Revoke(ctx context.Context, id string, by capability.Principal, why string) error {
	desk, log, err := a.deskAndTrail()
	if err != nil {
		return err
	}
	if err := desk.Revoke(ctx, id, by, why); err != nil {
		return err
	}
	rec := audit.Record{Event: audit.Approval, UserID: by.ID, Tenant: by.Tenant, Origin: string(capability.ByPerson)}
	rec.Metadata.Notes = map[string]string{"ticket": id, "answer": "revoke", "note": why}
	_, err = log.Append(ctx, rec)
	return err
}

func (a *App) deskAndTrail() (*approval.Desk, *audit.Log, error) {
	desk, err := a.desk.Get()
	if err != nil {
		return nil, nil, err
	}
	log, err := a.trail.Get()
	return desk, log, err
}

// VerifyTrail checks every chain of the trail, against what the store remembers
// and against heads that were kept elsewhere.
func (a *App) VerifyTrail(ctx context.Context, elsewhere ...[]byte) (audit.Report, error) {
	heads, err := a.heads(ctx)
	if err != nil {
		return audit.Report{}, fmt.Errorf("verify the trail: what the store remembers of it cannot be read: %w", err)
	}
	elsewhere = append(elsewhere, heads...)
	key, err := a.publicKey()
	_, missing := os.Stat(a.Places.Audit)
	gone := errors.Is(missing, fs.ErrNotExist)
	switch {
	case errors.Is(err, fs.ErrNotExist) && gone && len(elsewhere) == 0:
		return audit.Report{}, nil // nothing was ever recorded
	case gone:
		// What is missing is told chain by chain.
		if err := os.MkdirAll(a.Places.Audit, 0o700); err != nil {
			return audit.Report{}, err
		}
	}
	if err != nil {
		return audit.Report{}, fmt.Errorf("verify the trail: the public key is missing: %w; put back what was beside the audit key", err)
	}
	return audit.Verify(a.Places.Audit, a.checkpoints(), key, elsewhere...)
}

// ProveRecord makes the proof of a record, and gives the key that checks it.
func (a *App) ProveRecord(id audit.ID) (audit.Proof, string, error) {
	key, err := a.publicKey()
	if err != nil {
		return audit.Proof{}, "", fmt.Errorf("prove %s: the public key is missing: %w", id, err)
	}
	p, err := audit.Prove(a.Places.Audit, a.checkpoints(), key, id)
	return p, key, err
}

func (a *App) publicKey() (string, error) {
	b, err := os.ReadFile(a.auditKey() + ".pub")
	return strings.TrimSpace(string(b)), err
}
