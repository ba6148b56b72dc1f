package chat

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"go.uber.org/goleak"

	"ken/internal/talk/event"
	"ken/internal/talk/slash"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A part is a talker that plays what a test gives it.
type part struct {
	turn    func(ctx context.Context, text string, yield func(event.Event, error) bool)
	command func(ctx context.Context, line string) (Output, bool, error)
	offers  []string // complete commands
	status  Status
	replies chan given
	refuse  error // of the next reply
}

type given struct {
	Ask string
	Answer
}

func (p *part) Turn(ctx context.Context, text string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) { p.turn(ctx, text, yield) }
}

func (p *part) Reply(_ context.Context, asked event.Asked, a Answer) error {
	if err := p.refuse; err != nil {
		p.refuse = nil
		return err
	}
	p.replies <- given{asked.ID, a}
	return nil
}

func (p *part) Complete(line string, cursor int) []slash.Completion {
	var out []slash.Completion
	for _, o := range p.offers {
		if strings.HasPrefix(o, line[:cursor]) {
			out = append(out, slash.Completion{Text: o, Start: 0, End: cursor, Kind: "command", Description: "does " + o[1:]})
		}
	}
	return out
}

func (p *part) Command(ctx context.Context, line string) (Output, bool, error) {
	if p.command == nil {
		return Output{}, false, nil
	}
	return p.command(ctx, line)
}

func (p *part) Status() Status { return p.status }

// echo answers with what was said, and says that it ended.
func echo(_ context.Context, text string, yield func(event.Event, error) bool) {
	for _, word := range strings.SplitAfter("you said "+text, " ") {
		if !yield(event.Delta{Text: word}, nil) {
			return
		}
	}
	yield(event.Done{Reason: event.EndAnswer}, nil)
}

var errBroken = errors.New("the wire is broken\x1b[2J")

// A clock goes on by a quarter of a second each time it is looked at.
func clock() func() time.Time {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	return func() time.Time {
		now = now.Add(250 * time.Millisecond)
		return now
	}
}

// goldens compares what show gives with each archive that matches: with every file but
// the first, at the width in its name, which ends in the kind of text.
func goldens(t *testing.T, pattern string, show func(t *testing.T, a *txtar.Archive, width int, kind string) []string) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range a.Files[1:] {
				number, kind, _ := strings.Cut(f.Name, ".")
				width, err := strconv.Atoi(number)
				if err != nil {
					t.Fatal(err)
				}
				got := visible(show(t, a, width, kind))
				if strings.TrimSuffix(got, "\n") != strings.TrimSuffix(string(f.Data), "\n") {
					t.Errorf("%s %s =\n%s\nwant\n%s", path, f.Name, got, f.Data)
				}
			}
		})
	}
}

// visible writes styles as {1;31}.
func visible(lines []string) string {
	s := strings.Join(lines, "\n")
	var b strings.Builder
	for s != "" {
		if n := escape(s); n > 0 {
			b.WriteString("{" + s[2:n-1] + "}")
			s = s[n:]
			continue
		}
		b.WriteByte(s[0])
		s = s[1:]
	}
	return b.String()
}

func parsed(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
