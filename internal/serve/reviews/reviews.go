// Package reviews lists everything that waits for review, for the page, and
// accepts or disables it: extensions, and MCP servers, which are named mcp:NAME.
package reviews

import (
	"context"
	"errors"
	"strings"

	"ken/capability"
	"ken/internal/coldsort"
	"ken/internal/govern/extensions"
	"ken/internal/govern/pin"
	"ken/internal/govern/review"
	"ken/internal/run/mcpservers"
	"ken/internal/run/mcpservers/toolreview"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/catalogapi"
)

// List is the list of everything that waits for review.
type List struct {
	Extensions *extensions.Set
	Tools      *toolreview.Reviews
	Servers    *mcpservers.Servers
	Tenant     string // of the operator
}

var _ catalogapi.Reviews = List{}

const serverPrefix = "mcp:"

// List returns all extensions and servers, those that wait first.
func (l List) List(ctx context.Context) ([]catalogapi.Review, error) {
	out, err := l.extensions(ctx)
	if err != nil {
		return nil, err
	}
	servers, err := l.servers(ctx)
	if err != nil {
		return nil, err
	}
	out = append(out, servers...)
	coldsort.Stable(out, func(x, y catalogapi.Review) int {
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

func (l List) extensions(ctx context.Context) ([]catalogapi.Review, error) {
	if !l.Extensions.Required() {
		return nil, nil
	}
	list, err := l.Extensions.List(ctx)
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
			Name: x.Manifest.ID, Kind: "extension", State: string(x.Status.State), Why: x.Status.Why, Fix: x.Status.Fix,
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

func (l List) servers(ctx context.Context) ([]catalogapi.Review, error) {
	list, err := l.Tools.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []catalogapi.Review
	for _, s := range list {
		one := catalogapi.Review{Name: serverPrefix + s.Name, Kind: "server", State: s.State, Why: s.Why, Fix: s.Fix, Pending: s.State == toolreview.Waiting}
		what, err := l.Tools.Review(ctx, s.Name)
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

// toolChanges returns the changes of a tool. The first has the findings of the
// text scan.
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

// Accept accepts an extension or server as it was shown.
func (l List) Accept(ctx context.Context, who auth.Identity, name, digest, why string) error {
	by := l.person(who)
	if server, ok := strings.CutPrefix(name, serverPrefix); ok {
		return l.acceptServer(ctx, by, server, digest, why)
	}
	x, err := l.extension(ctx, name)
	if err != nil {
		return err
	}
	if x.Manifest.Digest != digest {
		return changedMeanwhile("accept", name)
	}
	return l.Extensions.Enable(ctx, by, x, why)
}

// acceptServer enables a server and accepts its tools. It changes nothing if the
// digest is not that of what waits now.
func (l List) acceptServer(ctx context.Context, by capability.Principal, server, digest, why string) error {
	seen := func() (toolreview.Review, error) {
		what, err := l.Tools.Review(ctx, server)
		if err == nil && what.Digest != digest {
			err = changedMeanwhile("accept", serverPrefix+server)
		}
		return what, err
	}
	what, err := seen()
	if err != nil {
		return err
	}
	on, err := l.Servers.Switch(ctx, by, server, true, why)
	if err != nil {
		return err
	}
	if on { // what waits is what it offers now
		l.Servers.List(ctx, server)
		if what, err = seen(); err != nil {
			return err
		}
	}
	_, err = l.Tools.Accept(ctx, by, what)
	return err
}

// Disable disables an extension or server, even if it has changed since.
func (l List) Disable(ctx context.Context, who auth.Identity, name, _, why string) error {
	by := l.person(who)
	if server, ok := strings.CutPrefix(name, serverPrefix); ok {
		_, err := l.Servers.Switch(ctx, by, server, false, why)
		return err
	}
	x, err := l.extension(ctx, name)
	if err != nil {
		return err
	}
	_, err = l.Extensions.Disable(ctx, by, x.Manifest.ID, x.Manifest.Place, why)
	return err
}

func (l List) extension(ctx context.Context, name string) (extensions.Extension, error) {
	id, place, _ := strings.Cut(name, "@")
	return l.Extensions.Find(ctx, id, place)
}

// person returns who asks, in the operator's tenant: what is enabled here is
// enabled for everybody who uses this Ken.
func (l List) person(who auth.Identity) capability.Principal {
	by := who.Principal
	by.Tenant = l.Tenant
	return by
}

func changedMeanwhile(op, name string) error {
	return &capability.Error{Kind: capability.Conflict, Op: op, Target: name, Err: errors.New("changed since it was shown"), Fix: "look at it again"}
}
