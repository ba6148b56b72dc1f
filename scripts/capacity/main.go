// Command capacity says what a number of users needs: replicas, PostgreSQL, and what is the
// first thing that does not suffice. It knows what was measured (measured.json, from
// TestCapacity in cmd/ken) and assumes how people work (see [habits]).
//
//	go run ./scripts/capacity                       the tables of docs/scale.md
//	go run ./scripts/capacity -users 250000         for another number of users
//	go run ./scripts/capacity -online 0.3 -turns 30 for other habits
package main

import (
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

//go:embed measured.json
var measuredText []byte

// measured is what things cost, as they were measured.
type measured struct {
	Costs  map[string]cost `json:"costs"` // of one
	Commit struct {
		Alone float64 `json:"aloneMs"` // a batch by itself
		By16  float64 `json:"by16Ms"`  // a batch, if 16 share a commit
	} `json:"commit"`
}

// A cost is what one of something needs.
type cost struct {
	CPU      float64 `json:"cpuMs"`   // of Ken
	Database float64 `json:"dbCpuMs"` // of PostgreSQL
	Trips    float64 `json:"trips"`
	Bytes    float64 `json:"bytes"`   // between them
	Commits  float64 `json:"commits"` // batches written
	Stored   float64 `json:"stored"`
	Memory   float64 `json:"memoryKB"`
}

func readMeasured() (m measured, err error) {
	d := json.NewDecoder(strings.NewReader(string(measuredText)))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("measured.json: %w", err)
	}
	for _, name := range []string{"find", "call", "command with a key", "turn", "new session", "open stream", "idle replica, a second", "the same with the open streams"} {
		if _, ok := m.Costs[name]; !ok {
			return m, fmt.Errorf("measured.json has no costs of %q; TestCapacity in cmd/ken measures them", name)
		}
	}
	return m, nil
}

func main() {
	h := usual
	users := flag.String("users", "10000,10000000", "numbers of users, with commas between them")
	flag.Float64Var(&h.online, "online", h.online, "part of the users who have a session open at the busiest time")
	flag.Float64Var(&h.turns, "turns", h.turns, "turns of each of them in an hour")
	flag.Parse()
	if err := run(os.Stdout, h, *users); err != nil {
		fmt.Fprintln(os.Stderr, "capacity:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, h habits, list string) error {
	m, err := readMeasured()
	if err != nil {
		return err
	}
	if h.online <= 0 || h.online > 1 || h.turns <= 0 {
		return fmt.Errorf("-online %g -turns %g: use a part between 0 and 1, and more than no turns", h.online, h.turns)
	}
	var users []int
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 {
			return fmt.Errorf("-users %q: write whole numbers with commas between them", list)
		}
		users = append(users, n)
	}
	fmt.Fprint(w, report(m, h, users))
	return nil
}
