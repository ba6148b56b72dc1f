package mcpgateway

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/run/mcpgateway/link"
)

// An Offer is what a server has besides tools, under its own names, as it was
// listed last, without what is in quarantine. The values it points to must not
// be changed.
type Offer struct {
	Server    string
	Prompts   []*mcp.Prompt
	Resources []*mcp.Resource
	Templates []*mcp.ResourceTemplate

	// Instructions are for models, in the server's own words. They came from
	// outside.
	Instructions string

	// Read and Prompt are the capabilities that read its resources and get its
	// prompts; empty where it has none.
	Read, Prompt capability.ID

	// Skills are those that were accepted. Their files are read like resources.
	Skills []Skill
}

// offers calls each for what every enabled server offers now, in the order of the
// servers.
func (g *Gateway) offers(each func(s *server, o *offer)) {
	for _, s := range g.all() {
		if o := s.offered(); o != nil && !s.def.Disabled {
			each(s, o)
		}
	}
}

// Offers returns what the servers have besides tools, in their order.
func (g *Gateway) Offers() (out []Offer) {
	g.offers(func(s *server, o *offer) {
		one := Offer{Server: s.def.Name, Read: o.readResource, Prompt: o.getPrompt, Instructions: o.besides.instructions}
		if one.Prompt != "" {
			one.Prompts = o.besides.prompts
		}
		if one.Read != "" {
			one.Resources, one.Templates = o.besides.resources, o.besides.templates
			one.Skills = o.accepted()
		}
		if len(one.Prompts)+len(one.Resources)+len(one.Templates)+len(one.Instructions) > 0 || one.Read != "" { // it may have pages that it does not list
			out = append(out, one)
		}
	})
	return out
}

// ServerOf returns the server that a resource is of, and the capability that reads
// it: the first that lists it, else the first with a template for it, else the
// only one whose resources have its scheme.
func (g *Gateway) ServerOf(uri string) (name string, read capability.ID, ok bool) {
	g.offers(func(s *server, o *offer) {
		if !ok && o.readResource != "" && slices.ContainsFunc(o.besides.resources, func(r *mcp.Resource) bool { return r.URI == uri }) {
			name, read, ok = s.def.Name, o.readResource, true
		}
	})
	if ok {
		return name, read, ok
	}
	g.offers(func(s *server, o *offer) {
		if !ok && o.readResource != "" && slices.ContainsFunc(o.besides.templates, func(t *mcp.ResourceTemplate) bool { return fits(t.URITemplate, uri) }) {
			name, read, ok = s.def.Name, o.readResource, true
		}
	})
	if ok {
		return name, read, ok
	}
	several := false
	g.offers(func(s *server, o *offer) {
		if o.readResource == "" || !o.hasScheme(uri) {
			return
		}
		several = several || ok
		name, read, ok = s.def.Name, o.readResource, true
	})
	if several {
		return "", "", false
	}
	return name, read, ok
}

// fits reports whether a URI can be one of a template: whether the texts between
// its expressions are there, in their order. It is only to find a server; what
// the URI means is for that to say.
func fits(template, uri string) bool {
	head, rest, open := strings.Cut(template, "{")
	uri, ok := strings.CutPrefix(uri, head)
	for open && ok {
		var text string
		if _, rest, ok = strings.Cut(rest, "}"); !ok {
			return false
		}
		if text, rest, open = strings.Cut(rest, "{"); !open {
			return strings.HasSuffix(uri, text)
		}
		_, uri, ok = strings.Cut(uri, text)
	}
	return ok && uri == ""
}

func (o *offer) hasScheme(uri string) bool {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme == "" {
		return false
	}
	same := func(other string) bool {
		v, err := url.Parse(other)
		return err == nil && v.Scheme == u.Scheme
	}
	return slices.ContainsFunc(o.besides.resources, func(r *mcp.Resource) bool { return same(r.URI) })
}

// Complete asks a server how an argument of a prompt or a template may go on.
// It is no call: nothing is decided about it, and it has no effect but a start.
func (g *Gateway) Complete(ctx context.Context, p capability.Principal, session, server string, params *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	var out *mcp.CompleteResult
	err := g.with(ctx, p, session, server, func(ctx context.Context, _ *backend, l *link.Link) (err error) {
		if !l.Info().HasCompletions {
			out = &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}
			return nil
		}
		out, err = l.Complete(ctx, params)
		return err
	})
	return out, err
}

// with does something with a back end besides calls.
func (g *Gateway) with(ctx context.Context, p capability.Principal, session, name string, do func(context.Context, *backend, *link.Link) error) error {
	s, err := g.find(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.def.Timeout)
	defer cancel()
	b, err := s.hold(s.def.keyOf(p, session))
	if err != nil {
		return err
	}
	defer b.release()
	l, err := b.connect(ctx)
	if err != nil {
		return err
	}
	return do(ctx, b, l)
}

// A topic is a resource with subscribers.
type topic struct {
	next int
	tell map[int]func()
}

// Subscribe calls updated whenever the server says that a resource changed, and
// after the server was restarted, when it may have. updated must not block.
// cancel ends that; it may be called more than once. While there is a
// subscription the back end is not stopped for being idle.
func (g *Gateway) Subscribe(ctx context.Context, p capability.Principal, session, uri string, updated func()) (cancel func(), err error) {
	name, _, ok := g.ServerOf(uri)
	if !ok {
		return nil, &capability.Error{Kind: capability.NotFound, Op: "subscribe to", Target: uri, Err: errors.New("resource not found")}
	}
	err = g.with(ctx, p, session, name, func(ctx context.Context, b *backend, l *link.Link) error {
		if !l.Info().HasSubscribe {
			return &capability.Error{Kind: capability.Unavailable, Op: "subscribe to", Target: uri, Err: errors.New("server does not report changes")}
		}
		s := b.s
		s.mu.Lock()
		t := b.subs[uri]
		first := t == nil
		if first {
			t = &topic{tell: map[int]func(){}}
			b.subs[uri] = t
		}
		id := t.next
		t.next++
		t.tell[id] = updated
		s.mu.Unlock()
		cancel = func() { b.unsubscribe(uri, t, id) }
		if !first {
			return nil
		}
		if err := l.Subscribe(ctx, uri); err != nil {
			cancel()
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return cancel, nil
}

func (b *backend) unsubscribe(uri string, t *topic, id int) {
	s := b.s
	s.mu.Lock()
	_, there := t.tell[id]
	delete(t.tell, id)
	last := there && len(t.tell) == 0 && b.subs[uri] == t
	if last {
		delete(b.subs, uri)
		b.used = now()
		if b.busy == 0 && !b.stopped {
			b.armLocked(b.patience())
		}
	}
	l := b.link
	s.mu.Unlock()
	if last && l != nil {
		s.g.spawn(func() {
			ctx, cancel := context.WithTimeout(s.g.ctx, doubtTime)
			defer cancel()
			_ = l.Unsubscribe(ctx, uri) // what still comes is dropped
		})
	}
}

// updated tells those who subscribed to a resource.
func (b *backend) updated(uri string) {
	b.s.mu.Lock()
	var tell []func()
	if t := b.subs[uri]; t != nil {
		for _, f := range t.tell {
			tell = append(tell, f)
		}
	}
	b.s.mu.Unlock()
	for _, f := range tell {
		f()
	}
}

// subscribeAgain takes up on a new link what was subscribed on the last.
func (b *backend) subscribeAgain(l *link.Link) {
	b.s.mu.Lock()
	var uris []string
	for uri := range b.subs {
		uris = append(uris, uri)
	}
	b.s.mu.Unlock()
	for _, uri := range uris {
		ctx, cancel := context.WithTimeout(b.s.g.ctx, doubtTime)
		if err := l.Subscribe(ctx, uri); err != nil {
			b.s.g.cfg.Log.Warn("a subscription is lost", "server", b.s.def.Name, "error", err)
		}
		cancel()
		b.updated(uri)
	}
}

// revive starts a back end again that has subscribers.
func (b *backend) revive() {
	s := b.s
	for {
		s.mu.Lock()
		pause, wanted := max(b.until.Sub(now()), 0), len(b.subs) > 0 && !b.stopped
		s.mu.Unlock()
		if !wanted || !wait(s.g.ctx, s.g.ctx, pause) {
			return
		}
		if _, err := b.connect(s.g.ctx); err == nil {
			return
		}
	}
}
