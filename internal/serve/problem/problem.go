// Package problem writes HTTP errors as problem documents (RFC 9457) with
// stable codes.
package problem

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"

	"ken/capability"
	"ken/internal/store"
)

// A Problem is why there is no success. As an error it becomes a problem
// document.
type Problem struct {
	Status int
	Code   string // stable: programs go by it
	Detail string // what was wrong, where, and what to do
	More   map[string]any
}

func (p *Problem) Error() string { return p.Detail }

// Of makes a problem of an error. internal is true where the cause is
// Ken's own: it is for the log, and the document does not tell it in full.
func Of(err error) (p *Problem, internal bool) {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p, false
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Problem{Status: http.StatusRequestEntityTooLarge, Code: "too-large", Detail: "the body is larger than this operation takes"}, false
	}
	kinds := map[capability.ErrorKind]struct {
		status int
		code   string
	}{
		capability.NotFound:    {http.StatusNotFound, "not-found"},
		capability.Invalid:     {http.StatusBadRequest, "invalid"},
		capability.Denied:      {http.StatusForbidden, "denied"},
		capability.Unapproved:  {http.StatusConflict, "unapproved"},
		capability.InputNeeded: {http.StatusConflict, "input-needed"},
		capability.Conflict:    {http.StatusConflict, "conflict"},
		capability.Unavailable: {http.StatusServiceUnavailable, "unavailable"},
		capability.Timeout:     {http.StatusGatewayTimeout, "timeout"},
		capability.Upstream:    {http.StatusBadGateway, "upstream"},
	}
	if known, ok := errors.AsType[*capability.Error](err); ok {
		if k, ok := kinds[known.Kind]; ok {
			p := &Problem{Status: k.status, Code: k.code, Detail: known.Error()}
			for name, text := range map[string]string{"rule": known.Rule, "fix": known.Fix} {
				if text == "" {
					continue
				}
				if p.More == nil {
					p.More = map[string]any{}
				}
				p.More[name] = text
			}
			return p, false
		}
	}
	if detail := stateless(err); detail != "" {
		return &Problem{Status: http.StatusServiceUnavailable, Code: "unavailable", Detail: detail}, true
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &Problem{Status: http.StatusGatewayTimeout, Code: "timeout", Detail: "it took longer than this operation may"}, false
	case errors.Is(err, context.Canceled):
		return &Problem{Status: 499, Code: "cancelled", Detail: "the client has gone"}, false
	}
	return &Problem{Status: http.StatusInternalServerError, Code: "internal", Detail: "something went wrong inside; the log says more"}, true
}

// stateless says that what Ken keeps cannot be read or written now, and what to
// do; empty where that is not why. Only the store's own errors say so: a disk
// that was full for a plugin is another one. What was done before the store
// refused is not known here, and where it lies is for the log: not everybody who
// asks runs this Ken.
func stateless(err error) string {
	switch {
	case errors.Is(err, store.ErrUncertain):
		return "contact with the store was lost, and whether it was kept is not known; read it again before you ask again"
	case errors.Is(err, store.ErrFull):
		return "the disk on which Ken keeps its state is full; make room there, then ask again"
	case errors.Is(err, store.ErrBusy):
		return "the store is locked by another process; ask again"
	case errors.Is(err, store.ErrReadOnly):
		return "the store is read-only; let Ken write it, then ask again (ken doctor says where it is)"
	case errors.Is(err, store.ErrUnavailable):
		return "the store cannot be reached; ask again when it can (ken doctor says where it is)"
	case errors.Is(err, store.ErrRestored):
		return "the store was put back to an earlier state; ken doctor --cluster says what to do"
	case errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrNewer):
		return "the store cannot be used; ken doctor says why"
	}
	return ""
}

// Document returns the problem document, which is the caller's.
func (p *Problem) Document() map[string]any {
	doc := map[string]any{}
	maps.Copy(doc, p.More)
	maps.Copy(doc, map[string]any{
		"type": "about:blank", "title": http.StatusText(p.Status), "status": p.Status, "code": p.Code, "detail": p.Detail,
	})
	return doc
}

// Write writes the problem document.
func (p *Problem) Write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p.Document()) // the client is gone
}
