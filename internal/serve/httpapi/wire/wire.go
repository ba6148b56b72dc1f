// Package wire is the HTTP layer of the API: a [Route] describes one operation
// completely, [Mux] serves routes, and every error is a problem document (RFC
// 9457) with a stable code.
//
// Because a route is data, what holds for all of them holds once: unknown
// parameters are refused, bodies are bounded and read strictly, a method that a
// path does not have is told with those it has, what only an operator may ask, or
// a person decides, is refused to others, and the OpenAPI description cannot
// differ from what is served.
package wire

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"ken/internal/serve/auth"
	"ken/internal/untrusted"
)

// A Route is one operation of the API.
type Route struct {
	Method  string
	Path    string // as http.ServeMux reads it: /api/v1/catalog/{id...}
	Name    string // of the operation, unlike all others: listSessions
	Group   string // under which it is listed: sessions
	Summary string // one line, for people

	Query  []Param
	Body   any // a value of the type that is read; nil: there is no body
	Answer any // a value of the type that is answered; nil: none, with status 204
	Status int // of success; zero: 200, or 204 without Answer

	// Others are values of the types of other answers of success, by their
	// status.
	Others map[int]any

	// Operator means that only an operator may ask.
	Operator bool

	// Decision, when not empty, means that only those may ask who decide for
	// their principal, and no agent; see [auth.Identity]. It tells
	// others what to do instead: open the page, or run ken approve.
	Decision string

	// Limit is the most bytes of a body; zero: 1 MiB.
	Limit int64

	// Patience is how long an answer may take; zero: 30 seconds, less: as long
	// as it needs.
	Patience time.Duration

	// Serve answers. One of it and Stream is set. What it returns is encoded as
	// JSON; an error becomes a problem.
	Serve func(*Request) (any, error)

	// Stream answers with events (text/event-stream) for as long as it likes;
	// where there is a body, only if that is asked for, and else as JSON. An
	// error that it returns before it wrote anything becomes a problem.
	Stream func(http.ResponseWriter, *Request) error
}

// A Param is a parameter of a route's query.
type Param struct {
	Name  string
	About string
	Type  Type
	Many  bool // it may come more than once

	// Words are what it may be; nil: anything of its type.
	Words []string
}

// A Type is what a parameter is written as.
type Type string

const (
	Text    Type = "" // also the zero value
	Whole   Type = "whole"
	Number  Type = "number"
	Yes     Type = "yes"     // true or false
	Instant Type = "instant" // RFC 3339, or how long ago: 24h, 30d
)

// A Request is a request of a caller who was let in, its parameters checked.
type Request struct {
	*http.Request
	Who auth.Identity

	route *Route
	query url.Values
	body  []byte
	now   func() time.Time

	// release releases the room that is counted for the body, once. It may be nil.
	release func()
}

// Partly says that a list is not whole. Why may be about what belongs to another principal,
// so only operators are told that.
func (r *Request) Partly(err error) []string {
	switch {
	case err == nil:
		return nil
	case r.Who.Operator:
		return []string{untrusted.Line(err.Error(), 500)}
	}
	return []string{"something could not be read; the operator sees more with ken doctor"}
}

// WantsEvents reports whether the client asks for events rather than for one
// document.
func (r *Request) WantsEvents() bool {
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// Answered is an answer whose status or headers are its own.
type Answered struct {
	Status int
	Header http.Header
	Value  any // nil: no body
}

// Raw is an answer that is already written: a body of a type.
type Raw struct {
	Type string // text/plain; charset=utf-8
	Body []byte
}

// Decode reads the body into v, which points to a struct, strictly: one JSON
// object, no members that v does not have by their very names, none twice. An
// empty body is an empty object. It may be called once.
func (r *Request) Decode(v any) error {
	err := decode(r.body, v)
	if r.route.Stream != nil { // it may go on for long, and needs the bytes no more
		r.body = nil
		r.done()
	}
	return err
}

// JSON writes an answer. It is for those that answer outside of a route.
func JSON(w http.ResponseWriter, status int, v any) {
	hurried(w)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone
}
