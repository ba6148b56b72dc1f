package catalogapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
)

// A Review is something that may wait for a person's look: an extension, or the
// tools of an MCP server. All texts of it came from outside.
type Review struct {
	Name    string         `json:"name"` // unlike all others
	Kind    string         `json:"kind"` // "extension" or "server"
	State   string         `json:"state"`
	Why     string         `json:"why,omitempty"`
	Fix     string         `json:"fix,omitempty"`
	Pending bool           `json:"pending"` // something waits to be accepted
	Changes []ReviewChange `json:"changes"`

	// Digest is that of all that is shown here: what is accepted is exactly
	// what was seen.
	Digest string `json:"digest"`
}

// A ReviewChange is one difference from what was accepted.
type ReviewChange struct {
	What     string   `json:"what"`   // the field, as in "description" or "argv"
	Target   string   `json:"target"` // the action or tool; the package's own name for itself
	Place    string   `json:"place,omitempty"`
	Old      string   `json:"old,omitempty"` // empty: it was not there
	New      string   `json:"new,omitempty"` // empty: it is gone
	Findings []string `json:"findings,omitempty"`
}

// Reviews are what waits for people. Accept refuses with a conflict where the
// digest is not that of what there is when it acts. Disable does not look at it:
// what has changed is switched off all the more.
type Reviews interface {
	List(ctx context.Context) ([]Review, error)
	Accept(ctx context.Context, who auth.Identity, name, digest, why string) error
	Disable(ctx context.Context, who auth.Identity, name, digest, why string) error
}

// A ReviewAnswer is what a person says to a review.
type ReviewAnswer struct {
	Action string `json:"action"`           // "accept" or "disable"
	Digest string `json:"digest,omitempty"` // of what is accepted
	Why    string `json:"why,omitempty"`
}

const longestWhy = 2000

func (s *server) listReviews(r *wire.Request) (any, error) {
	if s.Reviews == nil {
		return []Review{}, nil
	}
	list, err := s.Reviews.List(r.Context())
	if err != nil {
		return nil, err
	}
	out := append([]Review{}, list...)
	for i := range out {
		if out[i].Changes == nil {
			out[i].Changes = []ReviewChange{}
		}
	}
	return out, nil
}

func (s *server) answerReview(r *wire.Request) (any, error) {
	var in ReviewAnswer
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	switch {
	case in.Action != "accept" && in.Action != "disable":
		return nil, wire.Bad(fmt.Sprintf("action is %q; it is accept or disable", in.Action))
	case in.Action == "accept" && in.Digest == "":
		return nil, wire.Bad("digest is missing; it is that of what you saw, as GET /api/v1/reviews gives it")
	case len(in.Why) > longestWhy:
		return nil, wire.Bad(fmt.Sprintf("why has %d bytes; %d are kept", len(in.Why), longestWhy))
	case s.Reviews == nil:
		return nil, wire.Missing("there is no review of " + name)
	}
	list, err := s.Reviews.List(r.Context())
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(list, func(one Review) bool { return one.Name == name }) {
		return nil, wire.Missing("there is no review of " + name + "; GET /api/v1/reviews lists those there are")
	}
	if in.Action == "accept" && !slices.ContainsFunc(list, func(one Review) bool { return one.Name == name && one.Digest == in.Digest }) {
		return nil, &wire.Problem{
			Status: http.StatusConflict, Code: "conflict",
			Detail: name + " is no longer what you saw; look at it again",
		}
	}
	act := s.Reviews.Accept
	if in.Action == "disable" {
		act = s.Reviews.Disable
	}
	if err := act(r.Context(), r.Who, name, in.Digest, in.Why); err != nil {
		return nil, err
	}
	return s.listReviews(r)
}
