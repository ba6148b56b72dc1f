package catalogapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/serve/httpapi/wire"
)

// shadowed is the state of a capability that another of the same id replaces. As
// in ken catalog list, such rows are listed only where that state is asked for;
// stats.shadowed counts them in any case.
const shadowed = "shadowed"

func (s *server) list(r *wire.Request) (any, error) {
	v, state := s.view(r), r.Text("state")
	header, same := tagged(r, v, "list "+state)
	if same {
		return wire.Answered{Status: http.StatusNotModified, Header: header}, nil
	}
	list := v.RedactedList()
	list.Capabilities = slices.DeleteFunc(list.Capabilities, func(e *door.Entry) bool {
		return string(e.State) != state && (state != "" || e.State == shadowed)
	})
	return wire.Answered{Header: header, Value: list}, nil
}

// A Description is a capability with its schema and text.
type Description struct {
	door.Description

	// NotForModels says why a model is not shown this text. It is set for
	// operators only: others are not shown it either.
	NotForModels string `json:"notForModels,omitempty"`
}

func (s *server) show(r *wire.Request) (any, error) {
	v, id := s.view(r), r.PathValue("id")
	if !r.Who.Operator {
		e, err := v.RedactedLookup(id)
		if err != nil {
			return nil, err
		}
		d, err := s.Door.Describe(r.Context(), v, string(e.ID))
		if err != nil {
			return nil, err
		}
		d.Entry, d.Detail.Schema = v.Redacted(d.Entry), sound(d.Detail.Schema)
		return Description{Description: d}, nil
	}
	d, err := s.Door.Inspect(r.Context(), v, id)
	if err != nil {
		return nil, err
	}
	d.Detail.Schema = sound(d.Detail.Schema)
	return Description{d, d.Entry.HeldBack()}, nil
}

// sound returns a schema as it may stand in a document: one that is no JSON as a
// text.
func sound(schema json.RawMessage) json.RawMessage {
	if len(schema) == 0 || json.Valid(schema) {
		return schema
	}
	text, _ := json.Marshal(string(schema)) // a text cannot fail
	return text
}

// A Why is where a capability stands, and why.
type Why struct {
	ID        capability.ID `json:"id"`
	Name      string        `json:"name"`
	State     string        `json:"state"`
	Available bool          `json:"available"`
	Why       []string      `json:"why"`
	Related   []Related     `json:"related"`
}

// A Related is what a capability has to do with another.
type Related struct {
	door.Relation
	Name string `json:"name"`
}

func (s *server) why(r *wire.Request) (any, error) {
	v := s.view(r)
	e, err := v.RedactedLookup(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	relations, err := v.Related(string(e.ID))
	if err != nil {
		return nil, err
	}
	e = v.Redacted(e)
	why := s.Why
	if !r.Who.Operator {
		why = (*door.Entry).Why // which settings name it, and in which file, is for operators
	}
	out := Why{ID: e.ID, Name: e.Name, State: string(e.State), Available: e.Available, Why: why(e), Related: []Related{}}
	for _, one := range relations {
		related := Related{Relation: one}
		other, err := v.RedactedLookup(string(one.ID))
		if err != nil {
			continue
		}
		related.Name = other.Name
		out.Related = append(out.Related, related)
	}
	return out, nil
}

// A Lint is what is wrong in the catalog.
type Lint struct {
	Problems []capability.Problem `json:"problems"`
	Errors   int                  `json:"errors"`
	Warnings int                  `json:"warnings"`

	// Note says what is not told to the caller.
	Note string `json:"note,omitempty"`
}

func (s *server) lint(r *wire.Request) (any, error) {
	list := s.view(r).RedactedList()
	out := Lint{Problems: list.Problems, Errors: list.Stats.Errors}
	out.Warnings = len(out.Problems) - out.Errors
	if !r.Who.Operator {
		out.Note = "this is about single capabilities that you see; of names used twice and of files that cannot be read those are told who run Ken"
	}
	return out, nil
}

// waiting is how long a request may wait for a change.
const waiting = 50 * time.Second

// Changed is what happened to the catalog since a version.
type Changed struct {
	Catalog  door.Stats    `json:"catalog"`
	Changes  []door.Change `json:"changes"`
	Complete bool          `json:"complete"` // false: everything may be different
}

func (s *server) changes(r *wire.Request) (any, error) {
	if !r.Has("after") {
		return nil, wire.Bad("after must be the version you have, as stats.indexVersion gives it: ?after=1")
	}
	ctx, cancel := context.WithTimeout(r.Context(), waiting)
	defer cancel()
	defer context.AfterFunc(s.Waiting, cancel)()
	next := s.Door.Next
	if r.Who.Operator {
		next = s.Door.NextOverseen
	}
	news, err := next(ctx, r.Who.Principal, uint64(r.Whole("after", 0)))
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return wire.Answered{Status: http.StatusNoContent}, nil
	}
	if err != nil {
		return nil, err
	}
	out := Changed{Catalog: news.View.Stats(), Changes: []door.Change{}, Complete: news.Complete}
	if !r.Who.Operator {
		out.Catalog = news.View.RedactedStats()
	}
	for _, c := range news.Changes {
		// For removed entries it is unknown who was allowed to see them.
		if c.What == "removed" && !r.Who.Operator {
			out.Complete = false
			continue
		}
		if _, err := news.View.RedactedLookup(string(c.ID)); err != nil && c.What != "removed" {
			out.Complete = out.Complete && c.What == "added" // what is in quarantine now may have been seen before
			continue
		}
		out.Changes = append(out.Changes, c)
	}
	return out, nil
}
