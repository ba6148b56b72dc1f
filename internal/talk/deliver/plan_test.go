package deliver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
)

func offers(n, tokens int) []Offer {
	list := make([]Offer, n)
	for i := range list {
		list[i] = offer(fmt.Sprintf("t%04d", (i*7)%n), tokens)
	}
	return list
}

func row(t testing.TB, wire model.Wire, name string) model.Row {
	t.Helper()
	var table *model.Table
	r, ok := table.Find(wire, name)
	if !ok {
		t.Fatalf("the table has no row for %s", name)
	}
	return r
}

// TestBeginAuto: the cheapest delivery mode that the model has, with the numbers.
func TestBeginAuto(t *testing.T) {
	claude, gemini, local := row(t, model.Messages, "claude-opus-5-5"), row(t, model.Gemini, "gemini-4-argon"), row(t, model.Chat, "gpt-oss:20b")
	tests := []struct {
		name string
		in   PlanInput
		want model.DeliveryMode
		why  string
	}{
		{"a few", PlanInput{Row: gemini, All: offers(5, 200)}, model.Whole, "5 tools of 1000 tokens"},
		{"many", PlanInput{Row: gemini, All: offers(300, 300)}, model.Bridge, "300 tools of 90000 tokens"},
		{"many and inline", PlanInput{Row: claude, All: offers(300, 300)}, model.Inline, "inline $"},
		{"inline refused", PlanInput{Row: claude, All: offers(300, 300), Refused: map[model.DeliveryMode]bool{model.Inline: true}}, model.Bridge, "bridge $"},
		{"both refused", PlanInput{Row: claude, All: offers(300, 300), Refused: map[model.DeliveryMode]bool{model.Inline: true, model.Search: true}}, model.Bridge, "bridge $"},
		{"too many to count", PlanInput{Row: claude}, model.Inline, "too many to be shown whole"},
		{"too large for the window", PlanInput{Row: local, All: offers(20, 4000)}, model.Bridge, "do not fit into a window of 131072"},
		{"no tools", PlanInput{Row: gemini, All: []Offer{}}, model.Whole, "0 tools of 0 tokens"},
		{"nothing known", PlanInput{All: offers(300, 300)}, model.Bridge, "300 tools"},
	}
	for _, tt := range tests {
		tt.in.Last = own()
		p := Begin(tt.in)
		if p.Delivery != tt.want || !strings.Contains(p.Why, tt.why) || strings.Contains(p.Why, "\n") {
			t.Errorf("%s: Begin = %s, %q; want %s and %q", tt.name, p.Delivery, p.Why, tt.want, tt.why)
		}
	}
}

// TestBeginAsked: the delivery mode that was asked for, or the next lower that there is.
func TestBeginAsked(t *testing.T) {
	both := model.Row{DeliveryModes: []model.DeliveryMode{model.Inline, model.Search}}
	search := model.Row{DeliveryModes: []model.DeliveryMode{model.Search}}
	tests := []struct {
		row     model.Row
		want    model.DeliveryMode
		refused model.DeliveryMode
		got     model.DeliveryMode
	}{
		{both, model.Inline, "", model.Inline},
		{both, model.Inline, model.Inline, model.Search},
		{both, model.Search, "", model.Search},
		{both, model.Search, model.Search, model.Bridge},
		{search, model.Inline, "", model.Search},
		{model.Row{}, model.Inline, "", model.Bridge},
		{model.Row{}, model.Search, "", model.Bridge},
		{model.Row{}, model.Bridge, "", model.Bridge},
		{model.Row{}, model.Extend, "", model.Extend},
		{model.Row{}, model.PerTurn, "", model.PerTurn},
		{model.Row{}, model.Whole, "", model.Bridge}, // All is not known
	}
	for _, tt := range tests {
		p := Begin(PlanInput{Want: tt.want, Row: tt.row, Refused: map[model.DeliveryMode]bool{tt.refused: true}})
		if p.Delivery != tt.got || !strings.Contains(p.Why, "toolDelivery "+string(tt.want)) {
			t.Errorf("asked for %s with %v, %q refused: %s, %q; want %s", tt.want, tt.row.DeliveryModes, tt.refused, p.Delivery, p.Why, tt.got)
		}
	}
}

// TestBeginTools: sorted, Ken's own last and in their order, whatever the order
// of what comes in; a list of everything has no use for a search.
func TestBeginTools(t *testing.T) {
	all, core := offers(20, 50), []Offer{offer("zz", 10), offer("core", 10)}
	for _, delivery := range []model.DeliveryMode{model.Whole, model.Bridge} {
		a := Begin(PlanInput{Want: delivery, All: all, Core: core, Last: own()})
		backwards := slices.Clone(all)
		slices.Reverse(backwards)
		b := Begin(PlanInput{Want: delivery, All: backwards, Core: core, Last: own()})
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("%s: the order of what comes in shows", delivery)
		}
		mine := map[model.DeliveryMode]int{model.Whole: len(own()) - 2, model.Bridge: len(own())}[delivery]
		if len(a.Tools) != len(a.Offers)+mine || a.Tools[len(a.Tools)-1].Name != "select_active_intent" || a.Map != (delivery == model.Bridge) {
			t.Errorf("%s: %d tools, %d offers, the last is %s", delivery, len(a.Tools), len(a.Offers), a.Tools[len(a.Tools)-1].Name)
		}
		if !slices.IsSortedFunc(a.Offers, func(x, y session.Offer) int { return strings.Compare(x.Tool, y.Tool) }) {
			t.Errorf("%s: %v is not sorted", delivery, a.Offers)
		}
	}
	p := Begin(PlanInput{Want: model.Whole, All: all, Last: own(), List: door.Others{Text: "- skill:x: X"}})
	var names []string
	for _, t := range p.Tools[len(p.Offers):] {
		names = append(names, t.Name)
	}
	if want := []string{"describe_capability", "ask_user", "select_active_intent"}; !slices.Equal(names, want) || p.Map || p.List.Text == "" {
		t.Errorf("whole: Ken's own tools are %q, map %v, list %q; want %q, and the list instead of the map", names, p.Map, p.List.Text, want)
	}
}

// TestLiveOf: the newest prefix counts, and what is not sent is not live.
func TestLiveOf(t *testing.T) {
	old := session.Entry{Kind: session.Prefix, Tools: own(), Offers: []session.Offer{{Tool: "gone", ID: "tool:gone"}}}
	now := session.Entry{Kind: session.Prefix, System: "s", Tools: own()[:1], Offers: []session.Offer{{Tool: "here", ID: "tool:here"}}}
	text := session.Entry{Kind: session.Added, Shown: map[capability.ID]string{"tool:x": "full:1"}, Offers: []session.Offer{{Tool: "x", ID: "tool:x"}}}
	l := LiveOf([]session.Entry{old, text, now})
	if _, ok := l.Tools["gone"]; ok || l.Tools["here"].ID != "tool:here" || l.System != "s" || len(l.Prefix) != 1 || l.Shown["tool:x"] != "full:1" {
		t.Errorf("LiveOf = %+v", l)
	}
	if _, ok := l.Tools["x"]; ok || l.Names["x"].ID != "tool:x" {
		t.Errorf("LiveOf = %+v; want x as a name, not as a tool", l)
	}
	if taken := l.Taken(); len(taken) != 2 || len(l.Names) != 1 {
		t.Errorf("Taken = %v", taken)
	}
	var zero Live
	if _, ok := zero.Resolve("x"); ok || len(zero.Taken()) != 0 {
		t.Error("the zero Live knows something")
	}
}
