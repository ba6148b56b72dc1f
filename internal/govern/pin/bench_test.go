package pin_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"ken/internal/govern/pin"
	"ken/internal/testkit/storetest"
)

// thousands returns 2,000 tools of about 1.2 KB each.
func thousands() []pin.Tool {
	var out []pin.Tool
	for i := range 2000 {
		t := named(fmt.Sprintf("service%d_do_something_%d", i%40, i))
		t.Description = fmt.Sprintf("Number %d. %0300d", i, i)
		t.Input = json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"path":{"type":"string","description":"%0200d"},"limit":{"type":"integer","minimum":0},"names":{"type":"array","items":{"type":"string","description":"%0300d"}}},"required":["path"]}`, i, i))
		out = append(out, t)
	}
	return out
}

// BenchmarkCheck is a listing of 2,000 tools in which nothing changed.
func BenchmarkCheck(b *testing.B) {
	d := anyDesk(b, pin.Config{})
	tools := thousands()
	check(b, d, "s", tools...)
	b.ReportAllocs()
	for b.Loop() {
		check(b, d, "s", tools...)
	}
}

// BenchmarkCheckCold is the first of them in a process that has just started.
func BenchmarkCheckCold(b *testing.B) {
	s := storetest.Open(b, storetest.Address(b))
	tools := thousands()
	check(b, newDesk(b, s, pin.Config{}), "s", tools...)
	for b.Loop() {
		check(b, newDesk(b, s, pin.Config{}), "s", tools...)
	}
}

// BenchmarkFirst is the first listing that there ever is.
func BenchmarkFirst(b *testing.B) {
	d := anyDesk(b, pin.Config{})
	tools := thousands()
	n := 0
	for b.Loop() {
		n++
		check(b, d, fmt.Sprint("s", n), tools...)
	}
}
