package slash

import (
	"encoding/json"
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
