package manageapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"ken/internal/connect"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/untrusted"
)

// A ClientPlan is what connecting a client would change. It has no secrets.
type ClientPlan struct {
	Client  string   `json:"client"`
	Title   string   `json:"title"`
	Files   []string `json:"files"` // that change
	Diff    string   `json:"diff"`
	Servers []string `json:"servers"` // that move behind Ken
	Kept    []string `json:"kept"`    // what stays, and why
	Sealed  []string `json:"sealed"`  // secrets that move into Ken's encrypted store
	Unset   []string `json:"unset"`   // secrets that a person has to set
	Rules   []string `json:"rules"`   // decisions of the client's user, as rules of Ken
	Refused []string `json:"refused"` // decisions that Ken has no rule for
	Notes   []string `json:"notes"`

	Connected bool   `json:"connected"` // nothing would change
	Digest    string `json:"digest"`    // of all that is shown here
}

// An Agreement says that a person agrees to a plan as it was shown.
type Agreement struct {
	Digest string `json:"digest"`

	// WithoutRules connects even though Ken has no rule for some decisions.
	WithoutRules bool `json:"withoutRules,omitempty"`
}

// A Connection is what connecting a client did.
type Connection struct {
	Client  string    `json:"client"`
	Files   []string  `json:"files"`
	Servers []Started `json:"servers"`
}

// A Restoration says how to restore the files of a client.
type Restoration struct {
	Force bool `json:"force,omitempty"` // the original bytes, even if a file was changed since
}

func describe(p *connect.Plan) ClientPlan {
	out := ClientPlan{
		Client: p.Client, Title: p.Client, Files: []string{}, Diff: p.Diff(), Servers: []string{}, Kept: []string{}, Sealed: []string{}, Unset: []string{},
		Rules: []string{}, Refused: []string{}, Notes: append([]string{}, p.Notes...), Connected: len(p.Files) == 0 && !p.NewRules,
	}
	for _, c := range connect.Clients() {
		if c.Name == p.Client {
			out.Title = c.Title
		}
	}
	for _, f := range p.Files {
		out.Files = append(out.Files, f.Path)
	}
	for _, s := range p.Servers {
		out.Servers = append(out.Servers, untrusted.Line(s.Name, 100))
	}
	for _, k := range p.Kept {
		out.Kept = append(out.Kept, k.String())
	}
	for _, s := range p.Secrets {
		if s.Value.Reveal() == "" {
			out.Unset = append(out.Unset, s.Name)
		} else {
			out.Sealed = append(out.Sealed, s.Where+" is sealed as "+s.Name)
		}
	}
	for _, r := range p.Rules {
		out.Rules = append(out.Rules, r.String())
	}
	for _, r := range p.Refused {
		out.Refused = append(out.Refused, r.String())
	}
	// The digest covers the new bytes of the files too: two secrets look alike in a diff.
	h := sha256.New()
	text, _ := json.Marshal(out) // texts cannot fail
	h.Write(text)
	for _, f := range p.Files {
		for _, part := range [][]byte{[]byte(f.Path), f.Before, f.After} {
			sum := sha256.Sum256(part)
			h.Write(sum[:])
		}
	}
	out.Digest = hex.EncodeToString(h.Sum(nil))
	return out
}

// planned plans the connection of the client that a request names.
func (s *server) planned(r *wire.Request) (*connect.Plan, error) {
	if p := s.refused(r.Who); p != nil {
		return nil, p
	}
	name := r.PathValue("name")
	if !slices.ContainsFunc(connect.Clients(), func(c connect.Client) bool { return c.Name == name }) {
		return nil, wire.Missing("there is no client " + untrusted.Line(name, 50) + "; ken connect --help lists the clients")
	}
	return s.cfg.Plan(name)
}

func (s *server) clientPlan(r *wire.Request) (any, error) {
	p, err := s.planned(r)
	if err != nil {
		return nil, err
	}
	return describe(p), nil
}

func (s *server) connect(r *wire.Request) (any, error) {
	var in Agreement
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	p, err := s.planned(r)
	if err != nil {
		return nil, err
	}
	shown := describe(p)
	switch {
	case in.Digest != shown.Digest:
		return nil, &wire.Problem{Status: http.StatusConflict, Code: "conflict", Detail: "the files of " + shown.Title + " are no longer as they were shown; nothing was changed; look at the plan again"}
	case len(p.Refused) > 0 && !in.WithoutRules:
		return nil, &wire.Problem{Status: http.StatusConflict, Code: "untranslated", Detail: "nothing was changed, because Ken has no rule for settings of the client: " + strings.Join(shown.Refused, "; ")}
	}
	ctx := context.WithoutCancel(r.Context()) // half of it would be worse than all
	if err := s.cfg.Record(ctx, r.Who, "connect", "connect", "client:"+p.Client, map[string]string{"files": strings.Join(shown.Files, ", ")}); err != nil {
		return nil, err
	}
	started, err := s.cfg.Connect(ctx, p)
	if err != nil {
		return nil, err
	}
	return Connection{Client: p.Client, Files: shown.Files, Servers: append([]Started{}, started...)}, s.cfg.Changed(ctx)
}

func (s *server) disconnect(r *wire.Request) (any, error) {
	var in Restoration
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if p := s.refused(r.Who); p != nil {
		return nil, p
	}
	ctx, name := context.WithoutCancel(r.Context()), r.PathValue("name")
	if err := s.cfg.Record(ctx, r.Who, "connect", "disconnect", "client:"+name, nil); err != nil {
		return nil, err
	}
	d, err := s.cfg.Disconnect(ctx, name, in.Force)
	if err != nil {
		return nil, err
	}
	return d, s.cfg.Changed(ctx)
}
