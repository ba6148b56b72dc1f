package slash

import (
	"encoding/json"
	"testing"
	"time"
)

const (
	benchSchema = `{"type":"object","properties":{"url":{"type":"string","description":"Where","x-ken-position":1},` +
		`"limit":{"type":"integer","x-ken-flag":"--limit"},"verbose":{"type":"boolean","x-ken-flag":"--verbose"},` +
		`"header":{"type":"array","items":{"type":"string"},"x-ken-flag":"--header"}},"required":["url"],"additionalProperties":false}`
	benchLine = `/command321 get "https://api.example.com/v1/things?q=a b" --limit 20 --verbose --header 'Accept: application/json'`
)

func BenchmarkParse(b *testing.B) {
	x := New(hundreds(500))
	b.Run("known signature", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r, err := x.Parse(benchLine)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := r.Call(nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("schema read each time", func(b *testing.B) {
		for b.Loop() {
			r, _ := x.Parse(benchLine)
			sig, err := ReadSignature(json.RawMessage(benchSchema))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := r.Call(&sig); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("plain text", func(b *testing.B) {
		for b.Loop() {
			if x.Is("/etc/hosts is broken, what shall I do?") {
				b.Fatal("it is no command")
			}
		}
	})
}

func BenchmarkNew(b *testing.B) {
	commands := hundreds(500)
	for b.Loop() {
		New(commands)
	}
}

func BenchmarkComplete(b *testing.B) {
	x := New(hundreds(500))
	for b.Loop() {
		x.Complete("/command3", 9)
	}
}

// TestRoutingIsFast holds the bar: 20 µs with 500 commands, in the best of a
// few rounds, so that a busy machine does not decide.
func TestRoutingIsFast(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("measures time")
	}
	x := New(hundreds(500))
	best := time.Hour
	for range 20 {
		const n = 200
		start := time.Now()
		for range n {
			r, err := x.Parse(benchLine)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Call(nil); err != nil {
				t.Fatal(err)
			}
		}
		best = min(best, time.Since(start)/n)
	}
	if bar := 20 * time.Microsecond; best > bar {
		t.Errorf("routing and parsing takes %v, want at most %v", best, bar)
	}
}
