package catalogapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/find/eval"
	"ken/internal/serve/httpapi/wire"
)

// A CaseList is what was saved, the newest first.
type CaseList struct {
	Cases    []Case   `json:"cases"`
	Cut      int      `json:"cut"`      // that were left out
	Problems []string `json:"problems"` // rows that cannot be read
}

const (
	usualCases = 1000
	mostGold   = 100
	longestID  = 1000
)

func (s *server) listCases(r *wire.Request) (any, error) {
	limit := r.Whole("limit", usualCases)
	if limit < 1 || limit > mostCases {
		return nil, wire.Bad(fmt.Sprintf("limit is %d; it is within 1 to %d", limit, mostCases))
	}
	out := CaseList{Cases: []Case{}, Problems: []string{}}
	if s.Cases == nil {
		return out, nil
	}
	cases, problems, err := s.Cases.List()
	if err != nil {
		return nil, err
	}
	slices.Reverse(cases)
	out.Problems = append(out.Problems, problems...)
	out.Cases = append(out.Cases, cases[:min(limit, len(cases))]...)
	out.Cut = len(cases) - len(out.Cases)
	return out, nil
}

// A CaseRequest is a case to be saved.
type CaseRequest struct {
	ID     string   `json:"id,omitempty"`
	Query  string   `json:"query"`
	Gold   []string `json:"gold"`
	Before []Said   `json:"before,omitempty"`
}

func (c *CaseRequest) check() error {
	switch {
	case strings.TrimSpace(c.Query) == "":
		return wire.Bad("query is empty; it is the message")
	case c.Gold == nil:
		return wire.Bad("gold is missing; it is the ids of what should be found, and an empty list says that nothing should")
	case len(c.Gold) > mostGold:
		return wire.Bad(fmt.Sprintf("gold has %d ids; %d are taken", len(c.Gold), mostGold))
	case len(c.ID) > longestID:
		return wire.Bad(fmt.Sprintf("id has %d bytes; %d are taken", len(c.ID), longestID))
	}
	for _, id := range c.Gold {
		if id == "" || len(id) > longestID {
			return wire.Bad(fmt.Sprintf("gold has an id of %d bytes; 1 to %d are taken", len(id), longestID))
		}
	}
	return checkSaid(c.Query, c.Before)
}

func (s *server) saveCase(r *wire.Request) (any, error) {
	var in CaseRequest
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	if s.Cases == nil {
		return nil, unkept("cases are not kept here", "serve with a state folder")
	}
	return s.Cases.Save(Case{ID: in.ID, Query: in.Query, Gold: distinct(in.Gold), Before: in.Before})
}

func distinct(list []string) []string {
	out := []string{}
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func (s *server) deleteCase(r *wire.Request) (any, error) {
	if s.Cases == nil {
		return nil, wire.Missing("there is no case " + r.PathValue("id"))
	}
	return nil, s.Cases.Delete(r.PathValue("id"))
}

// An Evaluation is what cases are measured with.
type Evaluation struct {
	Find         eval.Finder
	Known        func(id string) bool // whether the catalog holds what could be found
	Capabilities int                  // how many that are
}

// An EvalRequest says which cases to measure: those given, or where there are
// none those that were saved.
type EvalRequest struct {
	Cases []CaseRequest `json:"cases,omitempty"`
}

// An EvalReport is what ken eval --json says, with a row for each case.
type EvalReport struct {
	eval.Report
	Capabilities int             `json:"capabilities"` // that could be found
	Each         []eval.PerQuery `json:"each"`
}

func (s *server) evaluate(r *wire.Request) (any, error) {
	var in EvalRequest
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	queries, problems, err := s.queries(in)
	if err != nil {
		return nil, err
	}
	if !s.measuring.CompareAndSwap(false, true) {
		return nil, &wire.Problem{Status: http.StatusConflict, Code: "busy", Detail: "another evaluation runs; ask again when it has ended"}
	}
	defer s.measuring.Store(false)
	e, err := s.Evaluate(r.Context(), r.Who)
	if err != nil {
		return nil, err
	}
	out := EvalReport{Capabilities: e.Capabilities}
	if out.Report, err = eval.Run(r.Context(), e.Find, queries, eval.Options{Runs: runs(len(queries)), Known: e.Known}); err != nil {
		return nil, err
	}
	out.RSSMB, out.Each = eval.ResidentMB(), out.Report.Each
	out.Problems = append(problems, out.Problems...)
	return out, nil
}

// runs is how often each query is timed: many of them need fewer.
func runs(queries int) int {
	if queries > 1000 {
		return 1
	}
	return 3
}

func (s *server) queries(in EvalRequest) ([]eval.Query, []capability.Problem, error) {
	problems := []capability.Problem{}
	var out []eval.Query
	add := func(id, text string, gold []string, before []Said) {
		q := eval.Query{ID: id, Text: text, Gold: gold, File: "cases", Line: len(out) + 1}
		for _, m := range before {
			q.Before = append(q.Before, eval.Message{Role: m.Role, Text: m.Text})
		}
		if q.ID == "" {
			q.ID = fmt.Sprint("case ", q.Line)
		}
		out = append(out, q)
	}
	if in.Cases != nil {
		for i, c := range in.Cases {
			if err := c.check(); err != nil {
				return nil, nil, wire.Bad(fmt.Sprintf("case %d: %v", i+1, err))
			}
			add(c.ID, c.Query, c.Gold, c.Before)
		}
	} else if s.Cases != nil {
		cases, wrong, err := s.Cases.List()
		if err != nil {
			return nil, nil, err
		}
		for _, c := range cases {
			add(c.ID, c.Query, c.Gold, c.Before)
		}
		for _, w := range wrong {
			problems = append(problems, capability.Problem{Severity: capability.Grave, Code: "bad-query", Message: w, Fix: "correct the row, or delete it"})
		}
	}
	switch {
	case len(out) == 0:
		return nil, nil, wire.Bad("there is no case to measure; save one in the playground, or with POST /api/v1/eval/cases")
	case len(out) > mostCases:
		return nil, nil, wire.Bad(fmt.Sprintf("there are %d cases; %d are measured at once", len(out), mostCases))
	}
	return out, problems, nil
}
