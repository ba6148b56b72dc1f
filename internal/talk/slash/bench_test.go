package slash

import (
	"testing"
)

const (
	benchSchema = `{"type":"object","properties":{"url":{"type":"string","description":"Where","x-ken-position":1},` +
		`"limit":{"type":"integer","x-ken-flag":"--limit"},"verbose":{"type":"boolean","x-ken-flag":"--verbose"},` +
		`"header":{"type":"array","items":{"type":"string"},"x-ken-flag":"--header"}},"required":["url"],"additionalProperties":false}`
	benchLine = `/command321 get "https://api.example.com/v1/things?q=a b" --limit 20 --verbose --header 'Accept: application/json'`
)

func BenchmarkSlash(b *testing.B) {
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
}
