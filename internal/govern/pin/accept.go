package pin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/store"
	"ken/internal/untrusted"
)

// Accept pins tools as a person was shown them: shown has the hash that the
// person saw, by the tool's name. All of them are accepted or none. Where one
// waits no longer as it was shown the error is of kind Conflict. Accepting
// again what is accepted changes nothing.
//
// Only a person may say so, which the caller has made sure of.
func (d *Desk) Accept(ctx context.Context, server string, shown map[string]string, by capability.Principal) error {
	if err := d.mayReview("accept tools", server, by); err != nil {
		return err
	}
	if err := d.wait(ctx); err != nil {
		return err
	}
	defer d.done()
	for range mostTries {
		b, err := d.read(ctx, server)
		if err != nil {
			return unavailable("accept tools", server, err)
		}
		c := &change{was: b, next: b.copy()}
		accepted, err := d.acceptShown(ctx, c, shown, by)
		if err != nil || len(accepted) == 0 {
			return err
		}
		_, err = d.recorded(ctx, c, wordAccept, by, accepted)
		if !errors.Is(err, store.ErrConflict) {
			if err != nil {
				return unavailable("accept tools", server, err)
			}
			return nil
		}
	}
	return unavailable("accept tools", server, errTries)
}

func (d *Desk) acceptShown(ctx context.Context, c *change, shown map[string]string, by capability.Principal) ([]string, error) {
	var accepted []string
	for _, tool := range slices.Sorted(maps.Keys(shown)) {
		pin, w := c.next.Pins[tool], c.next.Waiting[tool]
		if w == nil && pin != nil && pin.Hash == shown[tool] {
			continue
		}
		if w == nil || w.Hash != shown[tool] {
			return nil, conflict(c.was.Server, tool, w != nil)
		}
		next := &pinned{Hash: w.Hash, Raw: w.Raw, By: by.ID, At: d.now()}
		if pin != nil {
			next.Exposed = pin.Exposed
			c.drop = append(c.drop, pin.Hash)
		} else {
			var err error
			if next.Exposed, err = d.expose(ctx, c, tool); err != nil {
				return nil, unavailable("accept tools", c.was.Server, err)
			}
		}
		c.next.Pins[tool] = next
		delete(c.next.Waiting, tool)
		accepted = append(accepted, tool)
	}
	return accepted, nil
}

func conflict(server, tool string, waits bool) error {
	cause := errors.New("no review is pending")
	if waits {
		cause = errors.New("the server changed after it was shown")
	}
	name := "mcp:" + ServerName(server)
	return &capability.Error{
		Kind: capability.Conflict, Op: "accept tool", Target: name + "/" + untrusted.Line(tool, 0), Err: cause,
		Fix: "review it again: ken extension review " + argument(name),
	}
}

// Forget drops all that is kept about a server that was removed, the names of
// its tools as well. If it comes back, its next listing is its first.
func (d *Desk) Forget(ctx context.Context, server string, by capability.Principal) error {
	if err := d.mayReview("forget", server, by); err != nil {
		return err
	}
	if err := d.wait(ctx); err != nil {
		return err
	}
	defer d.done()
	if !isOffers(server) {
		if err := d.forgetOne(ctx, OffersKey(server), by); err != nil {
			return err
		}
	}
	return d.forgetOne(ctx, server, by)
}

func (d *Desk) forgetOne(ctx context.Context, server string, by capability.Principal) error {
	for range mostTries {
		err := d.forget(ctx, server, by)
		if !errors.Is(err, store.ErrConflict) {
			if err != nil {
				return unavailable("forget pins", server, err)
			}
			return nil
		}
	}
	return unavailable("forget pins", server, errTries)
}

func (d *Desk) forget(ctx context.Context, server string, by capability.Principal) error {
	// Not read: a damaged book must go as well.
	item, there, err := d.store.Get(ctx, bookKey(server))
	if err != nil {
		return err
	}
	n, at, err := d.readNames(ctx)
	if err != nil {
		return err
	}
	if there {
		if err := d.conf.Log(ctx, record(server, wordForget, by)); err != nil {
			return fmt.Errorf("pins not changed, because the audit log could not be written: %w", err)
		}
	}
	me, held := fingerprint(server), len(n.holder)
	maps.DeleteFunc(n.holder, func(_, holder string) bool { return holder == me })
	var b store.Batch
	if len(n.holder) != held {
		if err := n.put(&b, at); err != nil {
			return err
		}
	}
	b.At(bookKey(server), item.Version)
	b.Delete(bookKey(server))
	b.Delete(markKey(server))
	b.Delete(seenKey(server))
	if _, err := d.store.Apply(ctx, &b); err != nil {
		return err
	}
	d.mu.Lock()
	delete(d.known, server)
	delete(d.hashes, server)
	d.mu.Unlock()
	return d.eraseTexts(ctx, server)
}

func (d *Desk) eraseTexts(ctx context.Context, server string) error {
	var b store.Batch
	n := 0
	for item, err := range d.store.Scan(ctx, textsPrefix(server), store.Range{}) {
		if err != nil {
			return err
		}
		b.Delete(item.Key)
		if n++; n%oneBatch == 0 {
			if _, err := d.store.Apply(ctx, &b); err != nil {
				return err
			}
			b = store.Batch{}
		}
	}
	if n%oneBatch == 0 {
		return nil
	}
	_, err := d.store.Apply(ctx, &b)
	return err
}

func (d *Desk) mayReview(verb, server string, by capability.Principal) error {
	refuse := func(err error, fix string) error {
		return &capability.Error{Kind: capability.Denied, Op: verb + " of", Target: "mcp:" + ServerName(server), Err: err, Fix: fix}
	}
	switch {
	case by.ID == "":
		return refuse(errors.New("missing principal"), "identify the caller")
	case len(d.conf.Reviewers) > 0 && !slices.ContainsFunc(by.Roles, func(role string) bool { return slices.Contains(d.conf.Reviewers, role) }):
		return refuse(errors.New("none of your roles may do this"), "ask a person with a role in approval.approvers")
	}
	return nil
}

// argument writes a name into a command that people copy: no server's name can
// make it another command.
func argument(name string) string {
	if name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._:@-", r)
	}) {
		return name
	}
	return "'" + strings.ReplaceAll(untrusted.Line(name, 0), "'", `'\''`) + "'"
}
