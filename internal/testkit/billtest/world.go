package billtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/find/discover"
	"ken/internal/find/ranking"
	"ken/internal/govern/policy"
	"ken/internal/know/catalog"
	"ken/internal/know/embed"
	"ken/internal/know/index"
	"ken/internal/talk/deliver"
	"ken/internal/tokenizer"
	"ken/internal/untrusted"
	"ken/llm"
)

// A tool is one of the measured catalog.
type tool struct {
	ID, Name, Description, Category string
	Parameters                      []capability.Parameter
	Schema                          json.RawMessage `json:"input_schema"`

	args []byte // of a call, see arguments
}

// corpus reads the real tools of published servers, in an order that is always
// the same and that has nothing to do with where they are from.
func corpus(tb testing.TB) []tool {
	tb.Helper()
	dir := os.Getenv("KEN_BENCH")
	if dir == "" {
		tb.Skip("KEN_BENCH is not set: the catalogs to measure on are not here")
	}
	f, err := os.Open(filepath.Join(dir, "catalog", "npm-mcp", "corpus.jsonl"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var list []tool
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var t tool
		if err := json.Unmarshal(lines.Bytes(), &t); err != nil {
			tb.Fatal(err)
		}
		var plain bytes.Buffer // servers send no blanks; those of the file are the file's
		if err := json.Compact(&plain, t.Schema); err != nil {
			tb.Fatal(err)
		}
		t.Schema = plain.Bytes()
		t.args = t.arguments()
		list = append(list, t)
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
	random := rand.New(rand.NewPCG(7, 3))
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// A world is a real catalog of a sample behind a real door, and its tools as
// they would be offered.
type world struct {
	tools  []tool
	door   *door.Door
	view   door.View
	offers map[capability.ID]deliver.Offer
	all    []deliver.Offer
	raw    []llm.Tool // as their servers have them
	counts map[string]int

	invoke func() capability.Result // carries out every call
}

func (w *world) Invoke(context.Context, capability.Call) (capability.Result, error) {
	return w.invoke(), nil
}

// count counts every text once.
func (w *world) count(text string) int {
	n, ok := w.counts[text]
	if !ok {
		n = tokenizer.Count(text)
		w.counts[text] = n
	}
	return n
}

func newWorld(tb testing.TB, tools []tool) *world {
	tb.Helper()
	w := &world{tools: tools, offers: map[capability.ID]deliver.Offer{}, counts: map[string]int{}}
	c, err := catalog.New(catalog.Config{Sources: []capability.Source{fixed(tools)}, Attachment: ranking.IndexedBy(&index.Cache{Model: embed.Builtin()})})
	if err != nil {
		tb.Fatal(err)
	}
	if err := c.Load(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	rules, err := policy.Compile(policy.Defaults(policy.Personal))
	if err != nil {
		tb.Fatal(err)
	}
	w.door = door.New(door.Config{
		Catalog: c, Finder: discover.NewFinder(discover.Parts{Source: c, Embedder: embed.Builtin()}),
		Find:   func(capability.Scope) door.Settings { return door.Settings{Config: patient()} },
		Rules:  func() *policy.Rules { return rules },
		Runner: func(context.Context) (capability.Invoker, error) { return w, nil },
	})
	w.view = w.door.View(capability.Principal{ID: "somebody"})
	named := make([]deliver.Named, len(tools))
	for i, t := range tools {
		named[i] = deliver.Named{ID: capability.ID(t.ID), Name: t.Name, Category: t.Category}
	}
	for i, name := range deliver.Names(named, nil) {
		t := tools[i]
		o := deliver.Offer{ID: capability.ID(t.ID), Tool: llm.Tool{Name: name, Description: untrusted.Line(t.Description, 1000), Schema: t.Schema}}
		slim := o.Tool
		slim.Schema = deliver.Slim(slim.Schema)
		o.Tokens = deliver.ToolTokens(slim, w.count)
		w.offers[o.ID] = o
		w.all, w.raw = append(w.all, o), append(w.raw, llm.Tool{Name: name, Description: t.Description, Schema: t.Schema})
	}
	return w
}

// patient waits for the embedding model however busy the machine is, so that
// the same is found every time.
func patient() discover.Config {
	cfg := discover.Defaults()
	cfg.EmbedTimeout = 1 << 40
	return cfg
}

// fixed is a source of tools that are already read.
type fixed []tool

func (fixed) Name() string { return "bench" }

func (f fixed) Load(context.Context) (capability.Batch, error) {
	var batch capability.Batch
	for i, t := range f {
		batch.Capabilities = append(batch.Capabilities, &capability.Capability{
			ID: capability.ID(t.ID), Kind: capability.KindTool, Name: t.Name, Description: t.Description, Category: t.Category,
			Parameters: t.Parameters, Hash: fmt.Sprint(i), Trust: capability.TrustUser, Origin: capability.Origin{Source: "bench"},
			Run: &capability.Recipe{Runner: "mcp.call"},
		})
	}
	return batch, nil
}

func (f fixed) Detail(_ context.Context, c *capability.Capability) (capability.Detail, error) {
	i := slices.IndexFunc(f, func(t tool) bool { return t.ID == string(c.ID) })
	return capability.Detail{Schema: f[i].Schema}, nil
}

// A turn is what a person says, what the model needs for it, and what Ken
// finds.
type turn struct {
	message string
	needs   []tool
	found   door.Found
}

// talk makes a conversation of 30 turns. seed makes another one. fresh says how often the user wants
// something new: 1 means in every turn, 2 in every second one, while the others
// go on with what was wanted before. Something new is one tool or two, in
// turn (the labelled conversations of bfcl-multiturn have 1.5), drawn from the
// whole sample, each as likely as the other.
//
// The message is made of the tools' own descriptions, see [ask]; that of a turn
// that goes on says so and nothing else.
func (w *world) talk(tb testing.TB, calls, fresh int, seed uint64) []turn {
	random := rand.New(rand.NewPCG(seed, uint64(len(w.tools)*10+calls)))
	var turns []turn
	var before []door.Message
	var used []capability.ID
	for i := range 30 {
		var t turn
		if i%fresh == 0 {
			for range 1 + (i/fresh)%2 {
				t.needs = append(t.needs, w.tools[random.IntN(len(w.tools))])
			}
			var asks []string
			for _, n := range t.needs {
				asks = append(asks, ask(n, random))
			}
			t.message = strings.Join(asks, "; then ") + "."
		} else {
			t.needs, t.message = turns[i-1].needs, onward[i%len(onward)]
		}
		found, err := w.door.Find(tb.Context(), w.view, door.Query{Text: t.message, Before: before, Used: used})
		if err != nil {
			tb.Fatal(err)
		}
		t.found = found
		turns = append(turns, t)
		before = append(before, door.Message{Role: "user", Text: t.message})
		used = nil
		for _, n := range t.needs {
			used = append(used, capability.ID(n.ID))
		}
	}
	return turns
}

// onward are messages that go on with what was wanted before.
var onward = []string{
	"Good. Now do the same for the other one, please.",
	"Not quite what I meant. Look at it again and try once more.",
	"Thanks! And again with the values from yesterday.",
	"Yes, go on.",
	"Why is that? Please check it and tell me what came out.",
}

// ask makes a request of the first sentences of a tool's description: of their
// first 30 words six in ten, in their order, and never the tool's own name.
// People say less than manuals do and do not know what tools are called.
func ask(t tool, random *rand.Rand) string {
	words := strings.Fields(t.Description)
	var kept []string
	for i, word := range words {
		if i == 30 {
			break
		}
		if random.Float64() < 0.6 && !strings.EqualFold(strings.Trim(word, "`*.,:"), t.Name) {
			kept = append(kept, word)
		}
	}
	if len(kept) == 0 {
		kept = append(kept, strings.ReplaceAll(t.Category, "_", " "))
	}
	return strings.Join(kept, " ")
}

// arguments are what a call says: its required parameters, and a short word for
// each.
func (t tool) arguments() []byte {
	var schema struct{ Required []string }
	_ = json.Unmarshal(t.Schema, &schema) // none required then
	args := map[string]string{}
	for _, name := range schema.Required {
		args[name] = "the value of " + name
	}
	b, _ := json.Marshal(args) // strings always can be
	return b
}
