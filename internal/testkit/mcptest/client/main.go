// Client is Ken's side toward servers, as the official conformance suite tests
// it: it puts the server at the given address behind a gateway, and calls what
// the suite's scenario wants to see called.
//
//	MCP_CONFORMANCE_SCENARIO=NAME [MCP_CONFORMANCE_CONTEXT=JSON] client URL
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/run/mcpgateway"
	"ken/internal/run/mcpgateway/oauth"
	"ken/internal/testkit/oauthtest"
)

const server = "suite"

// given is what a scenario hands to the client.
type given struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	Key          string `json:"private_key_pem"`
	Workload     string `json:"valid_jwt"`
	IDToken      string `json:"idp_id_token"`
	Provider     string `json:"idp_token_endpoint"`
	ProviderID   string `json:"idp_client_id"`
	ToolCalls    []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	if err := run(ctx, os.Getenv("MCP_CONFORMANCE_SCENARIO"), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, scenario string, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: client URL")
	}
	var in given
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &in); err != nil {
			return fmt.Errorf("read the context: %w", err)
		}
	}
	config := mcpgateway.Config{Servers: []mcpgateway.Server{{Name: server, URL: args[0], Trust: capability.TrustUser}}}
	if strings.HasPrefix(scenario, "auth/") {
		machine, err := in.machine(scenario, args[0])
		if err != nil {
			return err
		}
		h, err := oauth.New(oauth.Config{
			Server: server, URL: args[0], Keep: &oauthtest.Memory{}, Interactive: true, Ask: oauthtest.Agree, Machine: machine,
			ClientID: in.ClientID, ClientSecret: in.ClientSecret, ClientMetadata: "https://conformance-test.local/client-metadata.json",
		})
		if err != nil {
			return err
		}
		config.OAuth = func(mcpgateway.Server, capability.Principal) mcpgateway.Login { return h }
	}
	g, err := mcpgateway.New(config)
	if err != nil {
		return err
	}
	defer g.Close()
	if st := g.List(ctx, server)[0]; st.Err != "" {
		return fmt.Errorf("list: %s", st.Err)
	}
	c := &caller{gateway: g}
	return c.play(ctx, scenario, in)
}

// machine returns how a scenario gets a token without a person. A person would write
// it into ken.yaml, with the authorization server.
func (in given) machine(scenario, address string) (m oauth.Machine, err error) {
	token := func(text string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return text, nil }
	}
	switch {
	case strings.HasPrefix(scenario, "auth/client-credentials-"):
		m = oauth.Machine{Grant: oauth.GrantClient, Key: in.Key}
	case scenario == "auth/wif-jwt-bearer":
		m = oauth.Machine{Grant: oauth.GrantJWT, Token: token(in.Workload)}
	case scenario == "auth/enterprise-managed-authorization":
		m = oauth.Machine{Grant: oauth.GrantIDJAG, Token: token(in.IDToken), Provider: in.Provider, ProviderClient: in.ProviderID}
	default:
		return m, nil
	}
	m.Issuer, err = issuerOf(address)
	return m, err
}

// issuerOf reads which authorization server the suite has made.
func issuerOf(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	for _, path := range []string{u.Path, ""} {
		res, err := http.Get(u.Scheme + "://" + u.Host + "/.well-known/oauth-protected-resource" + path)
		if err != nil {
			return "", err
		}
		var meta struct {
			Servers []string `json:"authorization_servers"`
		}
		err = json.NewDecoder(res.Body).Decode(&meta)
		res.Body.Close()
		if err == nil && len(meta.Servers) > 0 {
			return meta.Servers[0], nil
		}
	}
	return "", fmt.Errorf("%s names no authorization server", address)
}

// A caller makes calls and answers what they ask.
type caller struct {
	gateway *mcpgateway.Gateway
}

// play makes the calls of a scenario. The suite judges what it saw of them, so
// that a call that fails is only told.
func (c *caller) play(ctx context.Context, scenario string, in given) error {
	tools, err := c.tools(ctx)
	if err != nil {
		return err
	}
	call := func(name, arguments string) {
		if err := c.call(ctx, name, json.RawMessage(arguments)); err != nil {
			fmt.Fprintln(os.Stderr, "call", name+":", err)
		}
	}
	switch scenario {
	case "initialize", "request-metadata", "json-schema-ref-no-deref":
		// Listing is all that they ask for.
	case "sep-2640-client-no-prefetch":
		// No file of a skill is read before the skill is used.
	case "sep-2640-client-verify-digest", "sep-2640-client-verify-size", "sep-2640-client-verify-frontmatter":
		return c.useSkills(ctx)
	case "tools_call":
		call("add_numbers", `{"a": 5, "b": 3}`)
	case "json-schema-2020-12-preservation":
		schema, err := c.schema(ctx, "json_schema_2020_12_tool")
		if err != nil {
			return err
		}
		call("json_schema_echo", fmt.Sprintf(`{"schema": %s}`, schema))
	case "http-custom-headers":
		for _, t := range in.ToolCalls {
			call(t.Name, string(t.Arguments))
		}
	case "http-invalid-tool-headers":
		for _, name := range tools {
			call(name, `{"region": "us-west1"}`)
		}
	default:
		for _, name := range tools {
			call(name, `{}`)
		}
	}
	if scenario == "http-standard-headers" {
		c.readAll(ctx)
	}
	return nil
}

// useSkills reads each skill and then its other files, as an agent would.
func (c *caller) useSkills(ctx context.Context) error {
	for _, o := range c.gateway.Offers() {
		for _, skill := range o.Skills {
			name := strings.TrimPrefix(string(skill.Read), "mcp:"+server+"/")
			if err := c.call(ctx, name, json.RawMessage(`{}`)); err != nil {
				fmt.Fprintln(os.Stderr, "read the skill:", err)
				continue
			}
			for _, file := range skill.Paths() {
				if err := c.call(ctx, name, json.RawMessage(fmt.Sprintf(`{"file": %q}`, file))); err != nil {
					fmt.Fprintln(os.Stderr, "read", file+":", err)
				}
			}
		}
	}
	return nil
}

// tools returns the names of what the server itself offers.
func (c *caller) tools(ctx context.Context) ([]string, error) {
	batch, err := c.gateway.Sources()[0].Load(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, t := range batch.Capabilities {
		if t.Run != nil && t.Run.Runner == "mcp.call" {
			out = append(out, strings.TrimPrefix(string(t.ID), "mcp:"+server+"/"))
		}
	}
	return out, nil
}

func (c *caller) schema(ctx context.Context, name string) (json.RawMessage, error) {
	source := c.gateway.Sources()[0]
	batch, err := source.Load(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range batch.Capabilities {
		if t.ID == id(name) {
			d, err := source.(capability.Detailer).Detail(ctx, t)
			return d.Schema, err
		}
	}
	return nil, fmt.Errorf("tool %s not found", name)
}

func id(tool string) capability.ID { return capability.ID("mcp:" + server + "/" + tool) }

// readAll reads the first resource and gets the first prompt.
func (c *caller) readAll(ctx context.Context) {
	try := func(name string, arguments map[string]any) {
		text, err := json.Marshal(arguments)
		if err == nil {
			err = c.call(ctx, name, text)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, name+":", err)
		}
	}
	for _, o := range c.gateway.Offers() {
		for _, r := range o.Resources {
			try("read_resource", map[string]any{"uri": r.URI})
		}
		for _, p := range o.Prompts {
			try("get_prompt", map[string]any{"name": p.Name})
		}
	}
}

// mostRounds bounds how often one call may ask.
const mostRounds = 5

// call makes a call, and makes it again with answers for as long as it asks.
func (c *caller) call(ctx context.Context, name string, arguments json.RawMessage) error {
	call := capability.Call{Target: id(name), Arguments: arguments}
	for range mostRounds {
		_, err := c.gateway.Invoke(ctx, call)
		var q *capability.Inquiry
		if !errors.As(err, &q) {
			return err
		}
		call.State, call.Answers = q.State, map[string]json.RawMessage{}
		for _, key := range slices.Sorted(maps.Keys(q.Requests)) {
			call.Answers[key] = answer(q.Requests[key])
		}
	}
	return fmt.Errorf("call %s: server asked more than %d times", name, mostRounds)
}

// answer agrees to a form with what the suite looks for in it; whatever else
// the form has a default for is left to that.
func answer(request json.RawMessage) json.RawMessage {
	var r struct {
		Params struct {
			RequestedSchema struct{ Properties map[string]any }
		}
	}
	if json.Unmarshal(request, &r) == nil {
		if _, ok := r.Params.RequestedSchema.Properties["confirmed"]; ok {
			return json.RawMessage(`{"action": "accept", "content": {"confirmed": true}}`)
		}
	}
	return json.RawMessage(`{"action": "accept", "content": {}}`)
}
