package catalogapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/find/discover"
	"ken/internal/find/graph"
	"ken/internal/serve/httpapi/wire"
)

// A Graph is capabilities and how they relate, in columns. Kinds, categories,
// states, types and ends are given by their place in their lists.
type Graph struct {
	Nodes      Nodes            `json:"nodes"`
	Kinds      []string         `json:"kinds"`
	Categories []string         `json:"categories"`
	States     []string         `json:"states"`
	Types      []graph.EdgeType `json:"types"`
	Edges      Edges            `json:"edges"`
	Version    uint64           `json:"version"`
	Cut        int              `json:"cut"` // relations that were left out
}

// Nodes are the capabilities of a [Graph].
type Nodes struct {
	ID       []capability.ID `json:"id"`
	Name     []string        `json:"name"`
	Kind     []int           `json:"kind"`
	Category []int           `json:"category"`
	State    []int           `json:"state"`
}

// Edges are the relations of a [Graph].
type Edges struct {
	From   []int32   `json:"from"`
	To     []int32   `json:"to"`
	Type   []int     `json:"type"`
	Weight []float64 `json:"weight"`
}

// A drawn graph is kept, by its tag.
type drawn struct {
	tag  string
	body []byte
}

// mostDrawn is how many are kept: one is about a megabyte.
const mostDrawn = 8

func (s *server) graph(r *wire.Request) (any, error) {
	v := s.view(r)
	header, same := tagged(r, v, "graph")
	if same {
		return wire.Answered{Status: http.StatusNotModified, Header: header}, nil
	}
	tag := header.Get("Etag")
	body := s.kept(tag)
	if body == nil {
		var err error
		if body, err = json.Marshal(draw(s.Door, v)); err != nil {
			return nil, fmt.Errorf("write the graph: %w", err)
		}
		s.keep(tag, body)
	}
	return wire.Answered{Header: header, Value: wire.Raw{Type: "application/json", Body: body}}, nil
}

func (s *server) kept(tag string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, d := range s.graphs {
		if d.tag == tag {
			copy(s.graphs[1:i+1], s.graphs[:i])
			s.graphs[0] = d
			return d.body
		}
	}
	return nil
}

func (s *server) keep(tag string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.graphs = slices.Insert(s.graphs, 0, drawn{tag, body})
	if len(s.graphs) > mostDrawn {
		s.graphs = slices.Delete(s.graphs, mostDrawn, len(s.graphs))
	}
}

func draw(d *door.Door, v door.View) Graph {
	g := Graph{Types: discover.EdgeTypes(), Version: v.RedactedStats().Version}
	g.Kinds, g.Categories, g.States = []string{}, []string{}, []string{}
	g.Nodes = Nodes{[]capability.ID{}, []string{}, []int{}, []int{}, []int{}}
	kinds, categories, states := numbers{}, numbers{}, numbers{}
	place := map[int32]int32{} // of an ordinal among the nodes
	n := &g.Nodes
	add := func(e *door.Entry) int32 {
		n.ID, n.Name = append(n.ID, e.ID), append(n.Name, e.Name)
		n.Kind = append(n.Kind, kinds.of(string(e.Kind), &g.Kinds))
		n.Category = append(n.Category, categories.of(e.Category, &g.Categories))
		n.State = append(n.State, states.of(string(e.State), &g.States))
		return int32(len(n.ID) - 1)
	}
	known := map[capability.ID]bool{}
	for i, e := range v.Shown() {
		known[e.ID] = true
		place[int32(i)] = add(e)
	}
	// Ken's own tools that are not in the catalog relate only to tools of their
	// category: a catalog's capability cannot list them among its requirements.
	own := map[string][]int32{}
	for e := range v.Own() {
		if !known[e.ID] {
			own[e.Category] = append(own[e.Category], add(e))
		}
	}
	edges := d.Edges(v)
	g.Cut = edges.Cut
	g.Edges = Edges{make([]int32, 0, len(edges.From)), make([]int32, 0, len(edges.From)), make([]int, 0, len(edges.From)), make([]float64, 0, len(edges.From))}
	for i := range edges.From {
		from, seen := place[edges.From[i]]
		to, both := place[edges.To[i]]
		if !seen || !both {
			continue // the graph of a view has only what it sees
		}
		g.Edges.From, g.Edges.To = append(g.Edges.From, from), append(g.Edges.To, to)
		g.Edges.Type = append(g.Edges.Type, int(edges.Type[i]))
		g.Edges.Weight = append(g.Edges.Weight, math.Round(float64(edges.Weight[i])*100)/100)
	}
	same := slices.Index(g.Types, graph.SameCategory)
	for _, category := range slices.Sorted(maps.Keys(own)) {
		g.Cut += graph.Knit(own[category], func(from, to int32) {
			g.Edges.From, g.Edges.To = append(g.Edges.From, from), append(g.Edges.To, to)
			g.Edges.Type, g.Edges.Weight = append(g.Edges.Type, same), append(g.Edges.Weight, graph.WeightCategory)
		})
	}
	return g
}
