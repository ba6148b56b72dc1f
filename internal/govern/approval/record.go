package approval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/store"
)

const formatVersion = 1

// A record is a ticket as it is stored. Bytes that JSON would rewrite or
// replace are kept as bytes, so that a command comes back as it was given.
type record struct {
	V         int       `json:"v"`
	Question  Question  `json:"question"` // without the three below
	Arguments []byte    `json:"arguments,omitempty"`
	Argv      [][]byte  `json:"argv,omitempty"`
	Command   []byte    `json:"command,omitempty"`
	Digest    string    `json:"digest"`
	Asked     time.Time `json:"asked"`
	Expires   time.Time `json:"expires"`
	Before    *Before   `json:"before,omitempty"`
	Voided    []Ending  `json:"voided,omitempty"`
	Answer    *Answer   `json:"answer,omitempty"`
	Grant     string    `json:"grant,omitempty"`
	Lapsed    bool      `json:"lapsed,omitempty"`
}

// answerRoom is what a question leaves free, so that whatever can be asked can
// be answered.
const answerRoom = 64 << 10

func encodeTicket(t *Ticket) ([]byte, error) {
	r := record{
		V: formatVersion, Question: t.Question, Arguments: t.Question.Call.Arguments, Command: []byte(t.Question.Command),
		Digest: t.Digest, Asked: t.Asked, Expires: t.Expires, Before: t.Before, Voided: t.Voided, Answer: t.Answer, Grant: t.Grant,
		Lapsed: t.Lapsed,
	}
	for _, arg := range t.Question.Argv {
		r.Argv = append(r.Argv, []byte(arg))
	}
	r.Question.Call.Arguments, r.Question.Argv, r.Question.Command = nil, nil, ""
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	limit := store.MaxValue
	if t.Answer == nil {
		limit -= answerRoom
	}
	if len(data) > limit {
		return nil, &capability.Error{
			Kind: capability.Invalid, Op: "store approval request for", Target: string(t.Question.Call.Target),
			Err: fmt.Errorf("%w: %d bytes, the limit is %d, and Ken never truncates a request", ErrTooLarge, len(data), limit),
			Fix: "pass large arguments in a file",
		}
	}
	return data, nil
}

func decodeTicket(id string, item store.Item) (Ticket, error) {
	var r record
	if err := strict(item, &r); err != nil {
		return Ticket{}, err
	}
	t := Ticket{
		ID: id, Question: r.Question, Digest: r.Digest, Asked: r.Asked, Expires: r.Expires,
		Before: r.Before, Voided: r.Voided, Answer: r.Answer, Grant: r.Grant, Lapsed: r.Lapsed, version: item.Version,
	}
	t.Question.Call.Arguments, t.Question.Command = r.Arguments, string(r.Command)
	for _, arg := range r.Argv {
		t.Question.Argv = append(t.Question.Argv, string(arg))
	}
	return t, nil
}

// strict decodes a value of the desk.
func strict(item store.Item, into any) error {
	if err := item.Decode(formatVersion, into); err != nil {
		return &capability.Error{
			Kind: capability.Internal, Op: "read", Target: item.Key, Err: err,
			Fix: "use the newest Ken version that wrote to this store, or revoke the answer and ask again",
		}
	}
	return nil
}

// fingerprint stands for texts in a key: different texts, different
// fingerprints.
func fingerprint(parts ...string) string {
	h := sha256.New()
	var b []byte
	for _, part := range parts {
		b = fmt.Appendf(b[:0], "%d:%s", len(part), part)
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(b[:0])[:16])
}

func subjectOf(p capability.Principal, target capability.ID) string {
	return fingerprint(p.Tenant, p.ID, string(target))
}

func kinOf(c *capability.Call) string {
	return fingerprint(c.Principal.Tenant, c.Principal.ID, string(c.Target), c.Action, c.Session)
}

const (
	ticketPrefix = "approval/ticket/"
	openPrefix   = "approval/open/"
	grantPrefix  = "approval/grant/"
)

func ticketKey(id string) string { return ticketPrefix + id }
func openKey(t *Ticket) string {
	c := &t.Question.Call
	about := []string{t.Digest, c.Session}
	if t.Question.Folder != "" { // tickets of before have none
		about = append(about, t.Question.Folder)
	}
	return openPrefix + subjectOf(c.Principal, c.Target) + "/" + fingerprint(about...)
}
func waitingKey(p capability.Principal, id string) string {
	return "approval/waiting/" + fingerprint(p.Tenant, p.ID) + "/" + id
}
func kinPrefix(kin string) string { return "approval/kin/" + kin + "/" }
func kinKey(t *Ticket) string {
	return kinPrefix(kinOf(&t.Question.Call)) + fmt.Sprintf("%016x-%s", math.MaxInt64-t.Answer.At.UnixMicro(), t.ID)
}

// quietKey is where a denial for a session stands. It holds in its folder, as grants
// do.
func quietKey(q *Question) string           { return "approval/quiet/" + fingerprint(kinOf(&q.Call), q.Folder) }
func markKey(subject string) string         { return "approval/mark/" + subject }
func pastKey(ticket string) string          { return "approval/past/" + ticket }
func grantKey(subject, id string) string    { return grantPrefix + subject + "/" + id }
func grantID(ticket, subject string) string { return ticket + "." + subject }

// splitGrant returns the ticket and the subject that a grant's id is made of.
func splitGrant(id string) (ticket, subject string, ok bool) {
	ticket, subject, ok = strings.Cut(id, ".")
	return ticket, subject, ok && plainID(ticket) && plainID(subject)
}

// plainID keeps what people type out of the rest of the store.
func plainID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// present is a value for keys that say something by being there: no value of
// the desk is empty.
const present = "1"

// A look is what several keys had, read together: each trip to the store takes time.
type look map[string]store.Item

// look reads several keys. One that is being deleted at this moment may still come,
// without its value: it is gone.
func (d *Desk) look(ctx context.Context, keys ...string) (look, error) {
	return d.store.GetAll(ctx, keys...)
}

func (l look) item(key string) (store.Item, bool) {
	item, there := l[key]
	if len(item.Value) == 0 {
		return store.Item{}, false
	}
	return item, there
}

// scan is like look for the keys below a prefix, the first limit of them; 0 is
// all.
func (d *Desk) scan(ctx context.Context, prefix string, limit int) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		for item, err := range d.store.Scan(ctx, prefix, store.Range{Limit: limit}) {
			if (err != nil || len(item.Value) > 0) && !yield(item, err) {
				return
			}
		}
	}
}
