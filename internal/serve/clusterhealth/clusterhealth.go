// Package clusterhealth examines the replicas that have one PostgreSQL as their store,
// and names in what they differ.
package clusterhealth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ken/internal/duration"
	"ken/internal/serve/doctor"
	"ken/internal/serve/replica"
	"ken/internal/store"
)

const (
	slowStore    = 100 * time.Millisecond // an answer
	tooSlowStore = time.Second
	mostSkew     = 2 * time.Second // between a replica's clock and the store's
	tries        = 5
)

// Facts are what is known of the replicas.
type Facts struct {
	Store   string        // where it is, without a password
	Err     error         // why it cannot be written, or is not current
	Latency time.Duration // of an answer; the median of a few
	Members []replica.Member
}

// Gather asks the store. current returns why this machine may not know what others
// changed.
func Gather(ctx context.Context, open func() (*store.Store, error), current func(context.Context) error) Facts {
	db, err := open()
	if err != nil {
		return Facts{Err: err}
	}
	f := Facts{Store: db.Place()}
	var took []time.Duration
	for range tries {
		began := time.Now()
		if _, _, err := db.Since(ctx, "replica/name", 0); err != nil {
			f.Err = err
			return f
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	f.Latency = took[tries/2]
	var trial store.Batch // what only a write can find, such as a full disk
	trial.PutFor(store.Key("doctor", "trial"), []byte("1"), time.Minute)
	_, werr := db.Apply(ctx, &trial)
	members, merr := replica.Members(ctx, db)
	f.Members, f.Err = members, errors.Join(werr, merr)
	if f.Err == nil {
		f.Err = current(ctx)
	}
	return f
}

// Examine says what is wrong.
func Examine(f Facts) []doctor.Check {
	checks := []doctor.Check{examineStore(f)}
	if f.Store == "" {
		return checks
	}
	checks = append(checks, examineMembers(f.Members))
	for _, m := range f.Members {
		if m.Fault != "" {
			checks = append(checks, doctor.Check{Name: "replica " + name(m), Grade: doctor.Bad, Message: "it allows no call: " + m.Fault, Fix: "fix it there"})
		}
	}
	return slices.Concat(checks, examineVersions(f.Members), examineRules(f.Members), examineClocks(f.Members))
}

func name(m replica.Member) string { return fmt.Sprintf("%s/%d", m.Host, m.PID) }

func examineStore(f Facts) doctor.Check {
	c := doctor.Check{Name: "store", Grade: doctor.Good, Message: fmt.Sprintf("%s answers within %s", f.Store, duration.Text(f.Latency))}
	switch {
	case errors.Is(f.Err, store.ErrReadOnly):
		c.Grade, c.Message, c.Fix = doctor.Bad, "the store is read-only: "+f.Err.Error(), "use the primary server, or a user that may write; until then no call that needs to be recorded there runs"
	case errors.Is(f.Err, store.ErrFull):
		c.Grade, c.Message, c.Fix = doctor.Bad, "the store is full: "+f.Err.Error(), "make room on the server's disk"
	case f.Err != nil:
		c.Grade, c.Message, c.Fix = doctor.Bad, f.Err.Error(), "replicas allow no call while this lasts"
	case f.Latency >= tooSlowStore:
		c.Grade, c.Message, c.Fix = doctor.Bad, fmt.Sprintf("the store is slow: it takes %s to answer", duration.Text(f.Latency)), "look at the server's load and at the network; every approval waits for it several times"
	case f.Latency >= slowStore:
		c.Grade, c.Message, c.Fix = doctor.Warn, fmt.Sprintf("the store is slow: it takes %s to answer", duration.Text(f.Latency)), "put the replicas near the server"
	}
	return c
}

func examineMembers(list []replica.Member) doctor.Check {
	if len(list) == 0 {
		return doctor.Check{Name: "replicas", Grade: doctor.Warn, Message: "no replica runs", Fix: "start ken serve with this store"}
	}
	var lines []string
	for _, m := range list {
		lines = append(lines, fmt.Sprintf("%s, %s, since %s", name(m), m.Version, m.Started.Local().Format("2006-01-02 15:04:05")))
	}
	what := "1 replica runs"
	if len(list) > 1 {
		what = fmt.Sprintf("%d replicas run", len(list))
	}
	return doctor.Check{Name: "replicas", Grade: doctor.Good, Message: what + "\n" + strings.Join(lines, "\n")}
}

// differ groups replicas by a value, and says which has which; "" if all agree.
func differ(list []replica.Member, value func(replica.Member) string) string {
	by := map[string][]string{}
	for _, m := range list {
		by[value(m)] = append(by[value(m)], name(m))
	}
	if len(by) < 2 {
		return ""
	}
	var parts []string
	for _, v := range slices.Sorted(maps.Keys(by)) {
		shown := v
		if shown == "" {
			shown = "none"
		}
		parts = append(parts, shown+" on "+strings.Join(by[v], ", "))
	}
	return strings.Join(parts, "; ")
}

func examineVersions(list []replica.Member) []doctor.Check {
	if d := differ(list, func(m replica.Member) string { return m.Version }); d != "" {
		return []doctor.Check{{Name: "versions", Grade: doctor.Warn, Message: "the replicas have different versions: " + d, Fix: "finish the update; two neighbouring versions can run together for that long"}}
	}
	return nil
}

func examineRules(list []replica.Member) []doctor.Check {
	files := map[string]bool{}
	for _, m := range list {
		for file := range m.Rules {
			files[file] = true
		}
	}
	var out []doctor.Check
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if d := differ(list, func(m replica.Member) string { return m.Rules[file] }); d != "" {
			out = append(out, doctor.Check{Name: "rules", Grade: doctor.Bad, Message: file + " is not the same on all replicas: " + d, Fix: "give all replicas the same file; set with ken config set --shared what is to change while they run"})
		}
	}
	return out
}

// skewText leaves out what is only the time of a message.
func skewText(d time.Duration) string {
	if d < time.Minute {
		return duration.Text(d.Round(100 * time.Millisecond))
	}
	return duration.Text(d.Round(time.Second))
}

func examineClocks(list []replica.Member) []doctor.Check {
	var out []doctor.Check
	for _, m := range list {
		if m.Skew.Abs() > mostSkew {
			word := "ahead of"
			if m.Skew < 0 {
				word = "behind"
			}
			out = append(out, doctor.Check{Name: "clock", Grade: doctor.Warn, Message: fmt.Sprintf("the clock of %s is %s %s that of the store", name(m), skewText(m.Skew.Abs()), word), Fix: "synchronise the clocks (NTP); leases and expiries are by the store's clock, times in the audit log are not"})
		}
	}
	return out
}
