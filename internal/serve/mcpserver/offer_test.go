package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/testkit"
)

// shop is two servers that offer prompts and resources.
type shop struct {
	mu      sync.Mutex
	version uint64
	offers  []Offer
	subs    map[string]func()
	stopped int
}

func (s *shop) Offers(capability.Principal) ([]Offer, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offers, s.version
}

func (s *shop) Next(ctx context.Context, _ uint64) (uint64, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

func (s *shop) Complete(_ context.Context, _ capability.Principal, _, server string, params json.RawMessage) (json.RawMessage, error) {
	var p mcp.CompleteParams
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	return json.Marshal(&mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{server + "/" + p.Ref.Name + p.Ref.URI + "=" + p.Argument.Value}}})
}

func (s *shop) Subscribe(_ context.Context, _ capability.Principal, _, server, uri string, updated func()) (func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subs[server+" "+uri] = updated
	return func() { s.mu.Lock(); s.stopped++; s.mu.Unlock() }, nil
}

func (s *shop) changed(key string) bool {
	s.mu.Lock()
	f := s.subs[key]
	s.mu.Unlock()
	if f != nil {
		f()
	}
	return f != nil
}

func newShop() *shop {
	s := &shop{version: 1, subs: map[string]func(){}}
	for _, name := range []string{"a", "b"} {
		s.offers = append(s.offers, Offer{
			Server:    name,
			Prompts:   []*mcp.Prompt{{Name: "review", Description: "Reviews", Arguments: []*mcp.PromptArgument{{Name: "code"}}}},
			Resources: []*mcp.Resource{{URI: "test://shared", Name: "shared"}, {URI: "test://" + name, Name: name, MIMEType: "text/x"}},
			Templates: []*mcp.ResourceTemplate{{URITemplate: "test://" + name + "/{id}/data", Name: "t"}},
			Read:      capability.ID("mcp:" + name + "/read_resource"), Prompt: capability.ID("mcp:" + name + "/get_prompt"),
		})
	}
	s.offers = append(s.offers, Offer{Server: "hidden", Resources: []*mcp.Resource{{URI: "test://secret", Name: "secret"}}, Read: "mcp:hidden/read_resource"})
	return s
}

const uriSchema = `{"type":"object","properties":{"uri":{"type":"string"}},"required":["uri"]}`

func shopTools(b *bench) {
	for _, server := range []string{"a", "b"} {
		b.tool("mcp:"+server+"/read_resource", uriSchema, quiet, func(_ context.Context, c capability.Call) (capability.Result, error) {
			var in struct{ URI string }
			_ = json.Unmarshal(c.Arguments, &in)
			if in.URI == "test://a/gone/data" {
				return capability.Result{}, &capability.Error{Kind: capability.NotFound, Op: "read", Target: in.URI}
			}
			return capability.Result{Parts: []capability.Part{{Text: server + " has " + in.URI, Link: in.URI}, {Data: []byte{1, 2}, Link: in.URI, MIME: "image/png"}}}, nil
		})
		b.tool("mcp:"+server+"/get_prompt", `{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object"}},"required":["name"]}`, quiet, func(_ context.Context, c capability.Call) (capability.Result, error) {
			raw := fmt.Sprintf(`{"description":"d","messages":[{"role":"user","content":{"type":"text","text":%q}}],"_meta":{"k":1}}`, server+" "+string(c.Arguments))
			return capability.Result{Parts: []capability.Part{{JSON: json.RawMessage(raw), MIME: "application/vnd.mcp.prompt+json"}}}, nil
		})
	}
	b.memory.Put(capability.Capability{Kind: capability.KindSkill, Name: "tidy", Description: "How to tidy up"}, capability.Detail{Body: "Put it back."})
	b.memory.Put(capability.Capability{
		Kind: capability.KindCard, Name: "tides", Description: "Tide tables", Triggers: &capability.Triggers{Keywords: []string{"tide"}, ConfidenceThreshold: 0.3},
	}, capability.Detail{Body: "High water comes twice a day."})
	b.tool("mcp:a/linker", `{"type":"object"}`, quiet, func(context.Context, capability.Call) (capability.Result, error) {
		return capability.Result{Parts: []capability.Part{{Link: "test://unlisted", MIME: "text/plain", Extra: json.RawMessage(`{"name":"u","annotations":{"priority":1}}`)}}}, nil
	})
}

// TestPromptNames: a server's prompt takes no name that one of the user's texts
// has, and a project's text takes none that was there without it.
func TestPromptNames(t *testing.T) {
	text := func(id, name string, trust capability.Trust) *door.Entry {
		return &door.Entry{Capability: &capability.Capability{ID: capability.ID(id), Kind: capability.KindSkill, Name: name, Category: "c", Trust: trust}}
	}
	o := makeOfferings(&Server{}, []*door.Entry{
		text("skill:theirs", "tides", capability.TrustWorkspace), text("skill:mine", "review", capability.TrustUser), text("skill:own", "greet", capability.TrustBuiltin),
	}, []Offer{{Server: "a", Prompt: "mcp:a/get_prompt", Prompts: []*mcp.Prompt{{Name: "review"}, {Name: "greet"}, {Name: "tides"}}}})
	for name, want := range map[string]origin{
		"review": {text: "skill:mine"}, "greet": {text: "skill:own"}, "c__tides": {text: "skill:theirs"},
		"a__review": {reader: "mcp:a/get_prompt", server: "a", name: "review"}, "a__greet": {reader: "mcp:a/get_prompt", server: "a", name: "greet"},
		"tides": {reader: "mcp:a/get_prompt", server: "a", name: "tides"},
	} {
		testkit.Equal(t, fmt.Sprintf("prompt %s", name), o.prompt[name], want)
	}
}

// TestOfferings: skills and cards, and what back ends have, are prompts and
// resources of clients of every version; names that two have are told apart;
// each is read through a call like any other.
func TestOfferings(t *testing.T) {
	b := newBench(t, shopTools)
	cfg := b.config()
	cfg.Backends, cfg.Surface = newShop(), direct
	each(t, New(cfg), peer{}, func(t *testing.T, cs *mcp.ClientSession) {
		ctx := t.Context()
		var prompts, uris, templates []string
		for p, err := range cs.Prompts(ctx, nil) {
			testkit.OK(t, err)
			prompts = append(prompts, p.Name)
		}
		for r, err := range cs.Resources(ctx, nil) {
			testkit.OK(t, err)
			uris = append(uris, r.URI)
		}
		for r, err := range cs.ResourceTemplates(ctx, nil) {
			testkit.OK(t, err)
			templates = append(templates, r.URITemplate)
		}
		if want := []string{"b__review", "review", "tides", "tidy"}; !slices.Equal(prompts, want) {
			t.Errorf("Prompts = %v, want %v", prompts, want)
		}
		shared := "ken://mcp/b/test:%2F%2Fshared"
		if want := []string{"ken://card/tides", shared, "ken://skill/tidy", "test://a", "test://b", "test://shared"}; !slices.Equal(uris, want) {
			t.Errorf("Resources = %v, want %v", uris, want)
		}
		if want := []string{"test://a/{id}/data", "test://b/{id}/data"}; !slices.Equal(templates, want) {
			t.Errorf("ResourceTemplates = %v, want %v", templates, want)
		}
		for uri, want := range map[string]string{
			"ken://skill/tidy": "Put it back.", "ken://card/tides": "High water", "test://a": "a has test://a", "test://shared": "a has test://shared",
			shared: "b has test://shared", "test://b/7/data": "b has test://b/7/data",
		} {
			res, err := cs.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
			if err != nil || !strings.Contains(res.Contents[0].Text, want) || res.Contents[0].URI != uri {
				t.Errorf("ReadResource(%s) = %+v, %v; want %q at that address", uri, res, err, want)
				continue
			}
			if uri == "test://a" && (res.Contents[0].MIMEType != "text/x" || string(res.Contents[1].Blob) != "\x01\x02") {
				t.Errorf("ReadResource(%s) = %+v, want the type of the list, and the data", uri, res.Contents)
			}
		}
		for _, uri := range []string{"test://secret", "test://a/x/y/data", "test://a/gone/data", "ken://skill/none", "ken://result/x"} {
			if res, err := cs.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri}); code(err) != codeNotFound && code(err) != jsonrpc.CodeInvalidParams {
				t.Errorf("ReadResource(%s) = %+v, %v; want that there is none", uri, res, err)
			}
		}
		for name, want := range map[string]string{"tidy": "Put it back.", "review": `a {"name":"review","arguments":{"code":"x"}}`, "b__review": `b {"name":"review"`} {
			p := &mcp.GetPromptParams{Name: name}
			if name == "review" {
				p.Arguments = map[string]string{"code": "x"}
			}
			res, err := cs.GetPrompt(ctx, p)
			if err != nil || len(res.Messages) != 1 || !strings.Contains(res.Messages[0].Content.(*mcp.TextContent).Text, want) {
				t.Errorf("GetPrompt(%s) = %+v, %v; want %q", name, res, err, want)
			}
		}
		if _, err := cs.GetPrompt(ctx, &mcp.GetPromptParams{Name: "none"}); code(err) != jsonrpc.CodeInvalidParams {
			t.Errorf("GetPrompt(none) = %v, want invalid params", err)
		}
		for ref, want := range map[*mcp.CompleteReference]string{
			{Type: "ref/prompt", Name: "b__review"}:           "b/review=pa",
			{Type: "ref/resource", URI: "test://a/{id}/data"}: "a/test://a/{id}/data=pa",
			{Type: "ref/prompt", Name: "tidy"}:                "",
		} {
			res, err := cs.Complete(ctx, &mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: "n", Value: "pa"}})
			if err != nil || strings.Join(res.Completion.Values, "") != want {
				t.Errorf("Complete(%+v) = %+v, %v; want %q", ref, res, err, want)
			}
		}
		res := call(t, cs, "linker", nil)
		if link, ok := res.Content[0].(*mcp.ResourceLink); !ok || link.URI != "test://unlisted" || link.Name != "u" || link.Annotations == nil {
			t.Errorf("CallTool(linker) = %+v, want the link with all that was said of it", res.Content[0])
		}
		if res, err := cs.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://unlisted"}); err != nil || res.Contents[0].Text != "a has test://unlisted" {
			t.Errorf("ReadResource of a link = %+v, %v; want it from the server that gave it", res, err)
		}
	})
}

// TestSubscriptions: a client that subscribed is told, and what it subscribed to
// ends with it.
func TestSubscriptions(t *testing.T) {
	b := newBench(t, shopTools)
	for _, version := range []string{sessionful, sessionless} {
		t.Run(version, func(t *testing.T) {
			sh := newShop()
			cfg := b.config()
			cfg.Backends = sh
			s := New(cfg)
			told := make(chan string, 4)
			t.Run("client", func(t *testing.T) {
				cs := dial(t, s, peer{version: version, opts: &mcp.ClientOptions{
					ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
						select {
						case told <- r.Params.URI:
						default:
						}
					},
				}})
				uri := "ken://mcp/b/test:%2F%2Fshared"
				if err := cs.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
					t.Fatalf("Subscribe() = %v", err)
				}
				// 2026-07-28 does not say when a subscription has begun.
				testkit.Wait(t, "the client is told", func() bool {
					sh.changed("b test://shared")
					return len(told) > 0
				})
				testkit.Equal(t, "told of", <-told, uri)
			})
			if sh.stopped != 1 {
				t.Errorf("%d subscriptions were ended with the client, want 1", sh.stopped)
			}
		})
	}
}

func TestTemplatePattern(t *testing.T) {
	for _, test := range []struct {
		template, uri string
		want          bool
	}{
		{"a://{id}/x", "a://7/x", true}, {"a://{id}/x", "a://7/8/x", false}, {"a://{+path}", "a://7/8/x", true}, {"a://x{?q,r}", "a://x?q=1&r=2", true},
		{"a://x{?q}", "a://x", true}, {"a://x{/y*}", "a://x/1/2", true}, {"a.b://{x}", "a-b://1", false}, {"a://{x", "a://1", false}, {"a://{}", "a://", false},
	} {
		re, ok := templatePattern(test.template)
		testkit.Equal(t, fmt.Sprintf("templatePattern(%q) matches %q", test.template, test.uri), ok && re.MatchString(test.uri), test.want)
	}
}
