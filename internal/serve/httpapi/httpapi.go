// Package httpapi serves Ken over HTTP: a health check and the catalog as
// JSON. Every answer that is not a success is a problem document (RFC 9457)
// with a stable code.
package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/door"
)

// Config says what to serve.
type Config struct {
	Door      *door.Door
	Principal capability.Principal // on whose behalf every request is answered
	Version   string
	Log       *slog.Logger // nil: nothing is logged

	// Waiting ends when the server is about to stop: requests that only wait
	// for news are answered then. Nil: never.
	Waiting context.Context
}

const maxQuery = 64 << 10

// New makes the handler for all paths. Who may ask is decided before it.
func New(cfg Config) http.Handler {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Waiting == nil {
		cfg.Waiting = context.Background()
	}
	s := &server{cfg}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.health)
	mux.HandleFunc("GET /api/v1/catalog", s.list)
	mux.HandleFunc("GET /api/v1/catalog/{id...}", s.show)
	mux.HandleFunc("GET /api/v1/changes", s.changes)
	mux.HandleFunc("GET /api/v1/discover", s.discover)
	mux.HandleFunc("GET /{$}", s.index)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			problem(w, http.StatusMethodNotAllowed, "method-not-allowed", "everything here is read with GET")
			return
		}
		problem(w, http.StatusNotFound, "no-such-path", "nothing is served at "+r.URL.Path+"; GET / lists what is")
	})
	return http.MaxBytesHandler(mux, maxQuery)
}

type server struct{ cfg Config }

func (s *server) health(w http.ResponseWriter, _ *http.Request) {
	answer(w, map[string]any{"status": "ok", "version": s.cfg.Version, "catalog": s.view().Stats()})
}

func (s *server) index(w http.ResponseWriter, _ *http.Request) {
	answer(w, map[string]any{
		"name": "ken", "version": s.cfg.Version,
		"paths": []string{"/healthz", "/api/v1/catalog", "/api/v1/catalog/{id}", "/api/v1/changes?after={version}", "/api/v1/discover?q={message}"},
	})
}

func (s *server) list(w http.ResponseWriter, _ *http.Request) {
	answer(w, s.view().List())
}

func (s *server) show(w http.ResponseWriter, r *http.Request) {
	d, err := s.cfg.Door.Describe(r.Context(), s.view(), r.PathValue("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	answer(w, d)
}

// patience is how long a request may wait for a change; it ends before the
// server's own limit, so that the client gets an answer.
const patience = 50 * time.Second

// changes waits for the catalog to become newer than ?after= and tells how it
// changed since then; "complete" is false when that is too long ago to say.
// Without news in time the answer is 204.
func (s *server) changes(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
	if err != nil {
		problem(w, http.StatusBadRequest, "invalid", "after must be the version you have, as /healthz gives it: ?after=1")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	defer context.AfterFunc(s.cfg.Waiting, cancel)()
	news, err := s.cfg.Door.Next(ctx, s.cfg.Principal, after)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	answer(w, map[string]any{
		"catalog": news.View.Stats(), "changes": append([]door.Change{}, news.Changes...), "complete": news.Complete,
	})
}

func (s *server) discover(w http.ResponseWriter, r *http.Request) {
	ask := r.URL.Query()
	if err := checkAsk(ask); err != nil {
		problem(w, http.StatusBadRequest, "bad-query", err.Error())
		return
	}
	q := door.Query{Text: ask.Get("q"), Now: time.Now(), Scope: capability.Scope{
		Session: ask.Get("session"), SessionType: ask.Get("sessionType"), Agent: ask.Get("agent"),
	}}
	q.Filter.Category = ask.Get("category")
	for _, kind := range ask["kind"] {
		q.Filter.Kinds = append(q.Filter.Kinds, capability.Kind(kind))
	}
	for _, id := range ask["exclude"] {
		q.Filter.Exclude = append(q.Filter.Exclude, capability.ID(id))
	}
	for _, text := range ask["before"] {
		q.Before = append(q.Before, door.Message{Role: "user", Text: text})
	}
	if text := ask.Get("available"); text != "" {
		only, err := strconv.ParseBool(text)
		if err != nil {
			problem(w, http.StatusBadRequest, "bad-query", "available is true or false, not "+text)
			return
		}
		q.Filter.OnlyAvailable = only
	}
	var err error
	if q.Override, err = override(ask); err != nil {
		problem(w, http.StatusBadRequest, "bad-query", err.Error())
		return
	}
	found, err := s.cfg.Door.Find(r.Context(), s.view(), q)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	answer(w, found)
}

// askedFor are the parameters of /api/v1/discover.
var askedFor = []string{
	"q", "kind", "category", "available", "exclude", "before", "session", "sessionType", "agent", "top", "full", "budget", "minRelevance",
}

func checkAsk(ask url.Values) error {
	for name := range ask {
		if !slices.Contains(askedFor, name) {
			return fmt.Errorf("there is no parameter %s; there are %s", name, strings.Join(askedFor, ", "))
		}
	}
	if strings.TrimSpace(ask.Get("q")) == "" {
		return errors.New("q is empty; say what is wanted, as in ?q=search+the+web")
	}
	return nil
}

// override reads the numbers that change the configuration for one query.
func override(ask url.Values) (door.Override, error) {
	var o door.Override
	for name, into := range map[string]**int{"top": &o.TopK, "full": &o.FullK, "budget": &o.TotalTokens} {
		if text := ask.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 || n > 1_000_000 {
				return o, fmt.Errorf("%s is %s; it is a whole number of 0 or more", name, text)
			}
			*into = &n
		}
	}
	if text := ask.Get("minRelevance"); text != "" {
		chance, err := strconv.ParseFloat(text, 64)
		if err != nil || !(chance >= 0 && chance <= 1) {
			return o, fmt.Errorf("minRelevance is %s; it is a number within 0 to 1", text)
		}
		o.MinRelevance = &chance
	}
	return o, nil
}

func (s *server) view() door.View { return s.cfg.Door.View(s.cfg.Principal) }

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // the client is gone; there is nobody to tell
}

// fail turns an error into a status. Causes that are Ken's own stay inside.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	switch kind := capability.KindOf(err); kind {
	case capability.NotFound:
		problem(w, http.StatusNotFound, "not-found", err.Error())
	case capability.Invalid:
		problem(w, http.StatusBadRequest, "invalid", err.Error())
	case capability.Denied:
		problem(w, http.StatusForbidden, "denied", err.Error())
	case capability.Conflict:
		problem(w, http.StatusConflict, "conflict", err.Error())
	case capability.Timeout:
		problem(w, http.StatusGatewayTimeout, "timeout", err.Error())
	default:
		s.cfg.Log.Error("request", "path", r.URL.Path, "err", err)
		problem(w, http.StatusInternalServerError, "internal", "something went wrong inside; the log says more")
	}
}

func problem(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"type": "about:blank", "title": http.StatusText(status), "status": status, "code": code, "detail": detail,
	})
}

// NewServer makes an http.Server with bounded patience for h.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: 60 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
}
