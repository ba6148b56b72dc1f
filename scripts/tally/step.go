package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Step is what one line of the final table says, and the names behind it.
type Step struct {
	Name    string
	Start   time.Time
	Seconds float64
	CPU     float64  // processor time in seconds of all programs that it waited for
	Passed  []string // the leaves among the tests that passed, as "package Name"
	Failed  []Test
	Skipped []Test
	Ran     []string // every test that ran to an end, parents included
	Slow    []Slow   // its slowest leaves, the slowest first
}

// A Test is one test, or one check, that did not simply pass.
type Test struct {
	Name   string // "package TestName"
	Reason string
}

// Slow is a test and how long it took, including waiting for other tests.
type Slow struct {
	Name    string
	Seconds float64
}

// mostSlow is how many of a step's slowest tests are kept and shown in the
// table.
const mostSlow = 15

func slowest(list []Slow) []Slow {
	slices.SortStableFunc(list, func(a, b Slow) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return list[:min(len(list), mostSlow)]
}

// layer returns the number that the name begins with, or -1.
func (s *Step) layer() int {
	word, _, _ := strings.Cut(s.Name, " ")
	if n, err := strconv.Atoi(word); err == nil {
		return n
	}
	return -1
}

func (s *Step) verdict() string {
	if len(s.Failed) > 0 {
		return "FAILED"
	}
	if len(s.Passed) == 0 && len(s.Skipped) > 0 {
		return "skipped"
	}
	return "ok"
}

// save writes the step as the next file of dir. Steps may end at the same time.
func (s *Step) save(dir string) error {
	if dir == "" {
		return fmt.Errorf("record step %q: set TALLY_DIR to an existing directory", s.Name)
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("step-%03d.json", n)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		return errors.Join(err, f.Close())
	}
}

// load returns the steps by layer, and within a layer in the order in which they
// ended.
func load(dir string) ([]*Step, error) {
	names, err := files(dir)
	if err != nil {
		return nil, err
	}
	var steps []*Step
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		s := new(Step)
		if err := json.Unmarshal(data, s); err != nil {
			return nil, fmt.Errorf("read step %s: %w", name, err)
		}
		steps = append(steps, s)
	}
	slices.SortStableFunc(steps, func(a, b *Step) int { return cmp.Compare(a.layer(), b.layer()) })
	return steps, nil
}

func files(dir string) ([]string, error) {
	return filepath.Glob(filepath.Join(dir, "step-*.json"))
}
