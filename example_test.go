package ken_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"ken"
	"ken/capability"
	"ken/llm"
	"ken/llm/llmtest"
)

// open opens Ken with a home folder of its own, which closeAll removes. Unless
// cfg says otherwise, the catalog is that of testdata/example: a skill, a tool
// and a card.
func open(cfg ken.Config) (k *ken.Ken, closeAll func()) {
	home, err := os.MkdirTemp("", "ken")
	if err != nil {
		log.Fatal(err)
	}
	cfg.Home = home
	if cfg.Catalogs == nil {
		cfg.Catalogs = []string{"testdata/example"}
	}
	k, err = ken.Open(context.Background(), cfg)
	if err != nil {
		log.Fatal(err)
	}
	return k, func() {
		k.Close()
		os.RemoveAll(home)
	}
}

// greet returns a function that may be called without approval.
func greet() *ken.Function {
	type person struct {
		Name string `json:"name" jsonschema:"whom to greet"`
	}
	f, err := ken.Func("greet", "Greet a person by name", func(_ context.Context, in person) (string, error) {
		return "Hello " + in.Name, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	f.Capability.Effects = capability.Effects{ReadOnly: capability.Yes, OpenWorld: capability.No}
	return f
}

// post returns a function that reaches beyond this machine, so that each call of
// a model needs approval.
func post() *ken.Function {
	type message struct {
		Text string `json:"text" jsonschema:"what to post"`
	}
	f, err := ken.Func("post", "Post a message to the team", func(_ context.Context, in message) (string, error) {
		return "posted: " + in.Text, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	return f
}

func ExampleOpen() {
	home, err := os.MkdirTemp("", "ken") // a program has a folder of its own, such as /var/lib/bot
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(home)

	ctx := context.Background()
	k, err := ken.Open(ctx, ken.Config{Home: home, Catalogs: []string{"testdata/example"}})
	if err != nil {
		log.Fatal(err)
	}
	defer k.Close()
	for c := range k.All() {
		fmt.Println(c.ID)
	}
	// Output:
	// skill:github
	// token-economy
	// tool:word-count
}

func ExampleKen_Close() {
	home, err := os.MkdirTemp("", "ken")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(home)

	k, err := ken.Open(context.Background(), ken.Config{Home: home})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(k.Close())
	// Output: <nil>
}

func ExampleKen_Home() {
	k, closeAll := open(ken.Config{})
	defer closeAll()
	_, err := os.Stat(k.Home())
	fmt.Println(err)
	// Output: <nil>
}

func ExampleKen_Find() {
	k, closeAll := open(ken.Config{})
	defer closeAll()
	found, err := k.Find(context.Background(), "open a github issue about the login page")
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range found {
		fmt.Println(f.Capability.ID, "-", f.Capability.Description)
	}
	// Output:
	// skill:github - Work with GitHub issues and pull requests through the gh program
}

func ExampleKen_Select() {
	k, closeAll := open(ken.Config{})
	defer closeAll()
	ctx := context.Background()
	sel, err := k.Select(ctx, ken.Query{Message: "how many words are in this file"})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range sel.Found {
		fmt.Println(f.Brief)
	}
	nothing, err := k.Select(ctx, ken.Query{Message: "book a table for tonight"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(nothing.Found), "for the table")
	// Output:
	// 1. word-count (tool). Count the lines, words and bytes of a file. Params: path. Requires: wc
	// 0 for the table
}

// Overrides and filters hold for one query. Stats says what it cost.
func ExampleKen_Select_overrides() {
	k, closeAll := open(ken.Config{Overrides: ken.Overrides{TopK: new(8)}}) // for all queries
	defer closeAll()
	ctx := context.Background()
	q := ken.Query{Message: "open a github issue", Kinds: []capability.Kind{capability.KindSkill}}
	sel, err := k.Select(ctx, q)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(sel.Found), "found,", len(sel.Fulls), "in full,", sel.Stats.FullTokens > 0)

	q.Overrides = ken.Overrides{FullTokens: new(0)} // no full texts
	if sel, err = k.Select(ctx, q); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(sel.Found), "found,", len(sel.Fulls), "in full,", sel.Stats.FullTokens > 0)

	q.Overrides = ken.Overrides{MinRelevance: new(30.0)}
	_, err = k.Select(ctx, q)
	fmt.Println(err)
	// Output:
	// 1 found, 1 in full, true
	// 1 found, 0 in full, false
	// select: Query.Overrides: tier1MinRelevance is 30; it is a number within 0 to 1
}

func ExampleKen_Stats() {
	k, closeAll := open(ken.Config{})
	defer closeAll()
	stats := k.Stats()
	fmt.Println(stats.Capabilities, "capabilities,", stats.Active, "active,", stats.Errors, "errors")
	// Output: 3 capabilities, 3 active, 0 errors
}

func ExampleKen_All() {
	k, closeAll := open(ken.Config{})
	defer closeAll()
	for c := range k.All() {
		fmt.Println(c.Kind, c.Name)
	}
	// Output:
	// skill github
	// card token-economy
	// tool word-count
}

func ExampleKen_Describe() {
	k, closeAll := open(ken.Config{})
	defer closeAll()
	detail, err := k.Describe(context.Background(), "tool:word-count")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(detail.Schema))
	// Output:
	// {"type":"object","properties":{"path":{"type":"string","description":"the file to count"}},"required":["path"]}
}

func ExampleKen_Related() {
	k, closeAll := open(ken.Config{})
	defer closeAll()
	k.Put(capability.Capability{
		ID: "skill:essay", Kind: capability.KindSkill, Name: "essay", Description: "Write an essay of a given length", RequiredTools: []string{"word-count"},
	}, capability.Detail{})
	related, err := k.Related("skill:essay")
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range related {
		fmt.Println(r.Type, r.ID, r.Needs)
	}
	// Output:
	// DEPENDS_ON tool:word-count true
	// SAME_CATEGORY skill:github false
}

func ExampleKen_Problems() {
	k, closeAll := open(ken.Config{})
	defer closeAll()
	fmt.Println(len(k.Problems()))
	k.Put(capability.Capability{ID: "tool:fax", Kind: capability.KindTool, Name: "fax", Description: "Send a fax"}, capability.Detail{})
	for _, p := range k.Problems() {
		fmt.Println(p.Severity, p.Subject)
	}
	// Output:
	// 0
	// warning tool:fax
}

func ExampleKen_Reference() {
	catalog, err := os.MkdirTemp("", "catalog")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(catalog)
	if err := os.WriteFile(catalog+"/SYSTEM_ARCHITECTURE.md", []byte("# Our machines\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	k, closeAll := open(ken.Config{Catalogs: []string{catalog}})
	defer closeAll()
	text, err := k.Reference()
	fmt.Println(text, err)
	// Output: # Our machines <nil>
}

func ExampleKen_Put() {
	k, closeAll := open(ken.Config{})
	defer closeAll()
	tides := capability.Capability{ID: "skill:tides", Kind: capability.KindSkill, Name: "tides", Description: "Read tide tables of a harbour"}
	fmt.Println(k.Put(tides, capability.Detail{Body: "Tables are in tides.csv, one row per high tide."}))
	found, err := k.Find(context.Background(), "when is high tide in the harbour?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found[0].Capability.ID)
	// Output:
	// true
	// skill:tides
}

func ExampleKen_Remove() {
	k, closeAll := open(ken.Config{})
	defer closeAll()
	k.Put(capability.Capability{ID: "skill:tides", Kind: capability.KindSkill, Name: "tides", Description: "Read tide tables of a harbour"}, capability.Detail{})
	fmt.Println(k.Remove("skill:tides"), k.Remove("skill:tides"))
	// Output: true false
}

func ExampleKen_Watch() {
	k, closeAll := open(ken.Config{})
	defer closeAll()
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- k.Watch(ctx) }() // while the program works
	stop()
	err := <-stopped
	fmt.Println(err == nil || errors.Is(err, context.Canceled))
	// Output: true
}

func ExampleKen_Used() {
	k, closeAll := open(ken.Config{})
	defer closeAll()
	scope := capability.Scope{Session: "s1"}
	sel, err := k.Select(context.Background(), ken.Query{Message: "how many words are in this file", Scope: scope})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(k.Used(scope, sel.Found[0].Capability.ID, true))
	fmt.Println(k.Used(scope, "tool:fax", true))
	// Output:
	// <nil>
	// find tool:fax: no capability has this id or name; Ken.All lists every id
}

func ExampleKen_Tools() {
	k, closeAll := open(ken.Config{})
	defer closeAll()
	for _, t := range k.Tools() {
		fmt.Println(t.Name)
	}
	// Output:
	// discover_capabilities
	// describe_capability
}

func ExampleKen_Call() {
	k, closeAll := open(ken.Config{})
	defer closeAll()
	ctx := context.Background()
	answer, err := k.Call(ctx, capability.Scope{}, "discover_capabilities", []byte(`{"query":"count words","kind":"tool"}`))
	if err != nil || answer.Failed {
		log.Fatal(answer.Text, err)
	}
	fmt.Println(answer.Text) // for the model
	found := answer.Data.(ken.Searched)
	fmt.Println(found.Capabilities[0].ID, found.Capabilities[0].Kind, found.Capabilities[0].Available, found.TotalIndexed)

	answer, err = k.Call(ctx, capability.Scope{}, "describe_capability", []byte(`{"id":"tool:word-count"}`))
	if err != nil || answer.Failed {
		log.Fatal(answer.Text, err)
	}
	fmt.Println(string(answer.Data.(ken.Reading).InputSchema) != "")
	// Output:
	// tool:word-count word-count(path: string) Count the lines, words and bytes of a file
	// tool:word-count tool true 3
	// true
}

// main of a program that lets Ken start other programs begins with Helper.
func ExampleHelper() {
	ken.Helper()
	fmt.Println("not the helper process")
	// Output: not the helper process
}

// A Go function becomes a capability with a schema of its own; a model's call of
// it is validated, judged and recorded like any other.
func ExampleFunc() {
	type order struct {
		Number int `json:"number" jsonschema:"the order's number"`
	}
	status, err := ken.Func("order_status", "Say where an order is", func(_ context.Context, in order) (string, error) {
		return fmt.Sprintf("order %d is on its way", in.Number), nil
	})
	if err != nil {
		log.Fatal(err)
	}
	status.Capability.Effects = capability.Effects{ReadOnly: capability.Yes, OpenWorld: capability.No}

	k, closeAll := open(ken.Config{Functions: []*ken.Function{status}})
	defer closeAll()
	ctx := context.Background()
	found, err := k.Find(ctx, "where is my order?")
	if err != nil {
		log.Fatal(err)
	}
	call := capability.Call{Target: found[0].Capability.ID, Arguments: json.RawMessage(`{"number": 7}`), Session: "s1", Intent: "ANALYZE"}
	res, err := k.Invoke(ctx, call)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Parts[0].Text)
	call.Arguments = json.RawMessage(`{"number": "seven"}`)
	_, err = k.Invoke(ctx, call)
	fmt.Println(capability.KindOf(err))
	// Output:
	// order 7 is on its way
	// invalid
}

func ExampleKen_Invoke() {
	k, closeAll := open(ken.Config{Functions: []*ken.Function{greet()}})
	defer closeAll()
	ctx := context.Background()
	call := capability.Call{Target: "tool:greet", Arguments: json.RawMessage(`{"name":"Ada"}`), Session: "s1"}
	_, err := k.Invoke(ctx, call) // a model must say what it intends
	fmt.Println(capability.KindOf(err))
	call.Intent = "READ_FILE"
	res, err := k.Invoke(ctx, call)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Parts[0].Text)
	// Output:
	// denied
	// Hello Ada
}

func ExampleTicket() {
	k, closeAll := open(ken.Config{Functions: []*ken.Function{post()}})
	defer closeAll()
	_, err := k.Invoke(context.Background(), capability.Call{
		Target: "tool:post", Arguments: json.RawMessage(`{"text":"lunch?"}`), Session: "s1", Intent: "EXECUTE",
	})
	ticket, ok := ken.Ticket(err)
	fmt.Println(capability.KindOf(err), ok, ticket != "")
	// Output: unapproved true true
}

func ExampleKen_Question() {
	k, closeAll := open(ken.Config{Functions: []*ken.Function{post()}})
	defer closeAll()
	ctx := context.Background()
	_, err := k.Invoke(ctx, capability.Call{Target: "tool:post", Arguments: json.RawMessage(`{"text":"lunch?"}`), Session: "s1", Intent: "EXECUTE"})
	ticket, ok := ken.Ticket(err)
	if !ok {
		log.Fatal(err)
	}
	lines, err := k.Question(ctx, ticket)
	if err != nil {
		log.Fatal(err)
	}
	for _, line := range lines[:2] {
		fmt.Println(line)
	}
	// Output:
	// arguments: {"text":"lunch?"}
	// capability: tool:post
}

func ExampleKen_Answer() {
	k, closeAll := open(ken.Config{Functions: []*ken.Function{post()}})
	defer closeAll()
	ctx := context.Background()
	call := capability.Call{Target: "tool:post", Arguments: json.RawMessage(`{"text":"lunch?"}`), Session: "s1", Intent: "EXECUTE"}
	res, err := k.Invoke(ctx, call)
	if ticket, ok := ken.Ticket(err); ok { // show a person Ken.Question, then:
		if err := k.Answer(ctx, ticket, ken.Answer{Grant: true, Note: "fine by me"}); err != nil {
			log.Fatal(err)
		}
		res, err = k.Invoke(ctx, call)
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Parts[0].Text)
	// Output: posted: lunch?
}

// scripted returns a model that needs no service: it calls a tool, then answers.
func scripted(intent, tool, arguments, answer string) llm.Model {
	return &llmtest.Fake{Script: llmtest.Replies(
		llmtest.Reply{Calls: []llm.ToolCall{
			{ID: "1", Name: "select_active_intent", Arguments: []byte(`{"intent":"` + intent + `"}`)},
			{ID: "2", Name: tool, Arguments: []byte(arguments)},
		}},
		llmtest.Reply{Text: answer},
	)}
}

func ExampleKen_Turn() {
	model := scripted("READ_FILE", "greet", `{"name":"Ada"}`, "I said hello.")
	k, closeAll := open(ken.Config{Functions: []*ken.Function{greet()}, Model: model})
	defer closeAll()
	for event, err := range k.Turn(context.Background(), ken.Words{Text: "greet Ada by name"}) {
		if err != nil {
			log.Fatal(err)
		}
		switch e := event.(type) {
		case ken.Selected:
			for _, f := range e.Selection.Found {
				fmt.Println("found", f.Capability.ID)
			}
		case ken.Finished:
			if e.Target == "tool:greet" {
				fmt.Println(e.Result.Parts[0].Text)
			}
		case ken.Done:
			fmt.Println(e.Reason, e.Text)
		}
	}
	// Output:
	// found tool:greet
	// Hello Ada
	// answer I said hello.
}

func ExampleKen_Reply() {
	model := scripted("EXECUTE", "post", `{"text":"lunch?"}`, "It is posted.")
	k, closeAll := open(ken.Config{Functions: []*ken.Function{post()}, Model: model})
	defer closeAll()
	ctx := context.Background()
	for event, err := range k.Turn(ctx, ken.Words{Text: "post a message to the team about lunch"}) {
		if err != nil {
			log.Fatal(err)
		}
		switch e := event.(type) {
		case ken.Asked:
			fmt.Println("asked:", e.What == ken.AskApproval, e.Call.Target)
			if err := k.Reply(ctx, e.Session, e, ken.Answer{Grant: true}, ""); err != nil {
				log.Fatal(err)
			}
		case ken.Finished:
			if e.Target == "tool:post" {
				fmt.Println(e.Result.Parts[0].Text)
			}
		case ken.Done:
			fmt.Println(e.Text)
		}
	}
	// Output:
	// asked: true tool:post
	// posted: lunch?
	// It is posted.
}

func ExampleKen_Rewind() {
	model := &llmtest.Fake{Script: llmtest.Replies(llmtest.Reply{Text: "Hello."})}
	k, closeAll := open(ken.Config{Model: model})
	defer closeAll()
	ctx := context.Background()
	var done ken.Done
	for event, err := range k.Turn(ctx, ken.Words{Text: "good morning"}) {
		if err != nil {
			log.Fatal(err)
		}
		if e, ok := event.(ken.Done); ok {
			done = e
		}
	}
	said, err := k.Rewind(ctx, done.Session, done.Turn)
	fmt.Println(said, err)
	_, err = k.Rewind(ctx, "nobody", 1)
	fmt.Println(strings.Contains(err.Error(), "Done.Session"))
	// Output:
	// good morning <nil>
	// true
}
