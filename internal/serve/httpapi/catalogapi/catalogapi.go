// Package catalogapi serves what there is to find: the catalog and its graph,
// search and discovery, the playground with its saved cases, and what waits for
// a person's review.
//
// Operators see all of the catalog, with what is hidden from models and
// why. Others see what a model sees that works for them, and no answer would be
// otherwise if what is hidden from them were not there.
package catalogapi

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/find/eval"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
)

// Config says what to serve. Only Door is needed.
type Config struct {
	Door *door.Door

	// Waiting ends when the server is about to stop: requests that only wait
	// for news are answered then. Nil: never.
	Waiting context.Context

	// Why explains an entry. Nil: the catalog's own word.
	Why func(e *door.Entry) []string

	// Cases keeps eval rows. Nil: none can be saved.
	Cases Cases

	// Evaluate returns what the cases are measured with. Nil: what the door
	// finds for the caller, see [Evaluating].
	Evaluate func(ctx context.Context, who auth.Identity) (Evaluation, error)

	// Reviews are what waits for a person. Nil: nothing.
	Reviews Reviews
}

type server struct {
	Config
	measuring atomic.Bool // one evaluation at a time

	mu     sync.Mutex
	graphs []drawn // the latest first
}

// Routes returns the operations.
func Routes(cfg Config) []wire.Route {
	if cfg.Waiting == nil {
		cfg.Waiting = context.Background()
	}
	if cfg.Why == nil {
		cfg.Why = (*door.Entry).Why
	}
	if cfg.Evaluate == nil {
		cfg.Evaluate = Evaluating(cfg.Door)
	}
	s := &server{Config: cfg}
	return slices.Concat(s.catalogRoutes(), s.findRoutes(), s.caseRoutes(), s.reviewRoutes())
}

func (s *server) catalogRoutes() []wire.Route {
	const group = "catalog"
	return []wire.Route{{
		Method: "GET", Path: "/api/v1/catalog", Name: "listCatalog", Group: group, Summary: "All capabilities with what is wrong with them, as ken catalog list --json",
		Query:  []wire.Param{{Name: "state", About: "only this state; without it all but shadowed ones", Words: []string{"active", "quarantined", shadowed}}},
		Answer: door.Listing{}, Serve: s.list,
	}, {
		Method: "GET", Path: "/api/v1/catalog/{id...}", Name: "showCapability", Group: group, Summary: "One capability with its schema and text",
		Answer: Description{}, Serve: s.show,
	}, {
		Method: "GET", Path: "/api/v1/why/{id...}", Name: "whyCapability", Group: group, Summary: "Where a capability comes from, why it can or cannot be seen, and what it relates to",
		Answer: Why{}, Serve: s.why,
	}, {
		Method: "GET", Path: "/api/v1/lint", Name: "lintCatalog", Group: group, Summary: "What is wrong in the catalog and how to fix it",
		Answer: Lint{}, Serve: s.lint,
	}, {
		Method: "GET", Path: "/api/v1/changes", Name: "waitForChanges", Group: group, Summary: "Wait until the catalog is newer than a version; 204 if nothing changed within 50 s",
		Query:  []wire.Param{{Name: "after", Type: wire.Whole, About: "the version you have (stats.indexVersion)"}},
		Answer: Changed{}, Patience: waiting + 5*time.Second, Serve: s.changes,
	}, {
		Method: "GET", Path: "/api/v1/graph", Name: "drawGraph", Group: group, Summary: "Capabilities and how they relate, in columns",
		Answer: Graph{}, Serve: s.graph,
	}}
}

func (s *server) findRoutes() []wire.Route {
	const group = "find"
	return []wire.Route{{
		Method: "GET", Path: "/api/v1/search", Name: "searchCatalog", Group: group, Summary: "Search while typing: matching capabilities, with counts for filters",
		Query: []wire.Param{
			{Name: "q", About: "the text typed so far; empty: all capabilities by name"},
			{Name: "kind", Many: true, About: "only these kinds"},
			{Name: "category", About: "only this category"},
			{Name: "state", About: "only this state", Words: []string{"active", "quarantined"}},
			{Name: "available", Type: wire.Yes, About: "true: only available capabilities; false: only unavailable ones"},
			{Name: "limit", Type: wire.Whole, About: "maximum number of hits, up to 200; default: 50"},
			{Name: "after", About: "the member next of the previous page"},
		},
		Answer: SearchAnswer{}, Serve: s.search,
	}, {
		Method: "GET", Path: "/api/v1/examples", Name: "examples", Group: group, Summary: "A few example messages of different categories",
		Query:  []wire.Param{{Name: "limit", Type: wire.Whole, About: "maximum number, up to 50; default: 3"}},
		Answer: Examples{}, Serve: s.examples,
	}, {
		Method: "GET", Path: "/api/v1/discover", Name: "discover", Group: group, Summary: "What would be shown to a model for a message, as ken discover --json",
		Query: []wire.Param{
			{Name: "q", About: "the message"},
			{Name: "kind", Many: true, About: "only these kinds"},
			{Name: "category", About: "only this category"},
			{Name: "available", Type: wire.Yes, About: "true: only available capabilities"},
			{Name: "exclude", Many: true, About: "ids to leave out"},
			{Name: "before", Many: true, About: "earlier messages, oldest first"},
			{Name: "session", About: "record the message in this session"},
			{Name: "sessionType", About: "the session's type"},
			{Name: "agent", About: "use the settings of this agent (discovery.agents)"},
			{Name: "top", Type: wire.Whole, About: "discovery.tier1TopK for this message"},
			{Name: "full", Type: wire.Whole, About: "discovery.tier2TopK for this message"},
			{Name: "budget", Type: wire.Whole, About: "discovery.totalTokenBudget for this message"},
			{Name: "minRelevance", Type: wire.Number, About: "discovery.tier1MinRelevance for this message"},
		},
		Answer: door.Found{}, Serve: s.discover,
	}, {
		Method: "POST", Path: "/api/v1/play", Name: "play", Group: group, Summary: "What a message would find with other settings; nothing is recorded",
		Body: PlayRequest{}, Answer: Play{}, Serve: s.play,
	}}
}

func (s *server) caseRoutes() []wire.Route {
	const group = "evaluation"
	return []wire.Route{{
		Method: "GET", Path: "/api/v1/eval/cases", Name: "listCases", Group: group, Summary: "The saved eval cases, the newest first",
		Query:  []wire.Param{{Name: "limit", Type: wire.Whole, About: "maximum number of nodes, up to 10000; default: 1000"}},
		Answer: CaseList{}, Operator: true, Serve: s.listCases,
	}, {
		Method: "POST", Path: "/api/v1/eval/cases", Name: "saveCase", Group: group, Summary: "Save an eval case; replaces a case with the same message",
		Body: CaseRequest{}, Answer: Case{}, Status: http.StatusCreated, Operator: true, Serve: s.saveCase,
	}, {
		Method: "DELETE", Path: "/api/v1/eval/cases/{id}", Name: "deleteCase", Group: group, Summary: "Delete an eval case",
		Operator: true, Serve: s.deleteCase,
	}, {
		Method: "POST", Path: "/api/v1/eval", Name: "evaluate", Group: group, Summary: "Measure how well the cases are found, as ken eval --json, with a row for each",
		Body: EvalRequest{}, Answer: EvalReport{}, Operator: true, Limit: 8 << 20, Patience: time.Minute, Serve: s.evaluate,
	}, {
		Method: "POST", Path: "/api/v1/eval/checkup", Name: "checkUp", Group: group, Summary: "Ask for each capability in its own words: which are confused, and which descriptions to improve, as ken eval --json",
		Answer: Checkup{}, Operator: true, Patience: 5 * time.Minute, Serve: s.checkup,
	}}
}

func (s *server) reviewRoutes() []wire.Route {
	const group = "reviews"
	return []wire.Route{{
		Method: "GET", Path: "/api/v1/reviews", Name: "listReviews", Group: group, Summary: "Extensions and MCP servers, and what waits for review",
		Answer: []Review{}, Operator: true, Serve: s.listReviews,
	}, {
		Method: "POST", Path: "/api/v1/reviews/{name}", Name: "answerReview", Group: group, Summary: "Accept a reviewed extension or server, or disable it",
		Body: ReviewAnswer{}, Answer: []Review{}, Operator: true, Decision: "open the page, or run ken extension review", Serve: s.answerReview,
	}}
}

// view returns what the caller may see.
func (s *server) view(r *wire.Request) door.View {
	if r.Who.Operator {
		return s.Door.OperatorView(r.Who.Principal)
	}
	return s.Door.View(r.Who.Principal)
}

type tagKey struct{ what string }

// tagged returns the entity tag of what is made of a view alone, and whether that
// is what the client has. A tag belongs to one snapshot as one class of viewers
// sees it, and no other ever has it, not after a restart either.
func tagged(r *wire.Request, v door.View, what string) (http.Header, bool) {
	tag := v.Keep(tagKey{what}, func() any { return `"` + rand.Text() + `"` }).(string)
	for has := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if strings.TrimPrefix(strings.TrimSpace(has), "W/") == tag {
			return tagHeader(tag), true
		}
	}
	return tagHeader(tag), false
}

func tagHeader(tag string) http.Header {
	return http.Header{"Etag": {tag}, "Cache-Control": {"private, no-cache"}}
}

// unkept is the refusal where a part is not there.
func unkept(what, fix string) error {
	return &wire.Problem{Status: http.StatusServiceUnavailable, Code: "unavailable", Detail: what + "; " + fix}
}

// Evaluating measures with what a door finds for a model that works for the person who
// asks: as ken eval does, without what was learned. Nothing is recorded.
func Evaluating(d *door.Door) func(context.Context, auth.Identity) (Evaluation, error) {
	return func(_ context.Context, who auth.Identity) (Evaluation, error) {
		v := d.View(who.Principal)
		known := map[string]bool{}
		for e := range v.All() {
			if e.State == "active" {
				known[string(e.ID)] = true
			}
		}
		floor := d.Settings(v, capability.Scope{}).MinRelevance
		return Evaluation{
			Capabilities: len(known), Known: func(id string) bool { return known[id] },
			Find: func(ctx context.Context, q eval.Query) (eval.Answer, error) {
				query := door.Query{Text: q.Text, Override: door.Override{Learned: new(float64)}}
				for _, m := range q.Before {
					query.Before = append(query.Before, door.Message{Role: m.Role, Text: m.Text})
				}
				found, err := d.Preview(ctx, v, query)
				if err != nil {
					return eval.Answer{}, err
				}
				return eval.AnswerOf(found.Selection, floor), nil
			},
		}, nil
	}
}
