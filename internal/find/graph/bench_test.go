package graph

import (
	"fmt"
	"testing"

	"ken/capability"
)

// sizes are those of the performance gates.
func sizes() []int { return []int{100, 1_000, 10_000} }

// BenchmarkBuild: five tags and one requirement each, and a preset for every
// ten.
func BenchmarkBuild(b *testing.B) {
	for _, n := range sizes() {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			entries, presets := taggedEntries(n), tenfold(n)
			b.ReportAllocs()
			for b.Loop() {
				Build(entries, presets)
			}
		})
	}
}

func tenfold(n int) []capability.Preset {
	var out []capability.Preset
	names := memberNames(n)
	for len(names) >= 10 {
		out = append(out, capability.Preset{Name: names[0], Members: names[:10]})
		names = names[10:]
	}
	return out
}

// BenchmarkRerank takes 50 hits that depend on each other, share presets and
// tags, and lead to others; "ties" gives them all one score.
func BenchmarkRerank(b *testing.B) {
	literal := Default()
	literal.Literal = true
	for _, n := range sizes() {
		g := Build(taggedEntries(n), tenfold(n))
		for _, bb := range []struct {
			name string
			step float64
			cfg  Config
		}{
			{"default", 0.01, Default()}, {"ties", 0, Default()}, {"literal", 0.01, literal}, {"off", 0.01, Config{}},
		} {
			hits := make([]Scored, 50)
			for i := range hits {
				hits[i] = Scored{(i*n/50 + i) % n, 0.9 - bb.step*float64(i)}
			}
			b.Run(fmt.Sprintf("%s/%d", bb.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					g.Rerank(hits, bb.cfg, all)
				}
			})
		}
	}
}

func BenchmarkRelated(b *testing.B) {
	for _, n := range sizes() {
		g := Build(taggedEntries(n), tenfold(n))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g.Related(n / 2)
			}
		})
	}
}
