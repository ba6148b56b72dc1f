//go:build fit

package ranking

import (
	"math"
	"math/rand/v2"
)

// An adam is a gradient descent with a memory.
type adam struct {
	at, mean, square []float64
	step             int
}

func newAdam(n int) *adam {
	return &adam{at: make([]float64, n), mean: make([]float64, n), square: make([]float64, n)}
}

func (a *adam) move(gradient []float64, rate float64) {
	a.step++
	for k, g := range gradient {
		a.mean[k] = 0.9*a.mean[k] + 0.1*g
		a.square[k] = 0.99*a.square[k] + 0.01*g*g
		m, s := a.mean[k]/(1-math.Pow(0.9, float64(a.step))), a.square[k]/(1-math.Pow(0.99, float64(a.step)))
		a.at[k] -= rate * m / (math.Sqrt(s) + 1e-8)
	}
}

// fitRank fits the order of candidates: a softmax over them against the right
// ones, with weights that may not be negative.
func fitRank(sets []*fitSet) [features]float32 {
	type example struct {
		x    [][features]float32
		gold []bool
		n    int
	}
	examples := make([][]example, len(sets))
	var deviation [features]float64
	var mean [features]float64
	seen := 0.0
	for i, s := range sets {
		for _, q := range s.queries {
			var e example
			for _, c := range s.look(q.Query).candidates {
				e.x = append(e.x, c.features)
				e.gold = append(e.gold, s.isGold(q.Gold, c.slot))
				if e.gold[len(e.gold)-1] {
					e.n++
				}
				for k, v := range c.features {
					mean[k] += float64(v)
					deviation[k] += float64(v) * float64(v)
				}
				seen++
			}
			if e.n > 0 {
				examples[i] = append(examples[i], e)
			}
		}
	}
	for k := range mean {
		m := mean[k] / seen
		deviation[k] = math.Sqrt(max(0, deviation[k]/seen-m*m)) + 1e-6
	}
	const steps, batch, decay = 400, 256, 0.03
	random := rand.New(rand.NewPCG(7, 9))
	a := newAdam(features)
	for step := range steps {
		gradient, total := make([]float64, features), 0.0
		for range batch {
			i := random.IntN(len(sets))
			e := &examples[i][random.IntN(len(examples[i]))]
			p := make([]float64, len(e.x))
			most, sum := math.Inf(-1), 0.0
			for j, x := range e.x {
				for k := range x {
					p[j] += a.at[k] * float64(x[k]) / deviation[k]
				}
				most = max(most, p[j])
			}
			for j := range p {
				p[j] = math.Exp(p[j] - most)
				sum += p[j]
			}
			for j, x := range e.x {
				wrong := p[j] / sum
				if e.gold[j] {
					wrong -= 1 / float64(e.n)
				}
				for k := range x {
					gradient[k] += sets[i].weight * wrong * float64(x[k]) / deviation[k]
				}
			}
			total += sets[i].weight
		}
		for k := range gradient {
			gradient[k] = gradient[k]/total + decay*a.at[k]
		}
		a.move(gradient, 0.05*(1-float64(step)/steps))
		for k := range a.at {
			a.at[k] = max(0, a.at[k])
		}
	}
	var weights [features]float32
	for k := range a.at {
		weights[k] = float32(a.at[k] / deviation[k])
	}
	return weights
}

// fitTrust fits the two probabilities: that one of five is right, and that one
// hit is. The order must be fitted by then.
func fitTrust(sets []*fitSet, outOfScope []fitRow, into *weights) {
	type example struct {
		x          []float64
		right      float64
		weight     float64
		set        *fitSet
		search     *searcher
		gold       []string
		confidence confidence
	}
	var examples []example
	add := func(s *fitSet, q fitRow, weight float64) {
		search := s.look(q.Query)
		if len(search.candidates) == 0 {
			return
		}
		x := search.gate(s.view)
		e := example{x: x[:], weight: weight, set: s, search: search, gold: q.Gold}
		for i := range min(5, len(search.candidates)) {
			c := search.at(i)
			if s.isGold(q.Gold, c.slot) {
				e.right = 1
			}
		}
		examples = append(examples, e)
	}
	random := rand.New(rand.NewPCG(5, 6))
	for _, s := range sets {
		for _, q := range s.queries {
			add(s, q, 1/float64(len(s.queries)))
		}
		const foreign = 400 // messages of other sets, which nothing here answers
		for range foreign {
			if other := sets[random.IntN(len(sets))]; other.name != s.name {
				q := other.queries[random.IntN(len(other.queries))]
				q.Gold = nil
				add(s, q, foreignWeight/foreign)
			}
		}
		if s.name == "clinc150" {
			for _, q := range outOfScope {
				add(s, q, outWeight/float64(len(outOfScope)))
			}
		}
	}
	a := newAdam(gates)
	total := 0.0
	var mean, deviation [gates]float64
	for _, e := range examples {
		total += e.weight
		for k, x := range e.x {
			mean[k] += e.weight * x
			deviation[k] += e.weight * x * x
		}
	}
	for k := range mean {
		mean[k] /= total
		deviation[k] = math.Sqrt(max(0, deviation[k]/total-mean[k]*mean[k])) + 1e-6
	}
	mean[fitBias], deviation[fitBias] = 0, 1
	z := make([]float64, gates)
	for step := range 800 {
		gradient := make([]float64, gates)
		for _, e := range examples {
			for k, x := range e.x {
				z[k] = (x - mean[k]) / deviation[k]
			}
			wrong := (logistic(dot(a.at, z)) - e.right) * e.weight / total
			for k := range z {
				gradient[k] += wrong * z[k]
			}
		}
		for k := range gradient {
			if k != fitBias {
				gradient[k] += 0.0003 * a.at[k]
			}
		}
		a.move(gradient, 0.05*(1-float64(step)/800))
	}
	for k := range a.at {
		a.at[k] /= deviation[k]
		if k != fitBias {
			a.at[fitBias] -= a.at[k] * mean[k]
		}
	}
	a.at[fitBias] += lessFrequent
	copy(into.gate[:], a.at)
	for i := range examples {
		examples[i].confidence = examples[i].search.confidence(examples[i].set.view)
	}
	b := newAdam(chances)
	b.at[hitFit], b.at[hitShare] = 1, 1
	for step := range 1500 {
		gradient := make([]float64, chances)
		for _, e := range examples {
			if e.gold == nil {
				continue
			}
			t := e.confidence
			for i := range min(5, len(e.search.candidates)) {
				c := e.search.at(i)
				x := t.chance(c.score, e.search.at(0).score)
				wrong := logistic(dot(b.at, x[:]))
				if e.set.isGold(e.gold, c.slot) {
					wrong--
				}
				for k := range x {
					gradient[k] += wrong * e.weight * x[k]
				}
			}
		}
		b.move(gradient, 0.02*(1-float64(step)/1500))
	}
	copy(into.chance[:], b.at)
}

// What messages that nothing answers weigh against those of one set, and by how
// much less frequent, in log-odds, they are taken to be in use: so that the
// usual floor of 0.3 leaves hardly any answerable message empty.
const (
	foreignWeight = 0.3
	outWeight     = 1.0
	lessFrequent  = 0.95
)

func dot(a, b []float64) float64 {
	sum := 0.0
	for k := range a {
		sum += a[k] * b[k]
	}
	return sum
}
