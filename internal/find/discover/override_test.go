package discover

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"ken/capability"
	"ken/internal/testkit"
)

// TestNumbers: every field of an override has its number, applying them all
// changes nothing, each one changes something, and an empty one nothing.
func TestNumbers(t *testing.T) {
	c := Defaults()
	c.Priors = map[capability.ID]float64{"tool:a": 0.5}
	numbers := c.Numbers()
	if got := numbers.Apply(c); !reflect.DeepEqual(got, c) {
		t.Errorf("Apply(Numbers) = %+v, want %+v", got, c)
	}
	if got := (Override{}).Apply(c); !reflect.DeepEqual(got, c) {
		t.Errorf("an empty override gives %+v, want %+v", got, c)
	}
	v := reflect.ValueOf(numbers)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if v.Field(i).IsNil() {
			t.Errorf("Numbers has no %s", name)
			continue
		}
		one := reflect.New(v.Type()).Elem()
		changed := reflect.New(v.Field(i).Type().Elem())
		switch now := v.Field(i).Elem(); now.Kind() {
		case reflect.Int:
			changed.Elem().SetInt(now.Int() + 1)
		case reflect.Float64:
			changed.Elem().SetFloat(now.Float() / 3)
		case reflect.Bool:
			changed.Elem().SetBool(!now.Bool())
		}
		one.Field(i).Set(changed)
		o := one.Interface().(Override)
		if got := o.Apply(c); reflect.DeepEqual(got, c) {
			t.Errorf("an override of %s changes nothing", name)
		}
		both := reflect.ValueOf(o.Over(numbers))
		for j := range both.NumField() {
			want := v.Field(j)
			if j == i {
				want = changed
			}
			if both.Field(j).IsNil() || !both.Field(j).Elem().Equal(want.Elem()) {
				t.Errorf("Over with %s: %s is not as wanted", name, v.Type().Field(j).Name)
			}
		}
	}
	if !maps.Equal(c.Priors, map[capability.ID]float64{"tool:a": 0.5}) {
		t.Errorf("the priors are %v: an override changed them", c.Priors)
	}
}

// TestOverrideJSON: the names are those of ken.yaml.
func TestOverrideJSON(t *testing.T) {
	b := testkit.Must(json.Marshal(Defaults().Numbers()))(t)
	var m map[string]any
	testkit.OK(t, json.Unmarshal(b, &m))
	want := []string{
		"graphBoostFactor", "learnedWeight", "maxTokens", "stickyTopK", "tier0TokenBudget", "tier1MinRelevance", "tier1TailRelevance",
		"tier1TokenBudget", "tier1TopK", "tier2MinRelevance", "tier2TokenBudget", "tier2TopK", "totalTokenBudget", "useGraphReranking",
	}
	if got := slices.Sorted(maps.Keys(m)); !slices.Equal(got, want) {
		t.Errorf("keys = %v, want %v", got, want)
	}
	if b, err := json.Marshal(Override{}); err != nil || string(b) != "{}" {
		t.Errorf("an empty override is %s, %v", b, err)
	}
}

// TestLearnedWeight: nothing of what was learned counts at 0, and more of it
// above 1.
func TestLearnedWeight(t *testing.T) {
	w := of(t, caps(
		capability.Capability{Name: "weather-a", Description: "Forecast for a city"},
		capability.Capability{Name: "weather-b", Description: "Forecast for a city"},
	)...)
	cfg := Defaults()
	plain := w.find(t, "forecast for the city", cfg)
	cfg.Priors = map[capability.ID]float64{"tool:weather-b": 1}
	score := func(weight float64) float64 {
		q := Query{Text: "forecast for the city", Override: Override{Learned: &weight}}
		sel := testkit.Must(w.Find(t.Context(), w.view, q, cfg))(t)
		for _, n := range sel.Ranking {
			if n.ID == "tool:weather-b" {
				return n.Score
			}
		}
		t.Fatalf("it is not in %v", sel.Ranking)
		return 0
	}
	none, once, twice := score(0), score(1), score(2)
	if !(none < once && once < twice) {
		t.Errorf("scores are %v, %v, %v; want them to grow with the weight", none, once, twice)
	}
	i := slices.IndexFunc(plain.Ranking, func(n Nearest) bool { return n.ID == "tool:weather-b" })
	if i < 0 || plain.Ranking[i].Score != none {
		t.Errorf("at 0 the score is %v, without anything learned %v", none, plain.Ranking)
	}
}
