package door

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/audit"
	"ken/internal/govern/policy"
	"ken/internal/know/catalog"
	"ken/internal/know/source"
	"ken/internal/run/executor"
	"ken/internal/run/executor/function"
	"ken/internal/run/runner"
	"ken/internal/testkit"
)

// A desk of tools that can be called: greet says hello, guard is denied to
// everybody but the role keeper, wired belongs to an extension, and ping is
// part of the program.
type workshop struct {
	*Door
	records func() []audit.Record
	off     map[capability.ID]string
}

func (w *workshop) Off(c *capability.Capability) (why, mend string) {
	if why = w.off[c.ID]; why != "" {
		mend = "ken extension enable"
	}
	return why, mend
}

func (w *workshop) Version() uint64 { return uint64(len(w.off)) }

func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	type in struct {
		Name string `json:"name"`
	}
	var made []*function.Function
	for _, name := range []string{"greet", "guard", "wired", "ping"} {
		f := testkit.Must(function.Func(name, "Say hello to somebody", func(_ context.Context, x in) (string, error) { return name + " " + x.Name, nil }))(t)
		f.Capability.Effects = capability.Effects{ReadOnly: capability.Yes, OpenWorld: capability.No}
		made = append(made, f)
	}
	x := testkit.Must(function.New(made...))(t)
	main, own := source.NewMemory("test", capability.TrustUser), source.NewMemory("own", capability.TrustBuiltin)
	for _, tool := range x.Tools() {
		if tool.Capability.Name == "ping" {
			own.Put(tool.Capability, tool.Detail)
		} else {
			main.Put(tool.Capability, tool.Detail)
		}
	}
	w := &workshop{off: map[capability.ID]string{}}
	w.Door = over(t, main, ruled(t, noInterns("tool:guard")), nil)
	w.cfg.Own, w.cfg.Switches = loaded(t, own), w
	w.cfg.Runner, w.records = w.running(t, x)
	return w
}

func loaded(t *testing.T, s capability.Source) *catalog.Catalog {
	t.Helper()
	c, err := catalog.New(catalog.Config{Sources: []capability.Source{s}, Machine: catalog.ThisMachine()})
	if err == nil {
		err = c.Load(t.Context())
	}
	testkit.OK(t, err)
	return c
}

func (w *workshop) running(t *testing.T, x executor.Executor) (func(context.Context) (capability.Invoker, error), func() []audit.Record) {
	t.Helper()
	dir := t.TempDir()
	key := testkit.Must(audit.LoadKey(dir + "/key"))(t)
	log := testkit.Must(audit.Open(audit.Config{Dir: dir + "/audit", CheckpointDir: dir + "/heads", Key: key}))(t)
	r := testkit.Must(runner.New(runner.Config{Resolve: w.Resolve, Executors: runner.Executors{"function.*": runner.FromExecutor(x)}, Log: log, Rules: w.cfg.Rules}))(t)
	t.Cleanup(func() {
		if err := errors.Join(r.Close(context.Background()), log.Close()); err != nil {
			t.Error(err)
		}
	})
	records := func() []audit.Record {
		var out []audit.Record
		for e, err := range audit.Query(dir+"/audit", audit.Filter{}) {
			if err != nil {
				t.Error(err)
			}
			out = append(out, e.Record)
		}
		return out[1:] // the first begins the chain
	}
	return func(context.Context) (capability.Invoker, error) { return r, nil }, records
}

var (
	keeper = capability.Principal{ID: "kim", Roles: []string{"keeper"}}
	intern = capability.Principal{ID: "ira", Roles: []string{"intern"}}
)

func hello(target string) capability.Call {
	return capability.Call{Target: capability.ID(target), Arguments: json.RawMessage(`{"name":"Ada"}`), Session: "s"}
}

// TestInvokeRunsAndRecords: a call has its effect, its principal is the view's
// whatever it says, and both records are there.
func TestInvokeRunsAndRecords(t *testing.T) {
	w := newWorkshop(t)
	call := hello("greet") // by its name
	call.Principal = capability.Principal{ID: "root", Roles: []string{"admin"}}
	res, err := w.Invoke(t.Context(), w.View(keeper), call)
	if err != nil || len(res.Parts) != 1 || res.Parts[0].Text != "greet Ada" {
		t.Fatalf("Invoke = %+v, %v; want a greeting", res, err)
	}
	got := w.records()
	if len(got) != 2 || got[0].Event != audit.Started || got[1].Event != audit.Executed || got[1].UserID != "kim" || got[1].Target != "tool:greet" {
		t.Errorf("records = %+v; want the beginning and the end, of kim", got)
	}
	if _, err := w.Invoke(t.Context(), View{}, hello("tool:greet")); capability.KindOf(err) != capability.Denied {
		t.Errorf("Invoke by nobody = %v, want Denied", err)
	}
}

// TestHiddenIsAsAbsent: what the rules refuse in any case is not listed, found,
// described or called, in the same words as what does not exist; the trail
// says who tried.
func TestHiddenIsAsAbsent(t *testing.T) {
	w := newWorkshop(t)
	for _, who := range []struct {
		principal capability.Principal
		sees      bool
	}{{keeper, true}, {intern, false}} {
		v := w.View(who.principal)
		listed := false
		for _, e := range v.List().Capabilities {
			listed = listed || e.ID == "tool:guard"
		}
		if listed != who.sees || v.Stats().Capabilities != len(v.List().Capabilities) {
			t.Errorf("%s: listed %v, want %v; stats %+v", who.principal.ID, listed, who.sees, v.Stats())
		}
		found, err := w.Find(t.Context(), v, Query{Text: "guard: say hello to somebody"})
		if err != nil || strings.Contains(found.Text(), "guard") != who.sees {
			t.Errorf("%s: Find gives %q, %v", who.principal.ID, found.Text(), err)
		}
		for what, try := range map[string]func(name string) error{
			"Lookup":   func(name string) error { return second(v.Lookup(name)) },
			"Describe": func(name string) error { return second(w.Describe(t.Context(), v, name)) },
			"Related":  func(name string) error { return second(v.Related(name)) },
			"Invoke":   func(name string) error { return second(w.Invoke(t.Context(), v, hello(name))) },
		} {
			got, absent := try("tool:guard"), try("tool:guarr")
			if who.sees {
				if got != nil {
					t.Errorf("%s: %s = %v", who.principal.ID, what, got)
				}
				continue
			}
			same := strings.ReplaceAll(absent.Error(), "guarr", "guard")
			if got == nil || strings.Split(got.Error(), ";")[0] != strings.Split(same, ";")[0] || strings.Contains(got.Error(), "intern") {
				t.Errorf("%s: %s = %v, want as of what is not there: %s", who.principal.ID, what, got, same)
			}
		}
	}
	last := w.records()
	if r := last[len(last)-1]; r.UserID != "ira" || r.Status != audit.Denied && r.Status != audit.CallFailed {
		t.Errorf("the last record is %+v, want the try of ira", r)
	}
}

// TestSwitchedOff: an extension that is off is hidden from models at once; a
// person who calls it is told why, and whoever runs Ken sees it with the reason.
func TestSwitchedOff(t *testing.T) {
	w := newWorkshop(t)
	before := w.View(keeper)
	w.off["tool:wired"] = "nobody has reviewed it"
	if _, err := w.View(keeper).Lookup("tool:wired"); capability.KindOf(err) != capability.NotFound {
		t.Errorf("Lookup = %v, want NotFound", err)
	}
	if _, err := w.Invoke(t.Context(), before, hello("tool:wired")); capability.KindOf(err) != capability.NotFound {
		t.Errorf("a model's call through an older view = %v, want NotFound", err)
	}
	call := hello("tool:wired")
	call.Origin = capability.ByPerson
	if _, err := w.Invoke(t.Context(), w.ViewFor(Viewer{Principal: keeper, Origin: capability.ByPerson}), call); capability.KindOf(err) != capability.Denied || !strings.Contains(err.Error(), "nobody has reviewed it") || !strings.Contains(err.Error(), "ken extension enable") {
		t.Errorf("a person's call = %v, want Denied with the reason and the fix", err)
	}
	e, err := w.OperatorView(keeper).Lookup("tool:wired")
	if err != nil || e.Available || !strings.Contains(e.Missing.String(), "nobody has reviewed it") {
		t.Errorf("OperatorView has %+v, %v; want it, with the reason", e, err)
	}
	if e, err := w.OperatorView(keeper).Lookup("tool:greet"); err != nil || !e.Available {
		t.Errorf("OperatorView has %+v, %v; want what is on as it is", e, err)
	}
	delete(w.off, "tool:wired")
	if _, err := w.Invoke(t.Context(), w.View(keeper), hello("tool:wired")); err != nil {
		t.Errorf("switched on again: %v", err)
	}
}

// TestOwnTools: what is part of the program is called and described by name,
// and neither listed nor found.
func TestOwnTools(t *testing.T) {
	w := newWorkshop(t)
	v := w.View(keeper)
	if res, err := w.Invoke(t.Context(), v, hello("tool:ping")); err != nil || res.Parts[0].Text != "ping Ada" {
		t.Errorf("Invoke = %+v, %v", res, err)
	}
	if d, err := w.Describe(t.Context(), v, "ping"); err != nil || len(d.Detail.Schema) == 0 {
		t.Errorf("Describe = %+v, %v; want its schema", d, err)
	}
	for e := range v.All() {
		if e.Name == "ping" {
			t.Error("it is listed")
		}
	}
	var own []string
	for e := range v.Own() {
		own = append(own, e.Name)
	}
	if len(own) != 1 || own[0] != "ping" {
		t.Errorf("Own gives %v, want ping", own)
	}
}

// TestNoRulesSayWhy: without rules whoever asks for something, there or not, is
// told why there are none, and nobody what another may know.
func TestNoRulesSayWhy(t *testing.T) {
	w := newWorkshop(t)
	w.cfg.Rules = func() *policy.Rules { return nil }
	w.cfg.NoRules = func(p capability.Principal) error {
		if p.ID != keeper.ID {
			return errors.New("it is broken")
		}
		return errors.New("ken.yaml:195: unknown key\nask")
	}
	other := capability.Principal{ID: "other"}
	for _, test := range []struct {
		who  capability.Principal
		want string
	}{
		{keeper, "No rules are loaded, so nothing is allowed: ken.yaml:195: unknown key ask"},
		{other, "No rules are loaded, so nothing is allowed: it is broken"},
	} {
		v := w.View(test.who)
		asked := map[string]func(name string) error{
			"Lookup":         func(name string) error { return second(v.Lookup(name)) },
			"RedactedLookup": func(name string) error { return second(v.RedactedLookup(name)) },
			"Describe":       func(name string) error { return second(w.Describe(t.Context(), v, name)) },
			"Invoke":         func(name string) error { return second(w.Invoke(t.Context(), v, hello(name))) },
			"Invoke by a person": func(name string) error {
				call := hello(name)
				call.Origin = capability.ByPerson
				return second(w.Invoke(t.Context(), v, call))
			},
		}
		for op, ask := range asked {
			for _, name := range []string{"tool:ping", "tool:no_such_thing"} {
				err := ask(name)
				e, ok := errors.AsType[*capability.Error](err)
				if !ok || e.Kind != capability.Denied || e.Rule != "no-rules" || e.Err.Error() != test.want || e.Fix == "" {
					t.Errorf("%s(%s) of %s: %v, want denied by no-rules: %s", op, name, test.who.ID, err, test.want)
				}
			}
		}
	}
}
