package app

import (
	"context"
	"errors"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/govern/extensions"
	"ken/internal/govern/pin"
	"ken/internal/govern/review"
	"ken/internal/run/mcpservers/toolreview"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/catalogapi"
)

// reviews are what waits for a person's look, for the page: extensions, and the
// tools of MCP servers, which are named mcp:NAME.
type reviews struct{ app *App }

var _ catalogapi.Reviews = reviews{}

const serverPrefix = "mcp:"

// List returns all of them, those that wait first.
func (r reviews) List(ctx context.Context) ([]catalogapi.Review, error) {
	out, err := r.extensions(ctx)
	if err != nil {
		return nil, err
	}
	servers, err := r.servers(ctx)
	if err != nil {
		return nil, err
	}
	out = append(out, servers...)
	slices.SortStableFunc(out, func(x, y catalogapi.Review) int {
		switch {
		case x.Pending == y.Pending:
			return strings.Compare(x.Name, y.Name)
		case x.Pending:
			return -1
		}
		return 1
	})
	return out, nil
}

func (r reviews) extensions(ctx context.Context) ([]catalogapi.Review, error) {
	if !r.app.Extensions.Required() {
		return nil, nil
	}
	list, err := r.app.Extensions.List(ctx)
	if err != nil {
		return nil, err
	}
	times := map[string]int{}
	for _, x := range list {
		times[x.Manifest.ID]++
	}
	var out []catalogapi.Review
	for _, x := range list {
		one := catalogapi.Review{
			Name: x.Manifest.ID, Kind: "extension", State: string(x.Status.State), Why: x.Status.Why, Fix: x.Status.Mend,
			Pending: x.Status.State == review.Unreviewed || x.Status.State == review.Differs, Digest: x.Manifest.Digest,
		}
		if times[one.Name] > 1 {
			one.Name += "@" + x.Manifest.Place
		}
		for _, d := range x.Status.Differences {
			one.Changes = append(one.Changes, catalogapi.ReviewChange{What: d.Field, Target: string(d.Action), Old: d.Old, New: d.New})
		}
		if len(one.Changes) == 0 {
			for _, l := range x.Manifest.Lines() {
				one.Changes = append(one.Changes, catalogapi.ReviewChange{What: l.Name, New: l.Text})
			}
		}
		for _, u := range x.Unavailable {
			one.Changes = append(one.Changes, catalogapi.ReviewChange{What: "unavailable", Target: string(u.ID), New: u.Why})
		}
		out = append(out, one)
	}
	return out, nil
}

func (r reviews) servers(ctx context.Context) ([]catalogapi.Review, error) {
	list, err := r.app.ToolReviews.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []catalogapi.Review
	for _, s := range list {
		one := catalogapi.Review{Name: serverPrefix + s.Name, Kind: "server", State: s.State, Why: s.Why, Fix: s.Fix, Pending: s.State == toolreview.Waiting}
		what, err := r.app.ToolReviews.Review(ctx, s.Name)
		if err != nil {
			return nil, err
		}
		one.Digest = what.Digest
		for _, w := range what.Waiting {
			one.Changes = append(one.Changes, toolChanges(w, what.Findings[w.Tool])...)
		}
		out = append(out, one)
	}
	return out, nil
}

// toolChanges are what is new about a tool; what the scan has against it stands
// with the first.
func toolChanges(w pin.Waiting, found []capability.Finding) []catalogapi.ReviewChange {
	var findings []string
	for _, f := range found {
		findings = append(findings, f.String())
	}
	var out []catalogapi.ReviewChange
	for _, d := range w.Differences {
		out = append(out, catalogapi.ReviewChange{What: d.Field, Target: w.Tool, Old: d.Was, New: d.Now, Findings: findings})
		findings = nil
	}
	return out
}

// Accept lets be used what was seen.
func (r reviews) Accept(ctx context.Context, who auth.Identity, name, digest, why string) error {
	by := r.person(who)
	if server, ok := strings.CutPrefix(name, serverPrefix); ok {
		return r.acceptServer(ctx, by, server, digest, why)
	}
	x, err := r.extension(ctx, name)
	if err != nil {
		return err
	}
	if x.Manifest.Digest != digest {
		return changedMeanwhile("accept", name)
	}
	return r.app.Extensions.Enable(ctx, by, x, why)
}

// acceptServer accepts the tools of a server, which is switched on for that.
// What was not seen switches nothing on.
func (r reviews) acceptServer(ctx context.Context, by capability.Principal, server, digest, why string) error {
	seen := func() (toolreview.Review, error) {
		what, err := r.app.ToolReviews.Review(ctx, server)
		if err == nil && what.Digest != digest {
			err = changedMeanwhile("accept", serverPrefix+server)
		}
		return what, err
	}
	what, err := seen()
	if err != nil {
		return err
	}
	on, err := r.app.Servers.Switch(ctx, by, server, true, why)
	if err != nil {
		return err
	}
	if on { // what waits is what it offers now
		r.app.Servers.List(ctx, server)
		if what, err = seen(); err != nil {
			return err
		}
	}
	_, err = r.app.ToolReviews.Accept(ctx, by, what)
	return err
}

// Disable switches something off, whatever it has become meanwhile.
func (r reviews) Disable(ctx context.Context, who auth.Identity, name, _, why string) error {
	by := r.person(who)
	if server, ok := strings.CutPrefix(name, serverPrefix); ok {
		_, err := r.app.Servers.Switch(ctx, by, server, false, why)
		return err
	}
	x, err := r.extension(ctx, name)
	if err != nil {
		return err
	}
	_, err = r.app.Extensions.Disable(ctx, by, x.Manifest.ID, x.Manifest.Place, why)
	return err
}

func (r reviews) extension(ctx context.Context, name string) (extensions.Extension, error) {
	id, place, _ := strings.Cut(name, "@")
	return r.app.Extensions.Find(ctx, id, place)
}

// person is whoever asks, acting for this instance: what is switched here is
// switched for all who use it.
func (r reviews) person(who auth.Identity) capability.Principal {
	by := who.Principal
	by.Tenant = r.app.Principal.Tenant
	return by
}

func changedMeanwhile(op, name string) error {
	return &capability.Error{Kind: capability.Conflict, Op: op, Target: name, Err: errors.New("it is no longer what was seen"), Fix: "look at it again"}
}
