package shell

import "testing"

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := parse("git log --oneline -n 5 'some path' | head -3"); err != nil {
			b.Fatal(err)
		}
	}
}
