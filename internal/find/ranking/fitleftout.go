//go:build fit

package ranking

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
)

// LeftOut prints how well a set is answered by weights, and by a student, that
// never saw it: by words alone, and with vectors. The dev sets, which no fit sees,
// are answered by the weights of all training sets. training/NOTES.md has the
// table.
func (f *Fitting) LeftOut() {
	dir := f.trainingSets()
	outOfScope := readRows(filepath.Join(dir, "clinc150", "oos.jsonl"))
	kinds := []*weights{&wordsAlone, &withVectors, &withEmbedder}
	train := [][]*fitSet{f.readSets(dir, trainSets, nobody), f.readSets(dir, trainSets, unseen), f.readSets(dir, trainSets, unseenTwice)}
	devDir := filepath.Join(dir, "..", "dev")
	dev := [][]*fitSet{f.readSets(devDir, devSets, nobody), f.readSets(devDir, devSets, seen), f.readSets(devDir, devSets, seenTwice)}

	fmt.Println("| set | words alone | with vectors | with the second reader | difference of these | 95 % of resamplings |\n|---|---|---|---|---|---|")
	var mean [2][3]float64
	row := func(kind, i int, gains [3][]float64) {
		name := slices.Concat(trainSets, devSets)[i]
		low, high := interval(gains[1], gains[2])
		a, b, c := average(gains[0]), average(gains[1]), average(gains[2])
		fmt.Printf("| %s | %.1f | %.1f | %.1f | %+.1f | %+.1f to %+.1f |\n", name, a, b, c, c-b, low, high)
		for k, x := range []float64{a, b, c} {
			mean[kind][k] += x
		}
	}
	means := func(kind, of int, what string) {
		n := float64(of)
		fmt.Printf("| mean of the %s sets | %.1f | %.1f | %.1f | | |\n", what, mean[kind][0]/n, mean[kind][1]/n, mean[kind][2]/n)
	}
	for i, name := range trainSets {
		var gains [3][]float64
		for k, into := range kinds {
			others := slices.DeleteFunc(slices.Clone(train[k]), func(s *fitSet) bool { return sameFold(s.name, name) })
			into.rank = fitRank(others)
			gains[k] = gainsOf(train[k][i])
			if name == "clinc150" {
				fitTrust(others, nil, into)
				defer fmt.Println(abstention(train[k][i], outOfScope))
			}
		}
		row(0, i, gains)
	}
	means(0, len(trainSets), "left-out")
	for k, into := range kinds {
		into.rank = fitRank(train[k])
	}
	for i := range devSets {
		row(1, len(trainSets)+i, [3][]float64{gainsOf(dev[0][i]), gainsOf(dev[1][i]), gainsOf(dev[2][i])})
	}
	means(1, len(devSets), "dev")
}

// sameFold reports whether two sets are of one family, and are left out together.
func sameFold(a, b string) bool {
	return slices.ContainsFunc(folds, func(sets []string) bool { return slices.Contains(sets, a) && slices.Contains(sets, b) })
}

var devSets = []string{"acebench-en", "restbench", "bfcl-multiturn"}

// gainsOf returns the NDCG@5 of each message of a set.
func gainsOf(s *fitSet) (out []float64) {
	for _, q := range s.queries {
		gold := 0
		for _, id := range q.Gold {
			if _, ok := s.slots[id]; ok {
				gold++
			}
		}
		if gold == 0 {
			continue
		}
		search := s.look(q.Query)
		got, best := 0.0, 0.0
		for i := range 5 {
			discount := 1 / math.Log2(float64(i+2))
			if i < gold {
				best += discount
			}
			if i < len(search.candidates) && s.isGold(q.Gold, search.at(i).slot) {
				got += discount
			}
		}
		out = append(out, 100*got/best)
	}
	return out
}

func average(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	return sum / float64(len(list))
}

// interval draws the messages again with replacement, and gives what the mean
// difference is between in 95 of 100 such draws.
func interval(a, b []float64) (low, high float64) {
	random := rand.New(rand.NewPCG(1, 1))
	draws := make([]float64, 2000)
	for i := range draws {
		for range a {
			j := random.IntN(len(a))
			draws[i] += (b[j] - a[j]) / float64(len(a))
		}
	}
	slices.Sort(draws)
	return draws[len(draws)/40], draws[len(draws)-1-len(draws)/40]
}

// abstention says how often an answer is held back at the usual floor: for
// messages that nothing answers, and at the price of which recall.
func abstention(s *fitSet, outOfScope []fitRow) string {
	held, kept, found, without := 0, 0, 0, 0
	for _, q := range outOfScope {
		if search := s.look(q.Query); search.confidence(s.view).fit < 0.3 {
			held++
		}
	}
	for _, q := range s.queries {
		search := s.look(q.Query)
		hit := false
		for i := range min(5, len(search.candidates)) {
			hit = hit || s.isGold(q.Gold, search.at(i).slot)
		}
		if hit {
			without++
		}
		if search.confidence(s.view).fit >= 0.3 {
			kept++
			if hit {
				found++
			}
		}
	}
	share := func(n, of int) float64 { return 100 * float64(n) / float64(of) }
	return fmt.Sprintf("%s left out: %.1f %% of out-of-scope messages held back; recall@5 in scope %.1f, %.1f without a floor; %.1f %% answered",
		s.name, share(held, len(outOfScope)), share(found, len(s.queries)), share(without, len(s.queries)), share(kept, len(s.queries)))
}
