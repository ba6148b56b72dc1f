package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/address"
	"ken/internal/run/executor"
)

// A plan is a request made out, without its credentials.
type plan struct {
	capability *capability.Capability
	op         *operation
	method     string
	url        *url.URL
	header     http.Header
	cookies    []string
	body       []byte
	keyed      bool // the server knows the request again by its key
	args       int

	choose *selection
	pages  int
}

// safe reports whether the request changes nothing, by the word of HTTP or GraphQL.
// An operation that its name contradicts is not taken at that word.
func (p *plan) safe() bool { return (safe(p.method) || p.query()) && p.capability.Claims == nil }

// query reports whether the request is a query of GraphQL.
func (p *plan) query() bool { return p.op.graph != nil && p.op.graph.kind == "query" }

// line is how a request is named to people.
func (p *plan) line() string {
	if g := p.op.graph; g != nil {
		return p.method + " " + p.url.String() + " " + g.kind + " " + g.field
	}
	return p.method + " " + p.url.String()
}

// hosts are those that the call may reach.
func (p *plan) hosts() []string {
	out := []string{strings.ToLower(p.url.Hostname())}
	for _, a := range p.op.auth {
		if u, err := url.Parse(a.TokenURL); err == nil && u.Hostname() != "" {
			out = append(out, strings.ToLower(u.Hostname()))
		}
	}
	out = append(out, p.op.others...)
	slices.Sort(out)
	return slices.Compact(out)
}

func (e *Executor) plan(ctx context.Context, call capability.Call) (*plan, error) {
	c, detail, err := e.cfg.Lookup(ctx, call.Target)
	if err != nil {
		return nil, err
	}
	if call.CapabilityHash != "" && call.CapabilityHash != c.Hash {
		return nil, executor.Outdated("call", call)
	}
	if c.Run == nil || !strings.HasPrefix(c.Run.Runner, "api.") {
		return nil, unfit(call, errors.New("the recipe defines no request"), "define runner, method and url in run")
	}
	op, err := e.operation(c, detail.Schema)
	if err != nil {
		return nil, unfit(call, err, "correct its API document")
	}
	raw := call.Arguments
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	args, err := executor.Object(raw)
	if err != nil {
		return nil, executor.BadArguments(call, err, "")
	}
	p := &plan{capability: c, op: op, method: op.method, header: http.Header{}, args: len(args)}
	if err := p.fill(args); err != nil {
		return nil, executor.BadArguments(call, err, "describe_capability shows the arguments")
	}
	if host := p.url.Hostname(); address.Metadata(host) {
		return nil, &capability.Error{
			Kind: capability.Denied, Op: "call", Target: string(call.Target), Rule: "link-local and metadata addresses",
			Err: fmt.Errorf("%s is link-local or a metadata address; Ken never connects to these", host),
		}
	}
	return p, nil
}

func unfit(call capability.Call, err error, fix string) error {
	return &capability.Error{Kind: capability.Invalid, Op: "build the request of", Target: string(call.Target), Err: err, Fix: fix}
}

// fill makes the request of the arguments.
func (p *plan) fill(args map[string]any) error {
	if p.op.graph != nil {
		return p.fillGraph(args)
	}
	var err error
	if p.choose, p.pages, err = p.own(args); err != nil {
		return err
	}
	var b bodyMaker
	var query []pair
	paths, inQuery := map[string]string{}, map[string]string{}
	address := p.op.template
	for _, name := range slices.Sorted(maps.Keys(args)) {
		v := args[name]
		f, ok := p.op.fields[name]
		if !ok {
			return fmt.Errorf("unknown argument %.40q", name)
		}
		if v == nil && f.in != "body" && f.in != "path" {
			continue
		}
		switch f.in {
		case "path":
			text, err := f.path(v, f.encoder())
			if err != nil {
				return fmt.Errorf("argument %s: %w", name, err)
			}
			if text == "" {
				return fmt.Errorf("argument %s is empty, but it is a part of the path", name)
			}
			paths[f.wire] = text
		case "template":
			inQuery[f.wire] = escape(scalar(v))
		case "query":
			pairs, err := f.query(v, f.wire, f.encoder())
			if err != nil {
				return fmt.Errorf("argument %s: %w", name, err)
			}
			query = append(query, pairs...)
		case "header":
			err = p.addHeader(f.wire, f.header(v))
		case "headers":
			err = p.addHeaders(v)
		case "cookie":
			err = p.addCookie(f, v)
		case "url":
			text, isText := v.(string)
			if address = text; !isText {
				return fmt.Errorf("argument %s is not a text", name)
			}
		case "body":
			b.add(name, f, v)
		}
		if err != nil {
			return fmt.Errorf("argument %s: %w", name, err)
		}
	}
	if p.url, err = p.address(address, paths, inQuery, query); err != nil {
		return err
	}
	p.header.Set("Accept", "application/json, text/*;q=0.9, */*;q=0.5")
	p.header.Set("User-Agent", "ken")
	p.keyed = p.header.Get("Idempotency-Key") != ""
	media, body, err := b.make(p.op)
	if err != nil {
		return err
	}
	if media != "" {
		p.header.Set("Content-Type", media)
	}
	p.body = body
	return nil
}

// own takes the arguments out that are for Ken.
func (p *plan) own(args map[string]any) (*selection, int, error) {
	var choose *selection
	pages := 1
	if name := p.op.selectName(); args[name] != nil {
		var err error
		if choose, err = readSelection(args[name]); err != nil {
			return nil, 0, fmt.Errorf("argument %s: %w", name, err)
		}
		delete(args, name)
	}
	if name := p.op.pagesName(); args[name] != nil {
		n, ok := args[name].(json.Number)
		count, err := n.Int64()
		if !ok || err != nil || count < 1 || count > 1000 {
			return nil, 0, fmt.Errorf("argument %s is not a number from 1 to 1000", name)
		}
		pages = int(count)
		delete(args, name)
	}
	return choose, pages, nil
}

// address fills the template.
func (p *plan) address(template string, paths, inQuery map[string]string, query []pair) (*url.URL, error) {
	if template == "" {
		return nil, errors.New("argument url is missing")
	}
	path, rest, hasQuery := strings.Cut(template, "?")
	if p.op.origin != "" {
		var err error
		if path, err = fillPieces(p.op.path, paths); err != nil {
			return nil, err
		}
		if rest, err = fillPieces(p.op.query, inQuery); err != nil {
			return nil, err
		}
	}
	text := path
	if hasQuery && rest != "" {
		text += "?" + rest
	}
	if len(query) > 0 {
		mark := "?"
		if hasQuery && rest != "" {
			mark = "&"
		}
		text += mark + joined(query)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, errors.New("the address is not http or https with a host")
	}
	u.Fragment, u.RawFragment = "", ""
	switch {
	case u.User != nil:
		return nil, errors.New("the address contains a user or password; store them as secrets")
	case p.op.origin != "" && originOf(u) != p.op.origin:
		return nil, errors.New("the arguments would change the host")
	case p.op.origin != "" && dotted(u.EscapedPath()):
		return nil, errors.New("the arguments would change the path: a part of it is a dot or two dots")
	case len(text) > 64<<10:
		return nil, fmt.Errorf("the address has %d bytes, more than servers accept", len(text))
	}
	return u, nil
}

// A piece is a part of a template: a text, or the name of a value.
type piece struct {
	text  string
	value bool
}

func piecesOf(template string) []piece {
	var out []piece
	at := 0
	for _, m := range place().FindAllStringSubmatchIndex(template, -1) {
		out = append(out, piece{template[at:m[0]], false}, piece{template[m[2]:m[3]], true})
		at = m[1]
	}
	return append(out, piece{template[at:], false})
}

func fillPieces(pieces []piece, values map[string]string) (string, error) {
	var b strings.Builder
	for _, p := range pieces {
		text := p.text
		if p.value {
			var ok bool
			if text, ok = values[p.text]; !ok {
				return "", fmt.Errorf("argument %s is missing", p.text)
			}
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// dotted reports whether a path has a segment that servers take for this folder or
// the one above.
func dotted(path string) bool {
	if !strings.Contains(path, ".") && !strings.Contains(path, "%2") {
		return false
	}
	for segment := range strings.SplitSeq(path, "/") {
		plain, err := url.PathUnescape(segment)
		if err != nil || plain == "." || plain == ".." || strings.HasPrefix(plain, "../") || strings.HasSuffix(plain, "/..") || strings.Contains(plain, "/../") {
			return true
		}
	}
	return false
}

func (p *plan) addHeader(name, value string) error {
	switch {
	case !headerName(name) || !headerValue(value):
		return errors.New("cannot be a header: a header is one line of text")
	case framing(name):
		return errors.New("would replace a header that controls how the request is parsed")
	case overriding(name):
		return errors.New("would set a header that replaces the method of the request")
	}
	p.header.Set(name, value)
	return nil
}

// addHeaders adds the headers of an argument. Credentials are secrets, and no
// arguments.
func (p *plan) addHeaders(v any) error {
	m, ok := v.(map[string]any)
	if !ok {
		return errors.New("not an object of names and strings")
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if err := p.addHeader(name, scalar(m[name])); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) addCookie(f field, v any) error {
	if f.json {
		v = compact(v)
	}
	if m, ok := v.(map[string]any); ok && f.explode {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			p.cookies = append(p.cookies, escape(key)+"="+escape(scalar(m[key])))
		}
		return nil
	}
	if !headerName(f.wire) {
		return errors.New("invalid cookie name")
	}
	f.explode = false
	p.cookies = append(p.cookies, f.wire+"="+f.formed(v, "", ",", escape)[0].value)
	return nil
}

// headerName reports whether a text can be the name of a header or a cookie.
func headerName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// headerValue reports whether a text can be the value of a header.
func headerValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
